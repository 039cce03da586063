"""The waterfall: who hears, in which order, what a listener may do, and how it fails."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from tests.support.short import listener, names, tool

from foreword import (
    AssembleContext,
    AssembledContext,
    AssembledSection,
    ExtraKey,
    InvalidOptionError,
    ListenerError,
    ModelRef,
    PromptAssembly,
    SystemPrompt,
    ToolSchema,
    UnknownEntryError,
)

CallNext = Callable[[], Awaitable[PromptAssembly]]
pytestmark = pytest.mark.anyio


def appending(before: str, after: str) -> Any:
    """A listener that appends a section on the way in and one on the way out."""

    async def append(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        assembly.sections.append(AssembledSection(before, before))
        result = await call_next()
        result.sections.append(AssembledSection(after, after))
        return result

    return append


def simple() -> SystemPrompt:
    prompt = SystemPrompt()
    prompt.section("s", "S", order=1)
    return prompt


# Order


async def test_the_first_registered_is_outermost() -> None:
    """Listeners are nested in order of registration; on the way out it is the other way round."""
    prompt = simple()
    prompt.on_assemble(appending("in 1", "out 1"))
    prompt.on_assemble(appending("in 2", "out 2"))
    assert (await prompt.render()).text == "S\n\nin 1\n\nin 2\n\nout 2\n\nout 1"


async def test_prepend_goes_in_front_of_all() -> None:
    """A prepended listener is outermost, the last prepended one before all."""
    prompt = simple()
    prompt.on_assemble(appending("1", "-1"))
    prompt.on_assemble(appending("2", "-2"), prepend=True)
    prompt.on_assemble(appending("3", "-3"), prepend=True)
    prompt.on_assemble(appending("4", "-4"))
    assert (await prompt.render()).text.split("\n\n") == ["S", "3", "2", "1", "4", "-4", "-1", "-2", "-3"]


async def test_layers_do_not_order_listeners() -> None:
    """Over layers, too, only the order of registration counts."""
    prompt = simple()
    agent = prompt.scope("agent")
    agent.on_assemble(appending("agent", "-agent"))
    prompt.on_assemble(appending("global", "-global"))
    agent.on_assemble(appending("first", "-first"), prepend=True)
    told = (await agent.render()).text.split("\n\n")
    assert told == ["S", "first", "agent", "global", "-global", "-agent", "-first"]


async def test_a_scoped_listener_hears_its_scope_and_below() -> None:
    """A listener in a scope hears assemblies of that scope and those below, and no others."""
    prompt = simple()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    other = prompt.scope("other")
    heard: list[str] = []
    team.on_assemble(listener(lambda assembly: heard.append("!")))
    for view, times in ((prompt, 0), (team, 1), (agent, 2), (other, 2)):
        await view.render()
        assert len(heard) == times


async def test_an_undone_listener_hears_no_more() -> None:
    """A listener goes by its registration."""
    prompt = simple()
    registration = prompt.on_assemble(appending("in", "out"))
    registration.close()
    assert (await prompt.render()).text == "S"


async def test_a_listener_may_be_registered_twice() -> None:
    """One function registered twice is two listeners, each with its own undo."""
    prompt = simple()
    function = appending("in", "out")
    first = prompt.on_assemble(function)
    prompt.on_assemble(function)
    assert (await prompt.render()).text == "S\n\nin\n\nin\n\nout\n\nout"
    first.close()
    assert (await prompt.render()).text == "S\n\nin\n\nout"


# What it gets, and what it may do


async def test_a_listener_gets_what_the_assembly_is_for() -> None:
    """It is handed the context of the assembly, and texts that are resolved and not yet interpolated."""
    prompt = simple()
    prompt.section("t", lambda: "{{v}}", order=2)
    prompt.variable("v", "V")
    seen: list[Any] = []

    async def look(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        seen.append((context, assembly.sections.named("t").text, dict(assembly.variables)))
        return await call_next()

    prompt.on_assemble(look)
    context = AssembleContext(model=ModelRef("a", "b"))
    await prompt.render(context)
    assert seen == [(context, "{{v}}", {"v": "V"})]


async def test_call_next_gives_the_same_object() -> None:
    """Unless an inner listener returned another, `call_next()` gives the very assembly that was handed in."""
    prompt = simple()
    seen: list[bool] = []

    async def compare(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        seen.append(await call_next() is assembly)
        return assembly

    prompt.on_assemble(compare)
    prompt.on_assemble(compare)
    result = await prompt.assemble()
    assert seen == [True, True]
    assert names(result.sections) == ["deployment:persona", "s"]


async def test_not_calling_on_ends_the_waterfall() -> None:
    """A listener that does not call on keeps inner listeners from hearing; what it returns is the result."""
    prompt = simple()
    heard: list[str] = []

    async def stop(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        assembly.sections.append(AssembledSection("stop", "stop"))
        return assembly

    prompt.on_assemble(appending("in", "out"))
    prompt.on_assemble(stop)
    prompt.on_assemble(listener(lambda assembly: heard.append("!")))
    assert (await prompt.render()).text == "S\n\nin\n\nstop\n\nout"
    assert heard == []


async def test_a_listener_may_edit_every_part() -> None:
    """Sections, contexts, tools and variables can be changed, each by name."""
    prompt = SystemPrompt()
    for name in ("a", "b"):
        prompt.section(name, f"{name} {{{{v}}}}", order=1)
        prompt.context(name, name, order=1)
    prompt.tools([tool("a"), tool("b")])
    prompt.variable("v", "V")

    def change(assembly: PromptAssembly) -> None:
        assembly.sections.swap("a", text="A {{v}} {{w}}")
        assembly.contexts.drop("a")
        assembly.tools.swap("b", description="changed")
        assembly.tools.place(tool("c"), before="b")
        assembly.variables.update(v="V2", w="W")

    prompt.on_assemble(listener(change))
    rendering = await prompt.render()
    assert rendering.text == "A V2 W\n\nb V2"
    assert rendering.snapshot.endswith("\n\nb")
    assert [(each.name, each.description) for each in rendering.tools] == [("a", ""), ("c", ""), ("b", "changed")]


async def test_whole_lists_can_be_put_in() -> None:
    """A listener may assign new lists, of any kind of iterable, and a new dict."""
    prompt = simple()

    def change(assembly: PromptAssembly) -> None:
        assembly.sections = (AssembledSection(name, f"{{{{{name}}}}}") for name in "ab")  # type: ignore[assignment]
        assembly.contexts = [AssembledContext("c", "C")]  # type: ignore[assignment]
        assembly.tools = (tool("t"),)  # type: ignore[assignment]
        assembly.variables = {"a": "A", "b": "B"}

    prompt.on_assemble(listener(change))
    rendering = await prompt.render()
    assert (rendering.text, rendering.snapshot[-1:], names(rendering.tools)) == ("A\n\nB", "C", ["t"])


async def test_a_listener_may_return_another_assembly() -> None:
    """What a listener returns is what its outer listener gets, and what is rendered."""
    prompt = simple()
    seen: list[PromptAssembly] = []

    async def outer(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        seen.append(await call_next())
        seen[0].sections.append(AssembledSection("outer", "outer"))
        return seen[0]

    async def inner(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        await call_next()
        return PromptAssembly([AssembledSection("x", "{{v}}")], tools=[tool("t")], variables={"v": "V"})

    prompt.on_assemble(outer)
    prompt.on_assemble(inner)
    rendering = await prompt.render()
    assert (rendering.text, names(rendering.tools)) == ("V\n\nouter", ["t"])


async def test_a_listener_may_return_another_prompt_s_assembly() -> None:
    """An assembly that another prompt made counts by what is in it, and that prompt is none the worse for it."""
    other = SystemPrompt()
    other.section("o", "other {{v}}", order=1)
    other.variable("v", "V")
    other.context("c", "other", order=1)
    other.tools([tool("other")])
    prompt = simple()

    async def borrow(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        return await other.assemble()

    prompt.on_assemble(borrow)
    rendering = await prompt.render()
    assert (rendering.text, names(rendering.tools)) == ("other V", ["other"])
    assert rendering.snapshot.endswith("\n\nother")
    assert (await other.render()).text == "other V"


async def test_a_listener_may_return_an_earlier_run_s_assembly() -> None:
    """A listener that keeps its first result and returns it again gets that very result again."""
    prompt = SystemPrompt()
    calls: list[str] = []
    prompt.section("s", lambda: calls.append("!") or f"run {len(calls)}", order=1)
    kept: list[PromptAssembly] = []

    async def keep(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        kept.append(await call_next())
        return kept[0]

    registration = prompt.on_assemble(keep)
    assert [(await prompt.render()).text for _ in range(3)] == ["run 1"] * 3
    registration.close()
    assert (await prompt.render()).text == "run 4"


async def test_extras_are_the_plugins_own() -> None:
    """Under a typed key a plugin keeps something in an assembly for whoever comes after; each run has its own."""
    notes: ExtraKey[list[str]] = ExtraKey("notes", list)
    prompt = simple()
    prompt.on_assemble(listener(lambda assembly: assembly.extras.setdefault(notes, []).append("outer")))
    prompt.on_assemble(listener(lambda assembly: assembly.extras[notes].append("inner")))
    for _ in range(2):
        assert (await prompt.assemble()).extras == {notes: ["outer", "inner"]}
    assert repr(notes) == "ExtraKey('notes', list)"


async def test_what_is_added_is_not_sorted() -> None:
    """An added section stands where its listener put it; it has no order."""
    prompt = simple()
    prompt.section("t", "T", order=2)
    prompt.on_assemble(listener(lambda a: a.sections.place(AssembledSection("x", "X"), before="t")))
    prompt.on_assemble(listener(lambda a: a.sections.place(AssembledSection("y", "Y"), after="t")))
    assert (await prompt.render()).text == "S\n\nX\n\nT\n\nY"


async def test_namesakes_of_a_listener_s_making_are_rendered_both() -> None:
    """A listener may add a section of a name that is there; both are rendered."""
    prompt = simple()
    prompt.on_assemble(listener(lambda a: a.sections.append(AssembledSection("s", "again"))))
    assert (await prompt.render()).text == "S\n\nagain"


async def test_one_entry_can_be_added_in_every_run() -> None:
    """An entry that a listener made once and adds each time is its contribution each time."""
    prompt = simple()
    mine = AssembledSection("mine", "mine")
    prompt.owner("plugin").on_assemble(listener(lambda a: a.sections.append(mine)))
    for _ in range(2):
        assert (await prompt.render()).spans[-1].owner == "plugin"
    assert mine.origin is None


# Origins


async def test_what_a_listener_puts_there_bears_its_name() -> None:
    """Sections that a listener added or changed, contexts and values that it set, have it as their origin in the spans."""
    prompt = SystemPrompt()
    prompt.section("kept", "kept {{v}}", order=1)
    prompt.section("edited", "old", order=2)
    prompt.context("c", "C", order=1)
    prompt.variable("v", "V")

    def change(assembly: PromptAssembly) -> None:
        assembly.sections.swap("edited", text="new {{v}} {{w}}")
        assembly.sections.append(AssembledSection("added", "added"))
        assembly.contexts.append(AssembledContext("d", "D"))
        assembly.variables["w"] = "W"

    plugin = prompt.scope("agent").owner("plugin")
    plugin.on_assemble(listener(change))
    rendering = await plugin.render()
    made = [
        (span.section, span.variable, span.owner, span.origin.scope, span.listener)
        for span in rendering.spans
        if span.kind != "separator"
    ]
    name = "listener.listening"
    assert made == [
        ("kept", None, "main", None, None),
        ("kept", "v", "main", None, None),
        ("edited", None, "plugin", "agent", name),
        ("edited", "v", "main", None, None),
        ("edited", None, "plugin", "agent", name),
        ("edited", "w", "plugin", "agent", name),
        ("added", None, "plugin", "agent", name),
    ]
    added = rendering.snapshot_spans[-1]
    assert (added.section, added.owner, added.listener) == ("d", "plugin", name)
    assert added.source is not None
    assert added.source.file == "tests/prompt/test_transform.py"


async def test_moving_is_not_making() -> None:
    """An entry that a listener only moved keeps its origin."""
    prompt = simple()
    prompt.section("t", "T", order=2)
    prompt.owner("plugin").on_assemble(listener(lambda assembly: assembly.sections.reverse()))
    rendering = await prompt.render()
    assert rendering.text == "T\n\nS"
    assert {span.owner for span in rendering.spans} == {"main", "assembler"}


async def test_the_last_to_set_a_value_owns_it() -> None:
    """Of several listeners that set a variable the last one to change it is its origin."""
    prompt = SystemPrompt(persona="{{v}}")
    prompt.variable("v", "V")
    prompt.owner("outer").on_assemble(listener(lambda assembly: assembly.variables.update(v="1")))
    prompt.owner("inner").on_assemble(listener(lambda assembly: assembly.variables.update(v="2")))
    (span,) = (await prompt.render()).spans
    assert (span.owner, span.kind) == ("inner", "variable")


async def test_listeners_told_apart_by_what_each_did() -> None:
    """With several listeners each section is its maker's, though the maker made it on the way out."""
    prompt = simple()
    prompt.owner("one").on_assemble(appending("1", "-1"))
    prompt.owner("two").on_assemble(appending("2", "-2"))
    spans = (await prompt.render()).spans
    owners = {span.section: span.owner for span in spans if span.section}
    assert owners == {"s": "main", "1": "one", "2": "two", "-2": "two", "-1": "one"}


# Faults


async def refused(faulty: Any, message: str, owner: str = "plugin") -> ListenerError:
    prompt = simple()
    prompt.tools([tool("t")])
    prompt.owner(owner).on_assemble(faulty)
    with pytest.raises(ListenerError, match=message) as caught:
        await prompt.render()
    error = caught.value
    assert (error.kind, error.listener.kind, error.listener.owner) == ("listener_error", "listener", owner)
    assert "tests/prompt/test_transform.py:" in str(error)
    return error


async def test_call_next_counts_once() -> None:
    """A second `call_next()` fails the assembly and names the listener."""

    async def twice(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        await call_next()
        return await call_next()

    await refused(twice, r"second time.*at most once")


async def test_one_call_next_is_awaited_once() -> None:
    """Awaiting the same `call_next()` again is a second call, too."""

    async def twice(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        calling = call_next()
        await calling
        return await calling

    await refused(twice, "second time")


async def test_a_call_next_kept_for_later_is_late() -> None:
    """A `call_next` that somebody calls after its listener returned fails the assembly, naming whose it is."""
    kept: list[CallNext] = []

    async def keeping(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        kept.append(call_next)
        return assembly

    async def late(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        await call_next()
        return await kept[0]()

    prompt = simple()
    prompt.owner("late").on_assemble(late)
    prompt.owner("keeper").on_assemble(keeping)
    with pytest.raises(ListenerError, match="after it had returned") as caught:
        await prompt.render()
    assert caught.value.listener.owner == "keeper"


async def test_a_late_call_next_reaches_no_finished_assembly() -> None:
    """After the assembly is made a kept `call_next` raises to whoever awaits it, and changes nothing."""
    kept: list[CallNext] = []

    async def keeping(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        kept.append(call_next)
        return await call_next()

    prompt = simple()
    prompt.on_assemble(keeping)
    rendering = await prompt.render()
    with pytest.raises(ListenerError):
        await kept[0]()
    assert rendering.text == "S"
    assert (await prompt.render()).text == "S"


async def test_a_call_next_never_awaited_counts_as_not_called() -> None:
    """Without `await` nothing is called, inner listeners do not hear, and Python warns of nothing."""
    prompt = simple()
    heard: list[str] = []

    async def forgetful(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        call_next()
        return assembly

    prompt.on_assemble(forgetful)
    prompt.on_assemble(listener(lambda assembly: heard.append("!")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert (await prompt.render()).text == "S"
        gc.collect()
    assert heard == []
    assert caught == []


async def test_an_unawaited_call_next_leaves_the_one_call_free() -> None:
    """One that was never awaited does not count: another may still be called."""
    prompt = simple()

    async def hesitant(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        call_next()
        return await call_next()

    prompt.on_assemble(hesitant)
    prompt.on_assemble(appending("in", "out"))
    assert (await prompt.render()).text == "S\n\nin\n\nout"


async def test_returning_call_next_without_await_is_a_wrong_answer() -> None:
    """What is returned must be the assembly, not the promise of one."""

    async def promising(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> Any:
        return call_next()

    await refused(promising, "return the assembly")


@pytest.mark.parametrize("answer", [None, "text", [], 0], ids=repr)
async def test_a_listener_returns_an_assembly(answer: object) -> None:
    """Anything else, None first of all, is an error that says what to return."""

    async def wrong(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> Any:
        await call_next()
        return answer

    await refused(wrong, "gave back .*; return the assembly")


async def test_a_listener_is_async() -> None:
    """A plain function is told to become async, though it returns the assembly."""
    await refused(lambda assembly, context, call_next: assembly, "is not async.*async def")


async def test_a_plain_function_may_pass_an_awaitable_on() -> None:
    """What matters is that the answer can be awaited: a partial, a wrapper or a plain function of that kind will do."""
    prompt = simple()
    prompt.on_assemble(lambda assembly, context, call_next: call_next())
    prompt.on_assemble(appending("in", "out"))
    assert (await prompt.render()).text == "S\n\nin\n\nout"


async def test_a_raising_listener_fails_the_assembly() -> None:
    """An error out of a listener is told with its name; the error itself is the cause."""

    async def raising(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        raise KeyError("tenant")

    error = await refused(raising, "raised KeyError: 'tenant'")
    assert isinstance(error.__cause__, KeyError)
    assert "raising" in error.listener.name


async def test_an_unknown_entry_is_the_listener_s_error() -> None:
    """Asking an assembly for an entry that is not there names the listener, the entry, and those there are."""
    error = await refused(listener(lambda assembly: assembly.sections.swap("t", text="x")), "known sections")
    assert isinstance(error.__cause__, UnknownEntryError)


@pytest.mark.parametrize("place", ["outer", "inner"])
async def test_the_listener_that_raised_is_named(place: str) -> None:
    """An error that passes through other listeners is still that of the listener that raised."""

    def raise_error(assembly: PromptAssembly) -> None:
        raise ValueError("boom")

    prompt = simple()
    for owner in ("outer", "inner"):
        change = raise_error if owner == place else (lambda assembly: None)
        prompt.owner(owner).on_assemble(listener(change))
    with pytest.raises(ListenerError) as caught:
        await prompt.render()
    assert caught.value.listener.owner == place


async def test_a_caught_failure_fails_the_assembly_all_the_same() -> None:
    """An outer listener that catches an inner one's error cannot hide it: the assembly fails with it."""

    async def catching(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        try:
            return await call_next()
        except ListenerError:
            return assembly

    def raise_error(assembly: PromptAssembly) -> None:
        raise ValueError("boom")

    prompt = simple()
    prompt.owner("catcher").on_assemble(catching)
    prompt.owner("culprit").on_assemble(listener(raise_error))
    with pytest.raises(ListenerError, match="ValueError: boom") as caught:
        await prompt.render()
    assert caught.value.listener.owner == "culprit"


async def test_a_faulty_call_of_one_s_own_cannot_be_caught_either() -> None:
    """Also a listener that catches its own second `call_next()` fails the assembly."""

    async def stubborn(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        result = await call_next()
        with suppress(ListenerError):
            await call_next()
        return result

    await refused(stubborn, "second time")


async def test_an_exit_passes_through_the_waterfall() -> None:
    """KeyboardInterrupt is nobody's failure: it propagates as it is."""

    async def interrupted(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        raise KeyboardInterrupt

    prompt = simple()
    prompt.on_assemble(interrupted)
    with pytest.raises(KeyboardInterrupt):
        await prompt.render()


UNFIT: dict[str, tuple[Callable[[PromptAssembly], object], str]] = {
    "a string among the sections": (lambda a: a.sections.append("text"), r"AssembledSection\(name, text\)"),  # type: ignore[arg-type]
    "a context among the sections": (
        lambda a: a.sections.append(AssembledContext("c", "C")),  # type: ignore[arg-type]
        r"AssembledSection\(name, text\)",
    ),
    "a section among the contexts": (
        lambda a: a.contexts.append(AssembledSection("c", "C")),  # type: ignore[arg-type]
        r"AssembledContext\(name, text\)",
    ),
    "a dict among the tools": (lambda a: a.tools.append({"name": "t"}), "ToolSchema"),  # type: ignore[arg-type]
    "a number as a value": (lambda a: a.variables.update(v=5), "variable v"),  # type: ignore[arg-type]
    "a number as a variable's name": (lambda a: a.variables.update({5: "x"}), "variable"),  # type: ignore[dict-item]
    "no dict of variables": (lambda a: setattr(a, "variables", None), "variables"),
    "no list of sections": (lambda a: setattr(a, "sections", None), "sections|iterable"),
    "a section without text": (lambda a: a.sections.append(AssembledSection("x", None)), "text"),  # type: ignore[arg-type]
    "a context without text": (lambda a: a.contexts.append(AssembledContext("x", 5)), "text"),  # type: ignore[arg-type]
    "a section without name": (lambda a: a.sections.append(AssembledSection(None, "x")), "name"),  # type: ignore[arg-type]
    "a section with an empty name": (lambda a: a.sections.append(AssembledSection("", "x")), "name"),
    "a name that UTF-8 cannot spell": (lambda a: a.contexts.append(AssembledContext("\ud800", "x")), "UTF-8"),
    "a tool that UTF-8 cannot spell": (lambda a: a.tools.append(ToolSchema("\ud800", "", {})), "name"),
    "a description that UTF-8 cannot spell": (lambda a: a.tools.append(ToolSchema("t", "\ud800", {})), "description"),
    "a variable that UTF-8 cannot spell": (lambda a: a.variables.update({"\ud800": "x"}), "UTF-8"),
    "a text swapped for none": (lambda a: a.sections.swap("s", text=None), "text"),
    "a tool without name": (lambda a: a.tools.append(ToolSchema(5, "", {})), "name"),  # type: ignore[arg-type]
    "a change of no field": (lambda a: a.sections.swap("s", body="x"), "body"),
    "no place": (lambda a: a.sections.place(AssembledSection("x", "x")), "before=NAME or after=NAME"),
}


@pytest.mark.parametrize("how", UNFIT)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_a_listener_puts_in_must_fit(how: str, when: str) -> None:
    """Something in an assembly that is no entry of its kind is the fault of the listener that put it there, before or
    after it called on."""
    change, message = UNFIT[how]

    async def faulty(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        if when == "before":
            change(assembly)
        result = await call_next()
        if when == "after":
            change(assembly)
        return result

    await refused(faulty, message)


@pytest.mark.parametrize("given", [None, 5, "listener"], ids=repr)
async def test_a_listener_is_something_to_call(given: Any) -> None:
    """What cannot be called is refused when it is registered, for both kinds of listeners."""
    prompt = simple()
    for register in (prompt.on_assemble, prompt.on_change):
        with pytest.raises(InvalidOptionError, match=r"of main .* must be a function"):
            register(given)
    assert (await prompt.render()).text == "S"


async def two(assembly: Any, context: Any) -> Any: ...
async def four(assembly: Any, context: Any, call_next: Any, more: Any) -> Any: ...
async def by_name(assembly: Any, context: Any, *, call_next: Any) -> Any: ...


@pytest.mark.parametrize("given", [lambda: 1, two, four, by_name], ids=["none", "two", "four", "by name"])
async def test_a_listener_takes_three_arguments(given: Any) -> None:
    """One that could not be called is refused when it is registered, in both ways, with its name and its place."""
    prompt = simple()
    with pytest.raises(InvalidOptionError, match=r"of main .*test_transform.py:.*must take three arguments") as caught:
        prompt.on_assemble(given)
    assert caught.value.entry.name == given.__qualname__
    with pytest.raises(InvalidOptionError, match="must take three arguments"):
        prompt.on_assemble()(given)
    assert (await prompt.render()).text == "S"


async def test_a_listener_may_take_any_arguments() -> None:
    """What can be called with three arguments is a listener, however it says so."""
    prompt = simple()

    async def listener(first: int, *told: Any, more: str = "") -> Any:
        return await told[-1]()

    prompt.on_assemble(partial(listener))
    prompt.on_assemble(partial(lambda one, two, three, four: four(), 1))
    assert (await prompt.render()).text == "S"


async def test_a_change_is_told_to_plain_functions() -> None:
    """An async one would never be awaited, so it is refused when it is registered."""
    prompt = simple()

    async def hear() -> None: ...

    with pytest.raises(InvalidOptionError, match=r'hear" of main .* must be a plain function'):
        prompt.on_change(hear)
    prompt.section("x", "X", order=2)


async def test_a_failed_waterfall_leaves_the_registry_as_it_was() -> None:
    """What listeners did to an assembly that failed is gone with it."""
    prompt = simple()

    async def wreck(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        assembly.sections.clear()
        assembly.variables["v"] = "x"
        raise ValueError("boom")

    registration = prompt.on_assemble(wreck)
    with pytest.raises(ListenerError):
        await prompt.render()
    registration.close()
    assembly = await prompt.assemble()
    assert names(assembly.sections) == ["deployment:persona", "s"]
    assert assembly.variables == {}
