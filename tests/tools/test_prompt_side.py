"""What the prompt was taught for tools: providers that speak for others, and that know whom they answer."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.cli.support import run, write
from tests.tools.support import names, registry, stub

from foreword import (
    GLOBAL,
    AssembleContext,
    EntryRef,
    Origin,
    ProviderFailedError,
    ScopeKey,
    Source,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
)

THEIRS = Origin("them", "team", Source("them.py", 3))
A, B = ToolSchema("a", "", {}), ToolSchema("b", "", {})


@pytest.mark.parametrize("is_static", [True, False])
def test_a_provider_may_speak_for_others(is_static: bool) -> None:
    """Tools that a provider says are others' are shown as theirs, the rest as its own; hidden ones, too."""
    result = ToolProviderResult(
        [A, B], ["a", "b", "c", "d"], {"a": THEIRS, "c": THEIRS}, {"c": EntryRef("tool mask", "x", "guard")}
    )
    prompt = SystemPrompt()
    prompt.owner("bridge").tools(result if is_static else lambda: result, source=Source("bridge.py", 1))
    rendering = prompt.render_sync()
    assert rendering.tool_origins == (THEIRS, Origin("bridge", None, Source("bridge.py", 1)))
    hidden = {event.name: event for event in rendering.trace.events if event.kind == "tool"}
    assert (hidden["c"].owner, hidden["c"].scope, hidden["c"].by) == ("them", "team", 'tool mask "x" of guard')
    assert (hidden["d"].owner, hidden["d"].by) == ("bridge", str(hidden["d"].by))
    assert 'tool provider "' in str(hidden["d"].by)


def test_a_last_good_answer_keeps_its_origins() -> None:
    """When a provider fails and its last answer is used again, the tools are still those of the others."""
    answers: list[Any] = [ToolProviderResult([A], origins={"a": THEIRS})]
    prompt = SystemPrompt()
    prompt.tools(lambda: answers.pop(), on_error="last_good")
    assert prompt.render_sync().tool_origins == (THEIRS,)
    again = prompt.render_sync()
    assert [event.action for event in again.trace.events] == ["reused", "empty"]
    assert again.tool_origins == (THEIRS,)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"origins": [THEIRS]}, "gives a list as origins"),
        ({"origins": {"a": "them"}}, "gives a str among its origins; make it an Origin"),
        ({"hidden_by": {"a": THEIRS}}, "gives an Origin among its hidden_by; make it an EntryRef"),
    ],
)
def test_what_is_no_origin(fields: dict[str, Any], told: str) -> None:
    """An answer whose origins are none is a failure of its provider."""
    prompt = SystemPrompt()
    prompt.tools(lambda: ToolProviderResult([A], **fields))
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    assert told in str(caught.value)
    assert caught.value.failures[0].kind == "invalid_tool_schema"


def test_providers_know_whom_they_answer() -> None:
    """A provider is told the scope of the view that is asked; a scope that the caller names counts before that."""
    prompt = SystemPrompt()
    seen: list[ScopeKey | None] = []

    @prompt.variable("scope")
    def scope(context: AssembleContext) -> str:
        seen.append(context.scope)
        return ""

    view = prompt.scope("agent")
    other = ScopeKey("other")
    view.render_sync()
    view.render_sync(AssembleContext(scope=other))
    view.render_sync(AssembleContext(scope=GLOBAL))
    prompt.render_sync()
    assert seen == [view.key, other, GLOBAL, None]


def test_the_command_line_shows_whose_a_tool_is(tmp_path) -> None:
    """`foreword show --tools` lists each tool under the owner that registered it, in its scope."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt, ToolRegistry
        base = SystemPrompt()
        tools = ToolRegistry(base)
        prompt = base.scope("team")

        @tools.at(base.owner("billing")).register
        def refund(order: str) -> str:
            'Refund an order.'

        @tools.at(prompt).register
        async def ask(whom: str) -> str:
            'Ask.'
        """,
    )
    ran = run("show", f"{target}:prompt", "--tools")
    rows = [row.split() for row in ran.out.splitlines()]
    assert ["team", "ask"] in [row[:2] for row in rows]
    assert ["billing", "refund"] in [row[:2] for row in rows]
    assert "in scope team" in ran.out
    assert '"source": "' in run("show", f"{target}:prompt", "--json").out


class Thread(threading.Thread):
    """A thread that keeps what its work raises."""

    def __init__(self, work: Any, *arguments: Any) -> None:
        super().__init__()
        self.work, self.arguments = work, arguments
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.work(*self.arguments)
        except BaseException as error:
            self.error = error


def test_threads() -> None:
    """Standing alone, any thread may register, mask and look: nothing raises, and what is left is what is registered."""
    prompt, tools = registry()
    tools.register(stub("base"))
    view = prompt.scope("agent")
    agent = tools.at(view)
    stop = threading.Event()

    def register(at: int) -> None:
        for number in range(60):
            name = f"t{at}_{number}"
            with tools.register(stub(name)), agent.restrict(deny=[name]):
                assert name not in names(agent)
        tools.register(stub(f"kept_{at}"))

    def look() -> None:
        while not stop.is_set():
            assert "base" in names(agent)
            assert "base" in [tool.name for tool in view.render_sync().tools]

    writers = [Thread(register, at) for at in range(4)]
    readers = [Thread(look) for _ in range(2)]
    for thread in writers:
        thread.join(60)
    stop.set()
    for thread in readers:
        thread.join(60)
    assert [thread.error for thread in (*writers, *readers)] == [None] * 6
    assert sorted(names(agent)) == ["base", "kept_0", "kept_1", "kept_2", "kept_3"]
