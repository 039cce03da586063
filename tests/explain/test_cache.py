"""Cache attribution: the surviving beginning is the longest common one of the requests as the provider reads them, and
who is named is who owns the first byte that differs."""

from __future__ import annotations

import json
import os.path
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.explain.support import OPENAI, Piece, a_subject, joined, tool

from foreword import SystemPrompt, ToolSchema
from foreword.errors import UnknownCacheProfileError
from foreword.explain import (
    CacheProfile,
    CacheStep,
    Layout,
    RequestMessage,
    Subject,
    compare,
    profile_for,
    profile_named,
    tokenizer_named,
)
from foreword.explain.profiles import UNKNOWN_PROVIDER, profile_names
from foreword.wire.chunks import Usage
from foreword.wire.messages import AssistantMessage, Message, UserMessage
from foreword.wire.request import ModelConfig, tool_to_json

longest_common = os.path.commonprefix  # of any texts, not of paths alone
TOKENS = tokenizer_named("o200k_base")
NO_MINIMUM = CacheProfile("plain")


# -- a request, and a model of it ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    name: str
    owner: str
    template: tuple[str, ...]  # a part that begins with @ is the value of that variable

    @property
    def text(self) -> str:
        return "".join(f"{{{{{part[1:]}}}}}" if part.startswith("@") else part for part in self.template)


@dataclass(frozen=True)
class Request:
    """A request, told without any of our code."""

    sections: tuple[Section, ...] = ()
    values: dict[str, tuple[str, str]] = field(default_factory=dict)  # value and owner
    tools: tuple[tuple[ToolSchema, str], ...] = ()
    messages: tuple[Message, ...] = ()
    config: ModelConfig = OPENAI

    def subject(self) -> Subject:
        prompt = SystemPrompt()
        order = [tool.name for tool, _ in self.tools]
        if order:
            prompt = SystemPrompt(tool_order=[*order, "<unlisted-tools>"])
        for name, (value, owner) in self.values.items():
            prompt.owner(owner).variable(name, value)
        for at, section in enumerate(self.sections):
            prompt.owner(section.owner).section(section.name, section.text, order=at)
        for each, owner in self.tools:
            prompt.owner(owner).tools([each])
        from foreword.explain import subject_of

        subject = subject_of(prompt.render_sync(), config=self.config)
        return replace(subject, messages=tuple(map(RequestMessage, self.messages)))

    def pieces(self) -> list[Piece]:
        """The system text with its owners; the blank line before a section counts for it."""
        whole: list[Piece] = []
        for section in self.sections:
            told = [
                Piece(*self.values[part[1:]], section.name, part[1:])
                if part.startswith("@")
                else Piece(part, section.owner, section.name)
                for part in section.template
            ]
            told = list(joined(piece for piece in told if piece.text))
            if told and whole:
                whole.append(Piece("\n\n", told[0].owner if told[0].variable is None else section.owner, section.name))
            whole += told
        return whole

    def section_at(self, position: int, order: tuple[str, ...]) -> tuple[str, str] | None:
        """Name and text of the section that a byte belongs to."""
        position -= self.serialised(order).index(b',"system":"') + len(b',"system":"')
        for piece in self.pieces():
            size = len(as_json(piece.text)) - 2
            if 0 <= position < size and piece.section is not None:
                told = [each.text for each in self.pieces() if each.section == piece.section and each.text != "\n\n"]
                return piece.section, "".join(told)
            position -= size
        return None

    def stretches(self, order: tuple[str, ...]) -> list[tuple[bytes, str | None, str | None]]:
        """The request as JSON with the keys in an order, cut by owners."""
        told: list[tuple[bytes, str | None, str | None]] = [(b'{"model":' + as_json(str(self.config)), None, None)]
        owners = {section.name: section.owner for section in self.sections}
        for part in order:
            if part == "tools":
                told.append((b',"tools":[', None, None))
                for at, (each, owner) in enumerate(self.tools):
                    told.append(((b"," if at else b"") + as_json(tool_to_json(each)), owner, owner))
                told.append((b"]", None, None))
            elif part == "system":
                told.append((b',"system":"', None, None))
                told += [
                    (as_json(piece.text)[1:-1], piece.owner, owners[piece.section or ""]) for piece in self.pieces()
                ]
                told.append((b'"', None, None))
            else:
                told.append((b',"messages":[', None, None))
                for at, message in enumerate(self.messages):
                    told.append(((b"," if at else b"") + as_json(message.to_json()), None, None))
        return [*told, (b"]}", None, None)]

    def serialised(self, order: tuple[str, ...]) -> bytes:
        return b"".join(data for data, *_ in self.stretches(order))

    def owners_at(self, position: int, order: tuple[str, ...]) -> set[str | None]:
        """Whose a byte is: of a value its variable's, and its section's, which put the value there."""
        for data, *owners in self.stretches(order):
            if position < len(data):
                return set(owners)
            position -= len(data)
        return {None}


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


WORDS = ("alpha beta", 'Grüße "quoted"', "日本🦉", "line\nbreak\tand \\ more", "x" * 60, "29", "a")


def random_request(rng: random.Random) -> Request:
    values = {f"v{at}": (rng.choice(("29", "30", "Acme", "\n")), rng.choice("ABC")) for at in range(rng.randint(0, 3))}
    sections = []
    for at in range(rng.randint(1, 6)):
        template = [
            f"@{rng.choice(list(values))}" if values and rng.random() < 0.4 else f"{rng.choice(WORDS)} {at}."
            for _ in range(rng.randint(1, 3))
        ]
        sections.append(Section(f"s{at}", rng.choice("ABC"), tuple(template)))
    tools = tuple((tool(f"t{at}", rng.choice(WORDS)), rng.choice("ABC")) for at in range(rng.randint(0, 4)))
    return Request(tuple(sections), values, tools, random_messages(rng))


def random_messages(rng: random.Random) -> tuple[Message, ...]:
    kinds: list[Callable[[str], Message]] = [UserMessage, AssistantMessage]
    return tuple(rng.choice(kinds)(rng.choice(WORDS)) for _ in range(rng.randint(0, 5)))


def mutated(request: Request, rng: random.Random) -> tuple[Request, str | None]:
    """The request with one thing changed, and whose thing that is; None where it is nobody's, "" where nothing broke."""
    changed = rng.choice((in_sections, in_sections, in_values, in_tools, in_tools, in_the_rest))(request, rng)
    return changed or (replace(request, messages=(*request.messages, UserMessage("More."))), "")


def in_sections(request: Request, rng: random.Random) -> tuple[Request, str] | None:
    sections, at = list(request.sections), rng.randrange(len(request.sections))
    match rng.choice(("change", "insert", "remove", "swap")):
        case "change":
            sections[at] = replace(sections[at], template=(*sections[at].template, "And now."))
            culprit = sections[at].owner
        case "insert":
            sections.insert(at, Section("new", "N", ("Something new.",)))
            culprit = "N"
        case "remove" if len(sections) > 1:
            culprit = sections.pop(at).owner
        case "swap" if at + 1 < len(sections):
            sections[at : at + 2] = [replace(sections[at + 1], owner="S"), replace(sections[at], owner="S")]
            culprit = "S"
        case _:
            return None
    return replace(request, sections=tuple(sections)), culprit


def in_values(request: Request, rng: random.Random) -> tuple[Request, str] | None:
    if not request.values:
        return None
    name = rng.choice(list(request.values))
    is_used = any(f"@{name}" in section.template for section in request.sections)
    return replace(request, values={**request.values, name: ("other", "V")}), "V" if is_used else ""


def in_tools(request: Request, rng: random.Random) -> tuple[Request, str] | None:
    tools, what = list(request.tools), rng.choice(("change", "add", "remove"))
    if what == "add":
        tools.insert(rng.randint(0, len(tools)), (tool("new"), "N"))
        return replace(request, tools=tuple(tools)), "N"
    if not tools:
        return None
    at = rng.randrange(len(tools))
    schema, culprit = tools[at]
    tools[at : at + 1] = [(replace(schema, description="Another."), culprit)] if what == "change" else []
    return replace(request, tools=tuple(tools)), culprit


def in_the_rest(request: Request, rng: random.Random) -> tuple[Request, None] | None:
    if rng.random() < 0.5:
        return replace(request, config=ModelConfig("openai", "gpt-5.4")), None
    if not request.messages:
        return None
    return replace(request, messages=(UserMessage("Summary."), *request.messages[1:])), None


# -- the laws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "anthropic", "deepseek", "gemini", "nobody"])
def test_200_random_pairs(provider: str) -> None:
    """The surviving prefix is the longest common one of the two, and who is named owns the first byte that differs."""
    profile, pushed = profile_for(provider), 0
    for seed in range(200):
        rng = random.Random(f"{provider}{seed}")
        one = random_request(rng)
        other = mutated(one, rng)[0] if rng.random() < 0.7 else random_request(rng)
        step = compare(one.subject(), other.subject(), profile=profile, tokenizer=TOKENS)
        before, after = (each.serialised(profile.order) for each in (one, other))
        assert Layout(other.subject(), profile).serialised == after
        common = len(longest_common([before, after]))
        assert step.prefix.bytes == common
        assert step.bytes == len(after)
        if is_beginning(one, other):
            assert (step.verdict, step.broken_by, step.lost) == ("kept", None, 0)
            continue
        assert step.broken_by is not None
        owners = one.owners_at(common, profile.order) | other.owners_at(common, profile.order)
        # Where the two part in a section that is the same in both, something before it pushed it there, and is named.
        is_pushed = one.section_at(common, profile.order) == other.section_at(common, profile.order) is not None
        assert step.broken_by.owner in owners or is_pushed, (seed, step.broken_by, owners)
        pushed += is_pushed
    assert pushed <= 5


def is_beginning(one: Request, other: Request) -> bool:
    """Whether the messages of one of two requests that are the same otherwise begin with those of the other."""
    size = min(len(one.messages), len(other.messages))
    heads = [each.serialised(("tools", "system")) for each in (one, other)]
    return heads[0] == heads[1] and one.messages[:size] == other.messages[:size]


@pytest.mark.parametrize("provider", ["openai", "deepseek"])
def test_who_changed_something_is_named(provider: str) -> None:
    """Of two requests that differ in one thing its owner is named; nobody is, where nothing before the end changed."""
    named = 0
    for seed in range(400):
        rng = random.Random(seed)
        one = random_request(rng)
        other, culprit = mutated(one, rng)
        step = compare(one.subject(), other.subject(), profile=profile_for(provider), tokenizer=TOKENS)
        if culprit == "" or (
            one.serialised(("tools", "system")) == other.serialised(("tools", "system")) and (is_beginning(one, other))
        ):
            assert (step.verdict, step.broken_by, step.lost) == ("kept", None, 0), seed
        else:
            assert step.broken_by is not None, seed
            assert step.broken_by.owner == culprit, (seed, step.broken_by)
            named += 1
    assert named > 200


def test_tokens_of_the_prefix() -> None:
    """They are those that lie wholly in it: as many as the tokenizer counts there, at most one token less."""
    for seed in range(100):
        rng = random.Random(seed)
        one = random_request(rng)
        other, _ = mutated(one, rng)
        step = compare(one.subject(), other.subject(), profile=NO_MINIMUM, tokenizer=TOKENS)
        assert 0 <= step.prefix.whole_tokens <= step.prefix.tokens <= step.tokens
        assert step.predicted + step.lost <= step.tokens
        assert step.predicted == step.prefix.tokens if step.verdict == "broken" else step.predicted >= 0


# -- what a reader is told ----------------------------------------------------------------------------------------------


def build(**parts: str) -> Callable[[SystemPrompt], None]:
    def fill(prompt: SystemPrompt) -> None:
        prompt.owner("clock").variable("today", parts.get("today", "29"))
        for at, name in enumerate(("a", "b", "c")):
            text = parts.get(name, f"Section {name}. " + "Many words follow. " * 50)
            prompt.owner(f"owner-{name}").section(name, text, order=at)
        prompt.owner("shop").tools([tool("find", parts.get("find", "Finds things."))])

    return fill


def step_of(old: Subject, new: Subject, **options: Any) -> CacheStep:
    return compare(old, new, tokenizer=TOKENS, **{"profile": NO_MINIMUM, **options})


def test_bust_attribution() -> None:
    """A section by its first differing character, a tool before all else where tools come first, and nothing if nothing
    changed."""
    text = "Section b. " + "Many words follow. " * 50
    one, two = a_subject(build(b=text)), a_subject(build(b=text.replace("words", "signs", 1)))
    step = step_of(one, two)
    assert step.broken_by is not None
    assert (step.broken_by.cause, step.broken_by.name, step.broken_by.at) == ("section", "b", text.index("words"))
    assert (step.broken_by.old, step.broken_by.new, step.broken_by.owner) == ("words", "signs", "owner-b")
    third = step_of(two, a_subject(build(b="Other.", find="Finds it.")), profile=profile_named("anthropic"))
    assert third.broken_by is not None
    assert (third.broken_by.cause, third.broken_by.name) == ("tool", "find")
    assert third.prefix.whole_tokens == 0
    last = step_of(one, one)
    assert (last.verdict, last.broken_by, last.lost, last.predicted_share) == ("kept", None, 0, 1.0)


def test_a_variable_is_blamed_for_its_value() -> None:
    """The variable's owner, the section it stands in, the place in it, and the values."""
    one, two = (a_subject(build(a="It is the {{today}}th. " + "More. " * 400, today=today)) for today in ("29", "30"))
    broken_by = step_of(one, two).broken_by
    assert broken_by is not None
    assert (broken_by.cause, broken_by.name, broken_by.owner, broken_by.inside) == ("variable", "today", "clock", "a")
    assert (broken_by.old, broken_by.new, broken_by.at) == ("29", "30", len("It is the "))


def test_a_value_that_grew_is_blamed_though_the_next_byte_is_anothers() -> None:
    """Where a value grew by what stands behind it, the first byte that differs is the section's; it did not change."""
    one, two = (a_subject(build(a="Day {{today}}0 of it.", today=today)) for today in ("3", "30"))
    broken_by = step_of(one, two).broken_by
    assert broken_by is not None
    assert (broken_by.cause, broken_by.name, broken_by.owner) == ("variable", "today", "clock")


def test_a_section_that_was_taken_out_is_blamed_though_the_next_begins_alike() -> None:
    """Where what follows begins as the removed one did, the removed one is named."""

    def fill(*names: str) -> Subject:
        texts = {"x": "abc", "y": "abcdef", "z": "Z."}
        return a_subject(
            lambda prompt: [prompt.owner(name).section(name, texts[name], order=ord(name)) for name in names]
        )

    broken_by = step_of(fill("x", "y", "z"), fill("y", "z")).broken_by
    assert broken_by is not None
    assert (broken_by.name, broken_by.action) == ("x", "removed")


def test_a_context_of_a_live_prompt_is_named() -> None:
    """Runtime contexts of a live prompt come last; the one that changed is told by name and place."""

    def at(time: str) -> Subject:
        def fill(prompt: SystemPrompt) -> None:
            prompt.section("rules", "R.", order=1)
            prompt.owner("git").context("git", "clean", order=1)
            prompt.owner("clock").context("now", f"It is {time}.", order=2)

        return a_subject(fill)

    step = step_of(at("ten"), at("eleven"))
    assert step.broken_by is not None
    assert (step.broken_by.cause, step.broken_by.name, step.broken_by.owner) == ("context", "now", "clock")
    assert (step.broken_by.old, step.broken_by.new) == ("ten", "eleven")


def test_a_model_or_a_setting_that_counts_is_nobodys() -> None:
    """A changed model loses all; a setting what comes after it, and only if the provider reads it."""
    subject = a_subject(build(), UserMessage("Hi."), config=ModelConfig("anthropic", "claude-opus-5"))
    other = replace(subject, config=ModelConfig("anthropic", "claude-sonnet-4-5"))
    step = step_of(subject, other, profile=None)
    assert step.broken_by is not None
    assert (step.broken_by.cause, step.broken_by.owner) == ("model", None)
    assert step.prefix.tokens == 0
    choice = replace(subject, config=ModelConfig("anthropic", "claude-opus-5", {"tool_choice": "any"}))
    step = step_of(subject, choice, profile=None)
    assert step.broken_by is not None
    assert (step.broken_by.cause, step.broken_by.name, step.broken_by.action) == ("setting", "tool_choice", "added")
    assert step.prefix.tokens == step.tokens - len(TOKENS.sizes("Hi."))
    warm = replace(subject, config=ModelConfig("anthropic", "claude-opus-5", {"temperature": 0.1}))
    assert step_of(subject, warm, profile=None).verdict == "kept"


def test_a_prompt_for_no_model_is_taken_to_be_for_the_others() -> None:
    """That nobody said for which model a prompt is breaks nothing."""
    one, two = a_subject(build()), a_subject(build(), config=None)
    for step in (step_of(one, two, profile=None), step_of(two, one, profile=None)):
        assert (step.verdict, step.model, step.profile) == ("kept", str(OPENAI), "openai")


def test_a_lifetime_that_ran_out_is_blamed_on_nobody() -> None:
    """Also where something changed besides; but not if the provider says that it read from its cache all the same."""
    one = a_subject(build(c="More words. " * 900), time=1_000)
    late = a_subject(build(b="Changed. " * 900, c="More words. " * 900), time=1_000 + 400_000)
    step = compare(one, late, tokenizer=TOKENS)
    assert (step.verdict, step.predicted) == ("expired", 0)
    assert step.broken_by is not None
    assert (step.broken_by.cause, step.broken_by.owner) == ("lifetime", None)
    assert step.lost > 0
    assert compare(one, replace(late, time=1_000 + 200_000), tokenizer=TOKENS).verdict == "broken"
    assert compare(one, late, tokenizer=TOKENS, lifetime=3600).verdict == "broken"
    read = replace(late, usage=Usage(2_000, 10, 1_500))
    assert compare(one, read, tokenizer=TOKENS).verdict == "broken"


def test_what_is_not_ours_is_said_not_to_be() -> None:
    """Nothing changed, and still the provider read next to nothing from its cache: that is told, and nobody named."""
    long = build(a="Words and more. " * 600)
    one, two = a_subject(long), a_subject(long, usage=Usage(2_400, 10, 0))
    step = compare(one, two, tokenizer=TOKENS)
    assert (step.verdict, step.is_unexplained, step.broken_by) == ("kept", True, None)
    assert not compare(one, replace(two, usage=Usage(2_400, 10, 2_304)), tokenizer=TOKENS).is_unexplained


def test_money_is_the_loss_times_the_difference_of_prices() -> None:
    """By the prices of the model; None where they are not known, or the request is too large for the one that is."""
    long = "Words and more. " * 2_000
    one, two = a_subject(build(a="29 " + long)), a_subject(build(a="30 " + long))
    step = compare(one, two, tokenizer=TOKENS)
    assert step.lost % 128 == 0
    assert step.cost == pytest.approx(step.lost * (1.75 - 0.175) / 1_000_000)
    unknown = [replace(each, config=ModelConfig("nobody", "m")) for each in (one, two)]
    step = compare(*unknown, tokenizer=TOKENS)
    assert (step.profile, step.cost) == ("unknown", None)
    assert step.lost > 0
    price = profile_named("gemini").price("gemini-2.5-pro", 200_000)
    assert price is not None
    assert profile_named("gemini").price("gemini-2.5-pro", 200_001) is None


def test_what_is_too_short_to_be_kept_is_no_loss() -> None:
    """Below a provider's minimum nothing is ever reused, so nothing is lost."""
    one, two = a_subject(build(a="29", b="B.", c="C.")), a_subject(build(a="30", b="B.", c="C."))
    step = compare(one, two, tokenizer=TOKENS)
    assert step.broken_by is not None
    assert (step.lost, step.predicted, step.cost) == (0, 0, 0.0)


def test_hits_end_where_the_provider_says() -> None:
    """At whole steps of tokens, or at the end of a tool, a section or a message."""
    text = "One two three. " * 500
    one, two = (a_subject(build(a=text, b=f"{text}{end}")) for end in ("x", "y"))
    by_steps = compare(one, two, tokenizer=TOKENS, profile=profile_named("openai"))
    assert by_steps.predicted == by_steps.prefix.tokens // 128 * 128
    by_blocks = compare(
        *(replace(each, config=ModelConfig("anthropic", "claude-opus-5")) for each in (one, two)), tokenizer=TOKENS
    )
    section_a = len(TOKENS.sizes(text))
    tools = len(TOKENS.sizes(Layout(one, NO_MINIMUM).head[2].data.decode()))
    assert abs(by_blocks.predicted - tools - section_a) <= 2
    assert by_blocks.predicted < by_blocks.prefix.tokens


# -- the data -----------------------------------------------------------------------------------------------------------


def test_profiles_tell_their_sources() -> None:
    """Each number has a source and a date, and the profiles that the documents name are there."""
    assert set(profile_names()) == {"anthropic", "openai", "deepseek", "gemini"}
    for name in profile_names():
        profile = profile_named(name)
        facts = (*profile.minimums, *profile.lifetimes, *profile.prices, *profile.settings)
        assert facts
        for fact in facts:
            assert fact.sources
            for source in fact.sources:
                assert source.url.startswith("https://")
                assert source.read.year >= 2026
        for price in profile.prices:
            assert 0 < price.cached < price.input
        assert sorted(profile.order) == ["messages", "system", "tools"]
        assert profile.order[-1] == "messages"
        assert bool(profile.sources) == (
            (profile.order, profile.step, profile.by_blocks) != (UNKNOWN_PROVIDER.order, 1, False)
        )


def test_the_numbers_are_found() -> None:
    """By model, with the first glob that fits; by setting where the request says how long to keep."""
    openai, anthropic = profile_named("openai"), profile_named("anthropic")
    assert (openai.minimum("gpt-4o"), anthropic.minimum("claude-opus-4-5-20251101")) == (1024, 4096)
    assert (anthropic.minimum("claude-opus-5"), anthropic.minimum("claude-who-knows")) == (512, 0)
    assert openai.lifetime(OPENAI) == 300
    assert openai.lifetime(ModelConfig("openai", "gpt-5.2", {"prompt_cache_retention": "24h"})) == 86_400
    assert openai.lifetime(ModelConfig("openai", "gpt-5.6-terra")) == 1_800
    assert profile_named("google") is profile_named("gemini")
    price = anthropic.price("claude-opus-4-1-20250805", 1)
    assert price is not None
    assert (price.input, price.cached) == (15.0, 1.5)


def test_an_unknown_profile_is_an_error_that_helps() -> None:
    """Asked for by name; of a provider that is not known nothing is predicted."""
    with pytest.raises(UnknownCacheProfileError, match='did you mean "openai"'):
        profile_named("openia")
    assert profile_for("openia") is UNKNOWN_PROVIDER
    assert profile_for(None) is UNKNOWN_PROVIDER
