"""Why something is missing: every reason that there is, with who is behind it and a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.explain.support import Clock, Script, a_log, tool

from foreword import (
    AssembleContext,
    AssembledSection,
    PromptAssembly,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
    render,
)
from foreword.errors import EntryRef
from foreword.explain import Missing, Subject, subject_at, subject_of, why_missing
from foreword.explain.absence import EntryKind


def rendered(build: Callable[[SystemPrompt], SystemPrompt | None]) -> Any:
    prompt = SystemPrompt(persona="You are a clerk.")
    made = build(prompt) or prompt
    return made.render_sync(AssembleContext(scope=made))


def never_registered(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("acme:rules", "Rules.", order=1)


def when(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("x", "X.", order=1, when=lambda context: False)


def shadowed(prompt: SystemPrompt) -> SystemPrompt:
    prompt.owner("acme").section("x", "X.", order=1)
    team = prompt.scope("team")
    team.section("x", "", order=1)
    return team


def empty(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("x", "", order=1)


def suppressed(prompt: SystemPrompt) -> None:
    prompt.owner("acme").context("x", "X.", order=1)
    prompt.owner("quiet").suppress_runtime_context()


def skipped(prompt: SystemPrompt) -> None:
    async def fail() -> str:
        raise RuntimeError("no network")

    prompt.owner("acme").section("x", fail, order=1, on_error="skip")


def hidden(prompt: SystemPrompt) -> None:
    ref = EntryRef("mask", "support", "deployment", None, "foreword.yaml:9")
    prompt.owner("acme").tools(lambda: ToolProviderResult([tool("y")], known_names=["x", "y"], hidden_by={"x": ref}))


def requires_tools(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("x", "Use it.", order=1, requires_tools=["refund"])
    prompt.owner("acme").tools(lambda: ToolProviderResult([], known_names=["refund"]))


def disabled(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("x", "X.", order=1)
    prompt.owner("deployment").override("x", enabled=False, why="legal, until 2027-01")


def complete(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("x", "X.", order=1)
    prompt.owner("sole").section("only", "Only this.", order=2, complete=True)


def removed(prompt: SystemPrompt) -> None:
    prompt.owner("acme").section("x", "X.", order=1)

    @prompt.owner("strict").on_assemble
    async def take_out(assembly, context, call_next):
        assembly.sections.drop("x")
        return await call_next()


def no_value(prompt: SystemPrompt) -> None:
    prompt.owner("acme").variable("x", None)


CASES: dict[str, tuple[Callable[[SystemPrompt], SystemPrompt | None], str | None, str, str]] = {
    # reason: how, whose it is, who is behind it, what the way out says
    "never_registered": (never_registered, None, "", "known names: acme:rules"),
    "when": (when, "acme", "", "its condition"),
    "empty": (empty, "acme", "", "give it a text"),
    "suppressed": (suppressed, "acme", "quiet", "suppression"),
    "skipped": (skipped, "acme", "no network", 'on_error="fail"'),
    "hidden": (hidden, "acme", "foreword.yaml:9", "allow or deny"),
    "requires_tools": (requires_tools, "acme", "refund", "requires_tools"),
    "disabled": (disabled, "acme", "legal, until 2027-01", "that line"),
    "complete": (complete, "acme", 'section "only" of sole', "complete"),
    "removed": (removed, "acme", "take_out", "protect"),
    "no_value": (no_value, "acme", "", "give it a value"),
}


def check(missing: Missing | None, reason: str) -> None:
    _, owner, behind, way_out = CASES[reason]
    assert missing is not None
    assert missing.reason == reason
    if reason != "no_value":
        assert missing.owner == owner
    assert behind in f"{missing.why} {missing.by}"
    assert way_out in missing.way_out


@pytest.mark.parametrize("reason", CASES)
def test_every_reason_is_told(reason: str) -> None:
    """The reason in one word, whose the missing thing is, who is behind it, and what to do."""
    check(why_missing(subject_of(rendered(CASES[reason][0])), "x"), reason)


@pytest.mark.anyio
@pytest.mark.parametrize("reason", CASES)
async def test_every_reason_is_told_from_the_log(reason: str) -> None:
    """The same from the log alone, with the registry gone."""
    prompt = SystemPrompt(persona="You are a clerk.")
    made = CASES[reason][0](prompt) or prompt
    rendering = await made.render(AssembleContext(scope=made))
    async with a_log(clock := Clock()) as log:
        session = await log.create("s")
        Script(session, clock).step(rendering, "Hi.")
        await session.flush()
        check(why_missing(await subject_at(log, "s"), "x"), reason)


def test_a_shadow_that_went_itself_is_told() -> None:
    """What is shadowed by something that says nothing: the shadow is to blame, and both are in the story."""
    missing = why_missing(subject_of(rendered(shadowed)), "x")
    assert missing is not None
    assert [event.action for event in missing.events] == ["shadowed", "empty"]
    assert (missing.reason, missing.owner, missing.scope) == ("empty", "team", "team")


def test_the_tool_that_a_section_needs_is_explained_too() -> None:
    """A section that went with its tool tells why that tool is not there."""
    missing = why_missing(subject_of(rendered(requires_tools)), "x")
    assert missing is not None
    assert missing.needs is not None
    assert (missing.needs.name, missing.needs.reason, missing.needs.kind) == ("refund", "hidden", "tool")


def test_what_is_there_is_not_missing() -> None:
    """Sections, contexts, tools and variables in the prompt have no reason to be missing."""

    def build(prompt: SystemPrompt) -> None:
        prompt.variable("v", "x")
        prompt.section("s", "{{v}}", order=1)
        prompt.context("c", "C.", order=1)
        prompt.tools([ToolSchema("t", "T.", {"type": "object"})])

    subject = subject_of(rendered(build))
    assert [why_missing(subject, name) for name in ("v", "s", "c", "t")] == [None] * 4


@pytest.mark.parametrize(("kind", "reason"), [("section", "when"), ("tool", "never_registered"), (None, "when")])
def test_one_name_for_several_kinds(kind: EntryKind | None, reason: str) -> None:
    """A kind asks about that kind alone."""
    missing = why_missing(subject_of(rendered(when)), "x", kind)
    assert missing is not None
    assert missing.reason == reason


@pytest.mark.anyio
async def test_a_step_without_a_trace_says_so() -> None:
    """Where nobody recorded how a prompt was assembled, that is the answer, and no guess."""
    async with a_log(clock := Clock()) as log:
        session = await log.create("s")
        Script(session, clock).step(rendered(when), "Hi.", traced=False)
        await session.flush()
        subject: Subject = await subject_at(log, "s")
        missing = why_missing(subject, "x")
        assert missing is not None
        assert missing.reason == "not_recorded"
        assert [part.name for part in subject.sections] == ["#1"]


@pytest.mark.anyio
async def test_a_step_as_it_was_sent_says_what_was_sent() -> None:
    """What was logged without an assembly, as recorders do, holds what was sent: that is where to look, and nothing that
    only an agent's loop could have done is advised."""
    sent = render(PromptAssembly([AssembledSection("rules", "Rules."), AssembledSection("tone", "Kind.")]))
    async with a_log(clock := Clock()) as log:
        session = await log.create("s")
        Script(session, clock).step(sent, "Hi.")
        await session.flush()
        subject = await subject_at(log, "s")
        assert why_missing(subject, "rules") is None
        missing, no_tool = why_missing(subject, "rule"), why_missing(subject, "rule", "tool")
        assert missing is not None
        assert no_tool is not None
        assert (missing.reason, "s@1/1 is the work of a recorder" in missing.why) == ("not_recorded", True)
        assert missing.way_out == 'look among what was sent: did you mean "rules"? known names: rules, tone'
        assert no_tool.way_out == "look among what was sent: there are no known tools"
