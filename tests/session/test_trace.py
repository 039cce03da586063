"""What explains a step, over many steps: it is told as what differs from the step before, and reads as if told whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from hypothesis import given
from hypothesis import strategies as st
from tests.session.support import attempt, header_of

from foreword import SystemPrompt, open_log
from foreword.explain import subject_of
from foreword.prompt.sensitive import masked_spans
from foreword.session import (
    RUNTIME_CONTEXT,
    ContextPart,
    MessageSource,
    RequestEnded,
    Session,
    StepEnd,
    StepStart,
    TurnStart,
    UserSaid,
    rebuild,
    step_trace,
)
from foreword.testing.memory_store import MemoryStore
from foreword.wire.messages import UserMessage

if TYPE_CHECKING:
    from foreword import Rendering
    from foreword.prompt.spans import Spans
    from foreword.session import StepExplanation

texts = st.sampled_from(
    ["", "Plain.", "{{who}}", "To {{who}}.", "{{who}} and {{place}}", "In {{place}}, {{who}}: {{who}}"]
)
values = st.sampled_from(["", "Ada", "Grace Hopper", "\N{SNOWMAN}\n\nx"])


@dataclass
class Facts:
    """What a prompt says, all of which may change from step to step."""

    sections: dict[int, str] = field(default_factory=lambda: dict.fromkeys(range(7), "Plain."))
    contexts: dict[int, str] = field(default_factory=lambda: dict.fromkeys(range(2), "Calm, says {{who}}."))
    values: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("who", "place"), "Ada"))

    def prompt(self) -> SystemPrompt:
        prompt = SystemPrompt()
        for number in self.sections:
            prompt.section(f"clerk:section-{number}", lambda number=number: self.sections[number], order=number)  # type: ignore[misc]
        for number in self.contexts:
            prompt.context(f"clerk:context-{number}", lambda number=number: self.contexts[number], order=number)  # type: ignore[misc]
        for name in self.values:
            prompt.variable(name, lambda name=name: self.values[name])  # type: ignore[misc]
        return prompt


changes = st.one_of(
    st.tuples(st.just("sections"), st.integers(0, 6), texts),
    st.tuples(st.just("contexts"), st.integers(0, 1), texts),
    st.tuples(st.just("values"), st.sampled_from(["who", "place"]), values),
)


@given(st.lists(st.lists(changes, max_size=3), min_size=1, max_size=8))
def test_any_step_is_explained_as_it_was(steps: list[list[tuple[str, int | str, str]]]) -> None:
    """Whatever texts and values change between steps: the log gives the spans, owners and trace of each."""
    anyio.run(_any_step_is_explained, steps)


async def _any_step_is_explained(steps: list[list[tuple[str, int | str, str]]]) -> None:
    facts = Facts()
    prompt = facts.prompt()
    async with MemoryStore() as store, open_log(store) as log:
        session = await log.create()
        session.append(TurnStart(1))
        said: list[Rendering] = []
        for changed in steps:
            for what, key, text in changed:
                getattr(facts, what)[key] = text
            said.append(prompt.render_sync())
            await _log_step(session, said[-1])
        for number, rendering in enumerate(said, 1):
            told = (await rebuild(log, f"{session.id}@{number}")).explanation
            assert told is not None
            assert _explained(told) == _explained(rendering)


@given(
    st.lists(texts, min_size=1, max_size=4),
    st.lists(st.tuples(texts, st.booleans()), max_size=4),
    st.tuples(values, st.sampled_from(["SECRET", "SECRET 2", "[SECRET]", "SECRET\n\nS"])),
)
def test_a_masked_log_explains_all_that_it_keeps(
    sections: list[str], contexts: list[tuple[str, bool]], said: tuple[str, str]
) -> None:
    """In a log that does not hold what is sensitive, each stretch that is left has the owner and the variable that it
    had, and so has each mark; a context that is sensitive, or tells a sensitive value, is one mark."""
    anyio.run(_a_masked_log_explains, sections, contexts, said)


async def _a_masked_log_explains(sections: list[str], contexts: list[tuple[str, bool]], said: tuple[str, str]) -> None:
    prompt = SystemPrompt()
    prompt.variable("place", said[0])
    prompt.variable("who", said[1], sensitive=True)
    for number, text in enumerate(sections):
        prompt.owner(f"plugin-{number}").section(f"section-{number}", text, order=number)
    for number, (text, sensitive) in enumerate(contexts):
        told = f"{number}: {'SECRET ' * sensitive}{text}"
        prompt.owner(f"plugin-{number}").context(f"context-{number}", told, order=number, sensitive=sensitive)
    rendering = prompt.render_sync()
    async with MemoryStore() as store, open_log(store, content="masked") as log:
        session = await log.create()
        session.append(TurnStart(1))
        await _log_step(session, rendering)
        assert await store.search([b"SECRET"]) == []
        explanation = (await rebuild(log, session.id, if_erased="mark")).explanation
    assert explanation is not None
    hidden = {part.name for at, part in enumerate(subject_of(rendering).contexts) if at in rendering.snapshot_masks}
    shown = masked_spans(rendering.snapshot_spans, frozenset(), hidden)
    assert _owned(explanation.spans) == _owned(rendering.masked_spans)
    assert _owned(explanation.snapshot_spans) == _owned(shown)


def _owned(spans: Spans) -> tuple[str, list[tuple[int, int, str, str | None, str | None]]]:
    told = [(span.start, span.end, span.origin.owner, span.section, span.variable) for span in spans]
    return spans.text, told


async def _log_step(session: Session, rendering: Rendering) -> None:
    number = session.step + 1
    session.append(StepStart(1, number, step_trace(rendering, session.trace)))
    if rendering.snapshot:
        parts = enumerate(subject_of(rendering).contexts)
        told = tuple(ContextPart(part.name, part.text, at in rendering.snapshot_masks) for at, part in parts)
        session.append(UserSaid(UserMessage(rendering.snapshot), MessageSource(RUNTIME_CONTEXT, "foreword", told)))
    attempt(session, header_of(rendering))
    session.append(RequestEnded(1, number, 1, "stop"))
    session.append(StepEnd(1, number))
    await session.flush()


def _explained(it: Rendering | StepExplanation) -> object:
    spans = [
        [(span.start, span.end, span.kind, str(span.origin), span.section, span.variable) for span in each]
        for each in (it.spans, it.snapshot_spans)
    ]
    return spans, it.spans.text, [str(each) for each in it.tool_origins], it.trace.to_json()
