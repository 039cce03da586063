"""Small cases from practice: each is a fault that users of prompt-assembling software met, with its exact right answer.

A test's docstring tells the kind of fault; the one input here stands for all of its kind.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.short import Bell, listener, names, tool

from foreword import (
    AssembleContext,
    AssembledSection,
    MalformedReferenceError,
    MultipleCompleteSectionsError,
    PromptAssembly,
    ProviderFailedError,
    RenderError,
    RunningLoopError,
    SystemPrompt,
    ToolProviderResult,
    UnknownVariableError,
    ValuelessVariableError,
)
from foreword.wire import anthropic, openai_chat
from foreword.wire.messages import UserMessage


def tools_bytes(prompt: SystemPrompt) -> bytes:
    """What a wire format would send of the tools."""
    schemas = prompt.render_sync().tools
    return json.dumps([[schema.name, schema.description, schema.parameters] for schema in schemas]).encode()


def both_orders(*steps: Callable[[SystemPrompt], object], **fields: Any) -> list[SystemPrompt]:
    """Two prompts on which the same steps were taken, forwards and backwards."""
    prompts = [SystemPrompt(**fields), SystemPrompt(**fields)]
    for prompt, taken in zip(prompts, (steps, steps[::-1]), strict=True):
        for step in taken:
            step(prompt)
    return prompts


# 1


def test_case_1_tool_order_is_a_function_of_the_set() -> None:
    """Two servers that connect in either order must not give two different tool lists: a cache keyed by the bytes would
    miss for nothing, and no two machines would send the same prompt."""
    steps = [lambda prompt, name=name: prompt.tools([tool(name)]) for name in ("mcp_b", "a")]
    for fields, expected in (
        ({}, ["a", "mcp_b"]),
        ({"tool_order": ["mcp_b", "<unlisted-tools>"]}, ["mcp_b", "a"]),
    ):
        one, other = both_orders(*steps, **fields)  # type: ignore[arg-type]
        assert names(one.render_sync().tools) == names(other.render_sync().tools) == expected
        assert tools_bytes(one) == tools_bytes(other)
    prompt = SystemPrompt()
    prompt.tools([tool(name) for name in ("B", "a", "ä", "Z")])
    assert names(prompt.render_sync().tools) == ["B", "Z", "a", "ä"]


# 2


def test_case_2_a_reconnect_is_a_no_op() -> None:
    """A server that drops its connection and comes back with the same tools must not move them to the end: what was
    sent before and what is sent now have to be the same bytes."""
    prompt = SystemPrompt(persona="P")

    def connect() -> Any:
        return prompt.tools(ToolProviderResult([tool("b1"), tool("b2")]))

    first = connect()
    prompt.tools(ToolProviderResult([tool("a1")]))
    before, digest = tools_bytes(prompt), prompt.render_sync().digest
    bell = Bell()
    prompt.on_change(bell)
    first.close()
    connect()
    assert tools_bytes(prompt) == before
    assert prompt.render_sync().digest == digest
    assert bell.rung == 2


# 3


def test_case_3_values_are_spliced_in_one_pass() -> None:
    """A value that looks like a reference must not be expanded in its turn: else a secret leaks through somebody else's
    text, and whether it does depends on the order of a dict."""
    for prompt in both_orders(
        lambda prompt: prompt.variable("a", "{{b}}"),
        lambda prompt: prompt.variable("b", "SECRET"),
        lambda prompt: prompt.section("s", "A {{a}} B {{b}}", order=0),
    ):
        assert prompt.render_sync().text == "A {{b}} B SECRET"


# 4


def test_case_4_values_are_opaque() -> None:
    r"""A value with `$&`, `\1` or `%s` in it must come out byte for byte: a replacement function that reads such signs
    splices the template into the prompt."""
    value = r"$& $' \1 \g<0> %s {0}"
    for given in (value, lambda: value):
        prompt = SystemPrompt()
        prompt.section("s", "X {{v}} Y", order=0)
        prompt.variable("v", given)
        assert prompt.render_sync().text == "X " + value + " Y"


# 5


def test_case_5_a_missing_variable_is_an_error() -> None:
    """A reference that nobody can fill must not render as a blank, and "never heard of it" is another fault than "no
    value this time": a prompt with a hole in it is sent and nobody notices."""
    prompt = SystemPrompt()
    prompt.section("hi", "Hi {{name}}.", order=0)
    prompt.variable("city", "Graz")
    with pytest.raises(UnknownVariableError) as unknown:
        prompt.render_sync()
    assert all(part in str(unknown.value) for part in ("{{name}}", '"hi"', "city"))
    prompt.variable("name", lambda: None)
    with pytest.raises(ValuelessVariableError, match="no value") as valueless:
        prompt.render_sync()
    assert type(valueless.value) is not type(unknown.value)


# 6


@pytest.mark.parametrize("text", ["{{__class__}}", "{{constructor}}", "{{a.b}}", "{{ a }}", "{{}}", "{{{a}}}"])
def test_case_6_names_are_looked_up_and_nothing_else(text: str) -> None:
    """A template must not reach attributes, prototypes or expressions: that is how templates come to execute code. What
    is no plain name is an error, never a value and never left standing."""
    prompt = SystemPrompt()
    prompt.variable("a", "VALUE")
    prompt.section("s", text, order=0)
    with pytest.raises(RenderError) as caught:
        prompt.render_sync()
    assert isinstance(caught.value, UnknownVariableError | MalformedReferenceError)


# 7


@pytest.mark.parametrize(
    "text",
    ['Return {"k": 1} and ({ page }) => ${HOME} {expression} {% if %} {# c #}', "a {{ b"],
)
def test_case_7_single_braces_are_prose(text: str) -> None:
    """JSON, code and shell in a prompt are text: whoever takes every brace for a placeholder breaks on the first
    example, and people cannot write what they mean."""
    prompt = SystemPrompt()
    prompt.section("s", text, order=0)
    assert prompt.render_sync().text == text


# 8


def test_case_8_a_persona_can_be_replaced_where_it_stands() -> None:
    """A sub-agent must get its own persona in the place of the main one, not behind it and not beside it, and only this
    sub-agent: else it believes to be the orchestrator."""
    prompt = SystemPrompt()
    asked: list[str] = []
    prompt.section("identity", "G", order=-100)
    prompt.section("persona", lambda: asked.append("!") or "main", order=0)
    child, other = prompt.scope("child"), prompt.scope("other")
    registration = child.section("persona", "child", order=0)
    assert child.render_sync().text == "G\n\nchild"
    assert asked == []
    assert other.render_sync().text == "G\n\nmain"
    registration.close()
    assert child.render_sync().text == "G\n\nmain"


# 9


def test_case_9_complete_is_final() -> None:
    """A prompt that was declared whole must stay whole: text that a later hook appends would undo it unseen. Two of
    that kind contradict each other and are an error, not a race."""
    prompt = SystemPrompt(persona="main")
    prompt.on_assemble(listener(lambda a: a.sections.append(AssembledSection("agents", "AGENTS"))))
    prompt.tools([tool("t")])
    prompt.context("c", "C", order=0)
    agent = prompt.scope("agent")
    agent.section("only", "X", order=0, complete=True)
    rendering = agent.render_sync()
    assert rendering.text == "X"
    assert names(rendering.tools) == ["t"]
    assert rendering.snapshot.endswith("\n\nC")
    assert prompt.render_sync().text == "main\n\nAGENTS"
    agent.section("other", "Y", order=0, complete=True)
    with pytest.raises(MultipleCompleteSectionsError) as caught:
        agent.render_sync()
    assert all(f'"{name}"' in str(caught.value) for name in ("only", "other"))


# 10


def test_case_10_there_is_one_escape_and_it_works() -> None:
    """Who wants to talk about templates in a prompt needs a way to write them that works, once and for all: an escape
    that is half understood, or undone twice, is worse than none."""
    prompt = SystemPrompt()
    registration = prompt.section("s", "use {{{{city}}}} here", order=0)
    assert prompt.render_sync().text == "use {{city}} here"
    registration.replace("{{{{ city }}}}")
    with pytest.raises(MalformedReferenceError):
        prompt.render_sync()
    registration.replace("{{v}}")
    prompt.variable("v", "{{{{city}}}} {{city}}")
    assert prompt.render_sync().text == "{{{{city}}}} {{city}}"


def test_case_10_verbatim_text_renders_as_it_is() -> None:
    """Text that is not ours to interpret must be able to pass whatever it holds."""
    chance = random.Random(10)
    prompt = SystemPrompt()
    registration = prompt.section("s", "", order=0, verbatim=True)
    for _ in range(1000):
        text = "".join(chance.choices("{}$ab{}", k=chance.randrange(1, 20)))
        registration.replace(text)
        assert prompt.render_sync().text == text


# 11


def test_case_11_ties_are_decided_by_rule() -> None:
    """Two sections of one order must not swap places because a file system lists folders in another order: they stand
    as registered, or, if one asks for it, by name."""
    steps = [lambda prompt, name=name: prompt.section(name, name, order=5) for name in "ba"]
    one, other = both_orders(*steps)  # type: ignore[arg-type]
    assert (one.render_sync().text, other.render_sync().text) == ("b\n\na", "a\n\nb")
    for prompt in both_orders(*steps, section_ties="name"):  # type: ignore[arg-type]
        assert prompt.render_sync().text == "a\n\nb"


# 12


@pytest.mark.parametrize(("shown", "expected"), [(["write"], ""), (["edit", "write"], "Use edit.")])
def test_case_12_guidance_follows_its_tool(shown: list[str], expected: str) -> None:
    """Advice about a tool that is switched off must go with it: a model that is told to use what it does not have tries
    to. Why it went is on record."""
    prompt = SystemPrompt()
    prompt.section("tool:edit", "Use edit.", order=100, requires_tools={"edit"})
    prompt.tools(lambda: ToolProviderResult([tool(name) for name in shown], known_names=["edit", "write"]))
    rendering = prompt.render_sync()
    assert rendering.text == expected
    absence = rendering.missing("tool:edit")
    assert (absence is None) == bool(expected)
    assert absence is None or absence.reason == "requires_tools:edit"


# 19


async def slow(cancelled: list[str]) -> str:
    try:
        await anyio.sleep(10)
    except anyio.get_cancelled_exc_class():
        cancelled.append("p2")
        raise
    return "B"


@pytest.mark.anyio
@pytest.mark.parametrize("on_error", ["skip", "fail"])
async def test_case_19_a_slow_provider_does_not_hold_up_the_prompt(on_error: Any) -> None:
    """One source that never answers must not block every agent or lose the prompt without a word: it is cut off, named,
    and dealt with as its registration says; nothing of it runs on."""
    prompt = SystemPrompt()
    cancelled: list[str] = []
    prompt.section("p1", lambda: "A", order=1)

    @prompt.section("p2", order=2, timeout=0.05, on_error=on_error)
    async def p2() -> str:
        return await slow(cancelled)

    @prompt.section("p3", order=3)
    async def p3() -> str:
        return "C"

    start = time.monotonic()
    if on_error == "skip":
        rendering = await prompt.render()
        assert rendering.text == "A\n\nC"
        assert any(event.name == "p2" and "timeout" in str(event) for event in rendering.trace.events)
    else:
        with pytest.raises(ProviderFailedError, match='section "p2"'):
            await prompt.render()
    assert time.monotonic() - start < 5
    assert cancelled == ["p2"]
    assert prompt.stuck == ()


# 22


@pytest.mark.parametrize(
    "attempt",
    [
        lambda a: a.sections.drop("safety"),
        lambda a: a.sections.swap("safety", text="hacked"),
        lambda a: a.sections.append(a.sections.drop("safety")),
        lambda a: setattr(a, "sections", [AssembledSection("rest", "rest")]),
    ],
    ids=["drop", "edit", "reorder", "replace the list"],
)
def test_case_22_a_protected_section_stays(attempt: Callable[[PromptAssembly], object]) -> None:
    """A safety text must not vanish or change because some plugin edits the prompt; and who tried has to be on record,
    since nobody reads a prompt twice."""
    prompt = SystemPrompt()
    prompt.section("safety", "S", order=-50)
    prompt.section("rest", "rest", order=1)
    prompt.protect(sections=["safety"])
    prompt.owner("intruder").on_assemble(listener(attempt))
    rendering = prompt.render_sync()
    assert rendering.text == "S\n\nrest"
    tried = [event for event in rendering.trace.about("safety") if event.stage == "transform"]
    assert tried
    assert all(event.protected and "of intruder" in str(event.by) for event in tried)


# 25


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfBody\r\n", "Body"),
        (b"\xef\xbb\xbfa\r\n\r\n\r\n\r\nb\r\n====\r\n##", "a\n\n\n\nb\n====\n##"),
        (b"\tcode\n\n```\n  x\n```\n", "\tcode\n\n```\n  x\n```"),
    ],
)
def test_case_25_a_file_s_text_is_its_text(tmp_path: Path, data: bytes, text: str) -> None:
    """What an editor on another system puts round a text (a BOM, other line ends) is not the text; blank lines, tabs and
    fences are. The first must not reach the prompt, the second must not be tidied away."""
    file = tmp_path / "text.md"
    file.write_bytes(data)
    prompt = SystemPrompt()
    prompt.section("s", file, order=0)
    assert prompt.render_sync().text == text


# 29


def test_case_29_every_character_has_an_owner() -> None:
    """Where a prompt is stitched together from strings nobody can tell any more who said what: each stretch, values
    included, belongs to somebody, without gap or overlap."""
    prompt = SystemPrompt()
    prompt.owner("s").section("s", "Hi {{name}}!", order=0)
    prompt.owner("q").variable("name", "Bob")
    prompt.section("t", "T", order=1)
    rendering = prompt.render_sync()
    told = [
        (
            span.section,
            span.kind if span.variable is None else f"var:{span.variable}@{span.owner}",
            span.start,
            span.end,
        )
        for span in rendering.spans
    ]
    assert told[:3] == [("s", "literal", 0, 3), ("s", "var:name@q", 3, 6), ("s", "literal", 6, 7)]
    assert [(span.owner, span.kind) for span in rendering.spans][3] == ("assembler", "separator")
    assert [span.start for span in rendering.spans] == [0, *(span.end for span in rendering.spans)][:-1]
    assert rendering.spans[-1].end == len(rendering.text)


# 33


def test_case_31_cache_marks_are_budgeted() -> None:
    """Marks for a provider's cache on every section: past four the server refuses, as it does one on an empty text."""
    prompt = SystemPrompt(include_harness_identity=False)
    for order in range(6):
        prompt.section(f"s{order}", f"Section {order}.", order=order)
    prompt.section("empty", "", order=6)
    prompt.section("blank", " \n", order=7)
    prompt.tools([tool("a"), tool("b")])
    told = anthropic.request(prompt.render_sync(), [], config="anthropic:claude-sonnet-4-5")
    assert json.dumps(told).count("cache_control") == 2  # which leaves two for messages
    assert all(block["text"].strip() for block in told["system"])

    nothing = SystemPrompt(include_harness_identity=False)
    nothing.section("empty", "", order=1)
    nothing.section("blank", " \n", order=2)
    assert "system" not in anthropic.request(nothing.render_sync(), [], config="anthropic:claude-sonnet-4-5")


def test_case_32_the_number_of_system_messages_is_the_format_s() -> None:
    """A system message for each contribution: many servers take exactly one, and first."""
    prompt = SystemPrompt(include_harness_identity=False)
    for order, text in enumerate(("One.", "Two.", "Three.")):
        prompt.section(text, text, order=order)
    rendering = prompt.render_sync()
    history = [UserMessage("Hi.")]
    chat = openai_chat.request(rendering, history, config="mine:llama")["messages"]
    assert [message["role"] for message in chat] == ["system", "user"]
    assert chat[0]["content"] == rendering.text
    blocks = anthropic.request(rendering, history, config="anthropic:claude-sonnet-4-5")["system"]
    assert "".join(block["text"] for block in blocks) == rendering.text


def test_case_33_a_misspelt_name_is_guessed() -> None:
    """A slip of the pen in a reference must neither be sent as it is nor end in an error that leaves one searching: the
    nearest known name is suggested."""
    prompt = SystemPrompt(persona="{{modle}}")
    prompt.variable("model", "m-1")
    prompt.variable("cwd", "/")
    with pytest.raises(UnknownVariableError, match='did you mean "model"'):
        prompt.render_sync()


# 35


async def answering() -> str:
    return "async"


def test_case_35_plain_code_can_assemble() -> None:
    """A library that can only be awaited cannot be tried in a shell or called from a script: outside a loop the sync
    doors do all."""
    prompt = SystemPrompt(persona="P")
    assert names(prompt.assemble_sync().sections) == ["deployment:persona"]
    prompt.section("s", answering, order=1)
    prompt.on_assemble(listener(lambda assembly: None))
    assert prompt.assemble_sync().sections[-1].text == "async"
    assert prompt.render_sync().text == "P\n\nasync"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "register",
    [
        lambda prompt: prompt.section("s", answering, order=1),
        lambda prompt: prompt.on_assemble(listener(lambda assembly: None)),
    ],
    ids=["async provider", "listener"],
)
async def test_case_35_in_a_running_loop_the_right_call_is_told(register: Callable[[SystemPrompt], object]) -> None:
    """In a notebook or a web handler a second loop cannot start; what needs none still works there, and what needs one
    says which call to use, instead of hanging or of a message about loops."""
    prompt = SystemPrompt(persona=" {{v}}")
    prompt.variable("v", lambda: "V")
    assert prompt.render_sync().text == " V"
    assert isinstance(prompt.assemble_sync(AssembleContext()), PromptAssembly)
    register(prompt)
    for door in (prompt.assemble_sync, prompt.render_sync):
        with pytest.raises(RunningLoopError, match=r"await prompt\."):
            door()
