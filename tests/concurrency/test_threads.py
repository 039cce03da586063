"""One `SystemPrompt` and several threads that register, undo, replace, move and render at once."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.concurrency.support import in_threads

from foreword import (
    AssembleContext,
    DuplicateEntryError,
    InactiveContextError,
    PromptAssembly,
    ProtectedSectionShadowError,
    ProtectionConflictError,
    Registration,
    Rendering,
    ScopeAlreadyBoundError,
    ScopeCycleError,
    ScopeKey,
    SystemPrompt,
    ToolSchema,
    bind_parent,
)

THREADS = 8


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    """Threads take turns after a few instructions, so that what can go wrong between two of them does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# -- eight threads -------------------------------------------------------------------------------------------------------


class Worker:
    """Registers, undoes and replaces under names of its own, and sees in each rendering just what it has done."""

    def __init__(self, view: SystemPrompt, number: int) -> None:
        self.view, self.number = view, number
        self.chance = Random(number)
        self.registrations: dict[str, Registration] = {}
        self.state: dict[str, str] = {}  # what it has registered, by kind

    def value(self) -> str:
        return f"{self.number}:{self.chance.randrange(1000)}"

    def register(self, kind: str, value: str) -> Registration:
        view, number = self.view, self.number
        if kind == "section":
            return view.section(f"s{number}", value, order=number)
        if kind == "provided":
            return view.section(f"p{number}", lambda: f"{{{{common}}}}/{value}", order=100 + number)
        if kind == "context":
            return view.context(f"c{number}", value, order=number)
        if kind == "variable":
            return view.variable(f"v{number}", value)
        return view.tools([ToolSchema(f"t{number}", value, {"type": "object"})])

    def change(self) -> None:
        kind = self.chance.choice(["section", "provided", "context", "variable", "tool"])
        held = self.registrations.get(kind)
        value = self.value()
        if held is None:
            self.registrations[kind] = self.register(kind, value)
            self.state[kind] = value
        elif kind == "tool" or self.chance.random() < 0.5:
            held.close()
            del self.registrations[kind], self.state[kind]
        else:
            replaced: Any = held
            replaced.replace((lambda: f"{{{{common}}}}/{value}") if kind == "provided" else value)
            self.state[kind] = value

    def check(self) -> None:
        assembly = self.view.assemble_sync()
        own = {
            "section": [each.text for each in assembly.sections if each.name == f"s{self.number}"],
            "provided": [each.text for each in assembly.sections if each.name == f"p{self.number}"],
            "context": [each.text for each in assembly.contexts if each.name == f"c{self.number}"],
            "variable": [assembly.variables[name] for name in assembly.variables if name == f"v{self.number}"],
            "tool": [each.description for each in assembly.tools if each.name == f"t{self.number}"],
        }
        expected = {kind: [value] for kind, value in self.state.items()}
        if "provided" in expected:
            expected["provided"] = [f"{{{{common}}}}/{self.state['provided']}"]
        assert own == {kind: expected.get(kind, []) for kind in own}
        check_legal(self.view.render_sync())

    def work(self) -> None:
        for _ in range(150):
            self.change()
            self.check()


def check_legal(rendering: Rendering) -> None:
    """Each paragraph is whole, at its place, and of one worker; names do not occur twice."""
    paragraphs = rendering.text.split("\n\n")
    assert paragraphs[-1] == "end", "what no thread touches is always there"
    plain = [each for each in paragraphs[:-1] if "/" not in each]
    provided = [each.removeprefix("value/") for each in paragraphs[:-1] if "/" in each]
    assert paragraphs[:-1] == plain + [f"value/{each}" for each in provided]
    for held in (plain, provided, rendering.snapshot.split("\n\n")[1:]):
        numbers = [int(each.partition(":")[0]) for each in held]
        assert numbers == sorted(set(numbers))
    names = [tool.name for tool in rendering.tools]
    assert names == sorted(set(names))
    for tool in rendering.tools:
        assert tool.description.startswith(f"{tool.name[1:]}:")


def stage(workers: int) -> tuple[SystemPrompt, list[Worker]]:
    """A prompt, and workers in the global layer, in a scope that they share, and in one below it."""
    prompt = SystemPrompt()
    prompt.variable("common", "value")
    prompt.section("end", "end", order=1000)
    parent = prompt.scope("parent")
    views = [prompt, parent, prompt.scope("child", parent)]
    return prompt, [Worker(views[number % 3].owner(f"owner{number}"), number) for number in range(workers)]


@pytest.mark.slow
def test_eight_threads_that_register_undo_replace_and_render() -> None:
    """Each sees its own changes at once and no torn state; at the end all scopes equal those of a fresh registry."""
    prompt, workers = stage(THREADS)
    changes: Counter[str] = Counter()
    prompt.on_change(lambda: changes.update(["change"]))
    in_threads(*(worker.work for worker in workers))
    _, fresh_workers = stage(THREADS)
    for worker, fresh in zip(workers, fresh_workers, strict=True):
        for kind, value in worker.state.items():
            fresh.register(kind, value)
    for worker, fresh in zip(workers, fresh_workers, strict=True):
        now, then = worker.view.render_sync(), fresh.view.render_sync()
        assert now.text == then.text
        assert now.snapshot == then.snapshot
        assert now.tools == then.tools
        assert worker.view.assemble_sync().variables == fresh.view.assemble_sync().variables
        assert [each.owner for each in now.spans] == [each.owner for each in then.spans]
    assert changes["change"] > 0
    for worker in workers:
        worker.view.close()
    assert prompt.render_sync().text == "end"
    assert prompt.render_sync().tools == ()
    for number in range(THREADS):  # every name is free again
        prompt.section(f"s{number}", "again", order=number)


def test_a_scope_whose_layer_comes_and_goes_can_always_be_rendered() -> None:
    """A scope that is emptied in one thread is rendered in another, with or without what was there."""
    prompt = SystemPrompt(persona="base")
    child = prompt.scope("child", prompt.scope("parent"))
    context = AssembleContext(scope=child)
    done = threading.Event()

    def come_and_go() -> None:
        try:
            for _ in range(1500):
                child.section("s", "here", order=1).close()
        finally:
            done.set()

    def render() -> None:
        while not done.is_set():
            assert prompt.render_sync(context).text in ("base", "base\n\nhere")

    in_threads(come_and_go, render, render)
    assert prompt.render_sync(context).text == "base"


# -- one registration, many threads --------------------------------------------------------------------------------------


def test_of_many_threads_one_gets_a_name() -> None:
    """The others are told who holds it, and what they tried is nowhere."""
    for _ in range(50):
        prompt = SystemPrompt()
        won: list[str] = []

        def take(owner: str) -> Callable[[], None]:
            def register() -> None:
                with suppress(DuplicateEntryError):
                    prompt.owner(owner).section("s", owner, order=1)  # noqa: B023
                    won.append(owner)  # noqa: B023

            return register

        in_threads(*(take(f"owner{number}") for number in range(4)))
        assert len(won) == 1
        assert prompt.render_sync().text == won[0]


def test_a_registration_closed_by_many_threads_is_undone_once() -> None:
    """One change is told, and a namesake registered right after is not removed."""
    for _ in range(50):
        prompt = SystemPrompt()
        registration = prompt.section("s", "old", order=1)
        changes: list[int] = []
        prompt.on_change(lambda: changes.append(1))  # noqa: B023

        def replace_by_namesake() -> None:
            registration.close()  # noqa: B023
            with suppress(DuplicateEntryError):
                prompt.section("s", "new", order=1)  # noqa: B023

        in_threads(*[replace_by_namesake] * 4)
        assert prompt.render_sync().text == "new"
        assert len(changes) == 2


def test_replacing_from_many_threads_loses_nothing() -> None:
    """Every `replace` of an open registration succeeds; the text is that of one of them, and closing takes it away."""
    for _ in range(50):
        prompt = SystemPrompt()
        registration = prompt.section("s", "first", order=1)
        changes: list[int] = []
        prompt.on_change(lambda: changes.append(1))  # noqa: B023

        def put(text: str) -> Callable[[], None]:
            return lambda: registration.replace(text)  # noqa: B023

        in_threads(*(put(f"text {number}") for number in range(4)))
        assert prompt.render_sync().text in {f"text {number}" for number in range(4)}
        assert len(changes) == 4
        registration.close()
        assert prompt.render_sync().text == ""


def test_closing_while_another_thread_replaces_takes_the_entry_away() -> None:
    """After `close()` nothing of the registration is left, whether the `replace` came before it or was refused."""
    for _ in range(300):
        prompt = SystemPrompt()
        scope = prompt.scope("scope")
        registration = scope.section("s", "first", order=1)
        variable = scope.variable("v", "first")

        def replace() -> None:
            for each in (registration, variable):  # noqa: B023
                with suppress(InactiveContextError):
                    each.replace("second")

        def close() -> None:
            for each in (registration, variable):  # noqa: B023
                each.close()

        in_threads(replace, close)
        assert scope.render_sync().text == ""
        assert scope.assemble_sync().variables == {}
        prompt.protect(sections=["s"])  # nor does a count of shadows remember it


def test_closing_a_view_while_another_thread_registers_through_it() -> None:
    """What is registered in time is undone, what comes too late is refused: nothing stays behind a closed view."""
    for _ in range(150):
        prompt = SystemPrompt()
        view = prompt.owner("leaving")
        heard: list[str] = []

        async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            heard.append("assembly")  # noqa: B023
            return await call_next()

        def register() -> None:
            with suppress(InactiveContextError):
                view.on_assemble(listener)  # noqa: B023
                view.on_change(lambda: heard.append("change"))  # noqa: B023
                view.section("s", "text", order=1)  # noqa: B023
                view.variable("v", "value")  # noqa: B023
                view.tools([ToolSchema("t", "", {})])  # noqa: B023
                view.owner("inner").section("inner", "text", order=2)  # noqa: B023

        in_threads(register, view.close)
        heard.clear()
        with prompt.section("mine", "mine", order=1):
            assembly = prompt.assemble_sync()
        assert [section.text for section in assembly.sections if section.text] == ["mine"]
        assert assembly.variables == {}
        assert assembly.tools == []
        assert heard == []


def test_a_protection_and_a_shadow_of_it_do_not_both_get_through() -> None:
    """A global protection and a scoped section of its name, at once: one of the two is refused."""
    for _ in range(400):
        prompt = SystemPrompt()
        scope = prompt.scope("scope")
        refused: list[type[Exception]] = []

        def protect() -> None:
            try:
                prompt.protect(sections=["s"])  # noqa: B023
            except ProtectionConflictError as error:
                refused.append(type(error))  # noqa: B023

        def shadow() -> None:
            try:
                scope.section("s", "shadow", order=1)  # noqa: B023
            except ProtectedSectionShadowError as error:
                refused.append(type(error))  # noqa: B023

        in_threads(protect, shadow)
        assert len(refused) == 1


# -- scopes --------------------------------------------------------------------------------------------------------------


def test_a_key_is_bound_once_whoever_comes_first() -> None:
    """Of several threads that bind a key, one gets the binding."""
    for _ in range(100):
        key = ScopeKey("key")
        bound: list[object] = []

        def bind() -> None:
            with suppress(ScopeAlreadyBoundError):
                bound.append(bind_parent(key, ScopeKey("parent")))  # noqa: B023

        in_threads(*[bind] * 4)
        assert len(bound) == 1


def test_two_threads_that_move_scopes_below_each_other_make_no_cycle() -> None:
    """One of the two is refused; neither's chain runs in a circle."""
    for _ in range(300):
        one, other = ScopeKey("one"), ScopeKey("other")
        bindings = bind_parent(one, None), bind_parent(other, None)

        def move_one() -> None:
            with suppress(ScopeCycleError):
                bindings[0].rebind(other)  # noqa: B023

        def move_other() -> None:
            with suppress(ScopeCycleError):
                bindings[1].rebind(one)  # noqa: B023

        in_threads(move_one, move_other)
        assert {one.parent, other.parent} in ({None, one}, {None, other})


def test_a_scope_moved_while_others_render_in_it() -> None:
    """Each rendering is that of one of its places, never of a mixture."""
    prompt = SystemPrompt()
    parents = [prompt.scope(name) for name in ("a", "b")]
    for parent in parents:
        for number in range(3):
            parent.section(f"s{number}", parent.key.name, order=number)
    child = prompt.scope("child", parents[0])
    child.section("own", "own", order=9)
    done = threading.Event()

    def move() -> None:
        try:
            for turn in range(1500):
                assert child.binding is not None
                child.binding.rebind(parents[turn % 2].key)
        finally:
            done.set()

    def render() -> None:
        while not done.is_set():
            assert child.render_sync().text in ("a\n\na\n\na\n\nown", "b\n\nb\n\nb\n\nown")

    in_threads(move, render, render)
