"""Registrations and owners: undone once, all of it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.short import Bell, facts, listener, tool

from foreword import Registration, SystemPrompt, ToolProviderResult

MAKERS: dict[str, Callable[[SystemPrompt], Registration]] = {
    "section": lambda view: view.section("s", "S", order=1),
    "context": lambda view: view.context("c", "C", order=1),
    "variable": lambda view: view.variable("v", "V"),
    "tools": lambda view: view.tools(ToolProviderResult([tool("t")])),
    "protection": lambda view: view.protect(sections=["p"]),
    "suppressor": lambda view: view.suppress_runtime_context(),
    "listener": lambda view: view.on_assemble(listener(lambda assembly: assembly.extras.clear())),
    "change listener": lambda view: view.on_change(lambda: None),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_closing_twice_is_closing_once(kind: str) -> None:
    """A registration is single-shot: the second `close` does nothing, not even ring."""
    prompt = SystemPrompt()
    registration = MAKERS[kind](prompt)
    bell = Bell()
    prompt.on_change(bell)
    assert not registration.closed
    registration.close()
    rung = bell.rung
    registration.close()
    assert registration.closed
    assert bell.rung == rung


@pytest.mark.parametrize("kind", MAKERS)
def test_a_registration_is_a_context_manager(kind: str) -> None:
    """`with` undoes on the way out, also past an exception."""
    prompt = SystemPrompt()
    with pytest.raises(ZeroDivisionError), MAKERS[kind](prompt) as registration:
        raise ZeroDivisionError
    assert registration.closed


@pytest.mark.parametrize("kind", MAKERS)
def test_a_registration_tells_what_it_is(kind: str) -> None:
    """The text of a registration names kind or name, and says when it is closed."""
    registration = MAKERS[kind](SystemPrompt())
    before = repr(registration)
    assert "Registration" in before
    assert kind.split()[-1].removesuffix("s") in before
    registration.close()
    assert repr(registration) == f"{before.removesuffix('>')} (closed)>"


def test_an_old_undo_never_removes_a_namesake() -> None:
    """Closing a registration again does not touch what has taken its name since."""
    prompt = SystemPrompt()
    old = prompt.section("s", "old", order=1)
    old.close()
    prompt.section("s", "new", order=1)
    old.close()
    prompt.variable("v", "x").close()
    assert prompt.render_sync().text == "new"


def test_an_owner_undoes_last_in_first_out() -> None:
    """Closing a view undoes the latest registration first."""
    prompt = SystemPrompt()
    view = prompt.owner("plugin")
    for name in ("a", "b", "c"):
        view.section(name, name, order=1)
    seen: list[str] = []
    prompt.on_change(lambda: seen.append(prompt.render_sync().text))
    view.close()
    assert seen == ["a\n\nb", "a", ""]


def test_what_was_closed_by_hand_is_not_undone_again() -> None:
    """An owner forgets what was closed before: each registration is undone, and rings, once."""
    prompt = SystemPrompt()
    bell = Bell()
    prompt.on_change(bell)
    view = prompt.owner("plugin")
    first = view.section("a", "A", order=1)
    view.section("b", "B", order=1)
    first.close()
    view.close()
    assert bell.rung == 4


def test_every_undo_runs_though_listeners_raise() -> None:
    """A view is closed whole: each undo runs, the first error reaches the caller, the later ones are noted on it."""
    prompt = SystemPrompt()
    view = prompt.owner("plugin")
    for kind in ("section", "context", "variable", "tools"):
        MAKERS[kind](view)
    prompt.on_change(Bell(ValueError("first"), KeyError("second"), None, OSError("third")))
    with pytest.raises(ValueError, match="first") as caught:
        view.close()
    notes = " ".join(caught.value.__notes__)
    assert "second" in notes
    assert "third" in notes
    assert facts(prompt) == ("", "", [])
    view.close()
    assert not view.active


def test_views_made_by_owner_close_with_their_parent() -> None:
    """Closing a view closes the views that `owner` made from it, at any depth."""
    prompt = SystemPrompt()
    plugin = prompt.owner("plugin")
    part = plugin.owner("part")
    part.section("s", "S", order=1)
    plugin.close()
    assert not part.active
    assert prompt.render_sync().text == ""


def test_a_closed_part_leaves_its_parent_alone() -> None:
    """Closing an inner owner undoes what is its own, and nothing of the outer one's."""
    prompt = SystemPrompt()
    plugin = prompt.owner("plugin")
    plugin.section("a", "A", order=1)
    with plugin.owner("part") as part:
        part.section("b", "B", order=2)
        assert prompt.render_sync().text == "A\n\nB"
    assert plugin.active
    assert prompt.render_sync().text == "A"
