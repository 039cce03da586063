"""Tokens: the parts add up to the whole exactly, and the whole is what an independent tokenizer counts."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.explain.support import a_subject, random_prompt, tool

from foreword import SystemPrompt
from foreword.errors import MiscountedTokensError, MissingExtraError, UnknownTokenizerError
from foreword.explain import Subject, subject_of, tokenizer_for, tokenizer_named, tokens_of
from foreword.explain.tokenizers import ESTIMATE, KNOWN
from foreword.explain.tokens import message_text
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig

with warnings.catch_warnings():  # it opens its data in a way that some Pythons deprecate
    warnings.simplefilter("ignore", DeprecationWarning)
    import bpe_openai

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/foreword/prompt/*.py"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"]
)[:48]


def parts_of(subject: Subject) -> list[str]:
    """All texts that are tokenised, each whole."""
    told = [each.text for each in subject.tools]
    return [*told, subject.text, subject.snapshot, *(message_text(each.message) for each in subject.messages)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_real_files_count_as_elsewhere(path: Path, name: str) -> None:
    """Of a file as a section the whole is what another tokenizer counts, made by others and of other code."""
    text = path.read_text(encoding="utf-8")
    subject = a_subject(lambda prompt: prompt.section("file", text, order=1, verbatim=True))
    report = tokens_of(subject, tokenizer_named(name))
    assert report.total == len(bpe_openai.get_encoding(name).encode_ordinary(text))
    assert not report.is_estimate


def test_enough_files_were_looked_at() -> None:
    """There are at least forty."""
    assert len(FILES) >= 40


@pytest.mark.parametrize("name", KNOWN)
def test_the_parts_add_up(name: str) -> None:
    """For random prompts: tokens by part, by owner and as a whole agree, and each byte is somebody's."""
    tokenizer = tokenizer_named(name)
    for seed in range(60):
        prompt, _ = random_prompt(seed)
        prompt.owner("shop").tools([tool("find", "Findet 🦉 und mehr.")])
        prompt.owner("clock").context("now", "It is {{zz}}.", order=1)
        prompt.owner("clock").variable("zz", "zwölf Uhr")
        subject = subject_of(prompt.render_sync())
        report, texts = tokens_of(subject, tokenizer), parts_of(subject)
        assert report.total == sum(len(tokenizer.sizes(text)) for text in texts)
        assert report.total == sum(cost.tokens for cost in report.costs) == sum(each.tokens for each in report.owners)
        assert report.bytes == sum(len(text.encode()) for text in texts)
        assert [cost.tokens for cost in report.costs] == sorted((cost.tokens for cost in report.costs), reverse=True)


@given(st.text(st.characters(codec="utf-8"), max_size=80), st.sampled_from(KNOWN))
def test_tokens_cover_the_text(text: str, name: str) -> None:
    """The sizes of any text's tokens add up to its bytes; none is empty."""
    sizes = tokenizer_named(name).sizes(text)
    assert sum(sizes) == len(text.encode())
    assert all(size > 0 for size in sizes)


def test_a_token_belongs_to_the_owner_of_its_first_byte() -> None:
    """Where a value ends inside a token, the token is the value's; nothing counts twice."""

    class Pairs:
        name, is_estimate = "pairs", False

        def sizes(self, text: str) -> list[int]:
            size = len(text.encode())
            return [2] * (size // 2) + [1] * (size % 2)

    def build(prompt: SystemPrompt) -> None:
        prompt.owner("v").variable("v", "abc")
        prompt.owner("s").section("s", "x{{v}}yz", order=1)  # xa bc yz

    report = tokens_of(a_subject(build), Pairs())
    assert {(cost.kind, cost.name, cost.owner): cost.tokens for cost in report.costs} == {
        ("section", "s", "s"): 2,
        ("variable", "v", "v"): 1,
    }


def test_every_part_is_told() -> None:
    """Sections, variables, contexts, tools, history and what the assembler adds; and by owner."""

    def build(prompt: SystemPrompt) -> None:
        prompt.owner("acme").variable("v", "value of it")
        prompt.owner("acme").section("a", "One {{v}}.", order=1)
        prompt.owner("legal").section("b", "Two {{v}}.", order=2)
        prompt.owner("clock").context("now", "Ten.", order=1)
        prompt.owner("shop").tools([tool("find")])

    messages = (
        UserMessage("Hi there."),
        AssistantMessage("", (ToolCall("1", "find", "{}"),)),
        ToolMessage("1", "find", "Here."),
    )
    report = tokens_of(a_subject(build, *messages), tokenizer_named("o200k_base"))
    assert {(cost.kind, cost.name, cost.owner) for cost in report.costs} == {
        ("section", "a", "acme"),
        ("section", "b", "legal"),
        ("variable", "v", "acme"),
        ("context", "now", "clock"),
        ("tool", "find", "shop"),
        ("separator", "between sections", "assembler"),
        ("separator", "snapshot frame", "assembler"),
        ("message", "the user", "the user"),
        ("message", "the model", "the model"),
        ("message", "a tool", "a tool"),
    }
    assert report.of("variable", "v") == 4  # of both places " of" and " it": " value" begins with the section's blank
    assert report.owners[0].tokens == max(owner.tokens for owner in report.owners)
    assert (report.over(report.total), report.over(report.total - 1), report.over(0)) == (0, 1, report.total)


def test_a_tokenizer_that_miscounts_is_refused() -> None:
    """Tokens that do not make up the text would be somebody's by mistake."""

    class Short:
        name, is_estimate = "short", True

        def sizes(self, text: str) -> list[int]:
            return [1]

    with pytest.raises(MiscountedTokensError, match="tokenizer short gives tokens of 1 bytes for a text of 8"):
        tokens_of(a_subject(lambda prompt: prompt.section("a", "Be kind.", order=1)), Short())


@pytest.mark.parametrize(
    ("model", "name", "is_estimate"),
    [
        ("openai:gpt-4o", "o200k_base", False),
        ("openai:gpt-4.1-mini", "o200k_base", False),
        ("openai:gpt-4-turbo", "cl100k_base", False),
        ("openai:gpt-5.2", "o200k_base", False),
        ("openai:something-new", "o200k_base", True),
        ("deepseek:deepseek-chat", "deepseek_v3", False),
        ("deepseek:deepseek-v4-pro", "deepseek_v3", True),
        ("anthropic:claude-sonnet-4-5", "estimate", True),
        ("gemini:gemini-2.5-pro", "estimate", True),
    ],
)
def test_models_have_their_tokenizers(model: str, name: str, is_estimate: bool) -> None:
    """The model's own where it is known; else what comes nearest, marked as an estimate."""
    tokenizer = tokenizer_for(ModelConfig.parse(model))
    assert (tokenizer.name, tokenizer.is_estimate) == (name, is_estimate)


def test_without_a_model_it_is_an_estimate() -> None:
    """A prompt that is for no model in particular is counted with a common vocabulary, and says so."""
    assert (tokenizer_for(None).name, tokenizer_for(None).is_estimate) == ("o200k_base", True)


def test_an_unknown_tokenizer_is_told_by_name() -> None:
    """With the nearest one that is known."""
    with pytest.raises(UnknownTokenizerError, match='did you mean "o200k_base"'):
        tokenizer_named("o200k")


def test_the_estimate_is_near() -> None:
    """On prose and code it is within a quarter of what is counted."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        counted = len(bpe_openai.get_encoding("o200k_base").encode_ordinary(text))
        assert 0.75 < len(ESTIMATE.sizes(text)) / counted < 1.25


WITHOUT_THE_EXTRA = """
import sys
sys.modules["splintr"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "splintr" else real(name, *rest)
from foreword.explain import tokenizer_for, tokenizer_named
from foreword.wire.request import ModelConfig
assert tokenizer_for(ModelConfig("openai", "gpt-4o")).name == "estimate"
try:
    tokenizer_named("o200k_base")
except ImportError as error:
    print(error)
"""


def test_without_the_extra_there_is_the_estimate(tmp_path: Path) -> None:
    """Counting works without it, marked; asking for a vocabulary by name tells how to get it."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert 'pip install "foreword[tokens]"' in done.stdout
    assert str(MissingExtraError("the tokenizer o200k_base", "tokens", "splintr-rs")) in done.stdout
