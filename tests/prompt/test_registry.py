"""What is registered, replaced and undone, and who is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.short import Bell, facts, listener, names, tool

from foreword import (
    DuplicateEntryError,
    InactiveContextError,
    NotAStringError,
    ProtectedSectionShadowError,
    ProtectionConflictError,
    Registration,
    SystemPrompt,
)

MAKERS: dict[str, Callable[[SystemPrompt], Registration]] = {
    "section": lambda view: view.section("s", "S", order=1),
    "context": lambda view: view.context("c", "C", order=1),
    "variable": lambda view: view.variable("v", "V"),
    "tools": lambda view: view.tools([tool("t")]),
    "protection": lambda view: view.protect(sections=["p"], tools=["q"]),
    "suppressor": lambda view: view.suppress_runtime_context(),
}


def furnished() -> SystemPrompt:
    """A prompt on which each of the makers makes a difference."""
    prompt = SystemPrompt()
    prompt.context("here", "here", order=0)
    prompt.section("p", "P", order=0)
    prompt.on_assemble(listener(lambda assembly: assembly.sections.drop("p")))
    return prompt


def state(prompt: SystemPrompt) -> tuple[object, ...]:
    assembly = prompt.assemble_sync()
    return (*facts(prompt), assembly.variables)


# Names


@pytest.mark.parametrize("in_scope", [False, True])
@pytest.mark.parametrize(
    ("kind", "register"),
    [
        ("section", lambda view: view.section("x", "X", order=1)),
        ("context", lambda view: view.context("x", "X", order=1)),
        ("variable", lambda view: view.variable("x", "X")),
    ],
)
def test_a_name_is_unique_in_its_layer(kind: str, register: Callable[[SystemPrompt], Any], in_scope: bool) -> None:
    """A second entry of a name and kind in one layer is refused, naming both owners; the first one stays."""
    prompt = SystemPrompt()
    view = prompt.scope("agent") if in_scope else prompt
    register(view.owner("first"))
    with pytest.raises(DuplicateEntryError) as caught:
        register(view.owner("second"))
    error = caught.value
    assert error.kind == f"duplicate_{kind}"
    assert (error.entry.owner, error.holder.owner) == ("second", "first")
    assert f'{kind} "x" of second' in str(error)
    assert f'{kind} "x" of first' in str(error)


def test_a_duplicate_section_tells_how_names_are_made() -> None:
    """The error for a taken section name tells the custom `owner:name`."""
    prompt = SystemPrompt()
    prompt.section("rules", "R", order=1)
    with pytest.raises(DuplicateEntryError, match='"owner:name"'):
        prompt.section("rules", "R", order=1)


def test_kinds_and_layers_have_names_of_their_own() -> None:
    """One name can be a section, a context and a variable, in the global layer and in each scope."""
    prompt = SystemPrompt()
    for view in (prompt, prompt.scope("a"), prompt.scope("b")):
        view.section("x", "{{x}}", order=1)
        view.context("x", "{{x}}", order=1)
        view.variable("x", view.key.name)
        assert facts(view) == (view.key.name, view.key.name, [])


def test_a_refused_registration_leaves_no_trace() -> None:
    """A refusal changes nothing and rings nobody: afterwards the free name can be taken as before."""
    prompt = SystemPrompt()
    bell = Bell()
    prompt.on_change(bell)
    agent = prompt.scope("agent")
    prompt.protect(sections=["safety"])
    with pytest.raises(ProtectedSectionShadowError):
        agent.section("safety", "S", order=1)
    with pytest.raises(NotAStringError):
        agent.section("s", 5, order=1)  # type: ignore[call-overload]
    assert bell.rung == 1
    agent.section("s", "S", order=1)
    assert agent.render_sync().text == "S"


# Global protections and names in scopes


def test_a_global_protection_reserves_its_names() -> None:
    """No scope can shadow a globally protected section, also one that no section bears yet."""
    prompt = SystemPrompt()
    protection = prompt.protect(sections=["safety", "not:there"])
    agent = prompt.scope("agent")
    for name in ("safety", "not:there"):
        with pytest.raises(ProtectedSectionShadowError, match=f'section "{name}" of agent in scope agent'):
            agent.section(name, "x", order=1)
    protection.close()
    agent.section("safety", "mine", order=1)
    assert agent.render_sync().text == "mine"


def test_a_name_is_free_when_its_last_protection_goes() -> None:
    """Protections add up: a name is reserved until the last global one that names it is undone."""
    prompt = SystemPrompt()
    first, second = prompt.protect(sections=["s"]), prompt.protect(sections=["s", "s"])
    agent = prompt.scope("agent")
    first.close()
    with pytest.raises(ProtectedSectionShadowError):
        agent.section("s", "x", order=1)
    second.close()
    agent.section("s", "x", order=1)


def test_a_scoped_protection_reserves_nothing() -> None:
    """A protection in a scope reserves no name, neither there nor below."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    team.protect(sections=["s"])
    team.section("s", "team", order=1)
    agent = prompt.scope("agent", parent=team)
    agent.section("s", "agent", order=1)
    assert agent.render_sync().text == "agent"


def test_a_section_in_a_scope_keeps_its_name_from_being_reserved() -> None:
    """A global protection is refused while a scoped section of that name stands, and names every such section."""
    prompt = SystemPrompt()
    agents = [prompt.scope("one"), prompt.scope("two")]
    registrations = [agent.section("s", "x", order=1) for agent in agents]
    for registration in registrations:
        with pytest.raises(ProtectionConflictError) as caught:
            prompt.protect(sections=["other", "s"])
        assert [holder.owner for holder in caught.value.holders][-1] == "two"
        registration.close()
    prompt.protect(sections=["s"])
    with pytest.raises(ProtectedSectionShadowError):
        agents[0].section("s", "x", order=1)


def test_tools_and_contexts_of_a_protected_name_are_free() -> None:
    """A protection reserves the names of sections only."""
    prompt = SystemPrompt()
    prompt.protect(sections=["s"], tools=["s"])
    agent = prompt.scope("agent")
    agent.context("s", "C", order=1)
    agent.variable("s", "V")
    agent.tools([tool("s")])
    assert facts(agent) == ("", "C", ["s"])


# Who is told


@pytest.mark.parametrize("kind", MAKERS)
def test_each_change_is_told_once_when_made_and_once_when_undone(kind: str) -> None:
    """A registration rings once when it is made and once when it is undone, whatever its scope."""
    prompt = SystemPrompt()
    bell = Bell()
    prompt.on_change(bell)
    registration = MAKERS[kind](prompt.scope("agent").owner("plugin"))
    assert bell.rung == 1
    registration.close()
    assert bell.rung == 2


def test_listeners_are_no_change() -> None:
    """Registering and undoing listeners, of either kind, tells nobody."""
    prompt = SystemPrompt()
    bell = Bell()
    prompt.on_change(bell)
    prompt.on_assemble(listener(lambda assembly: None)).close()
    prompt.on_change(lambda: None).close()
    prompt.owner("x").close()
    prompt.scope("x").close()
    assert bell.rung == 0


def test_a_change_listener_hears_of_every_scope() -> None:
    """The event is not filtered: a listener of one scope hears of changes in another."""
    prompt = SystemPrompt()
    bell = Bell()
    prompt.scope("one").on_change(bell)
    prompt.scope("two").section("s", "S", order=1)
    assert bell.rung == 1


def test_a_change_listener_sees_the_change_made() -> None:
    """Listeners are told after the fact: what they assemble has the change in it."""
    prompt = SystemPrompt()
    seen: list[str] = []
    prompt.on_change(lambda: seen.append(prompt.render_sync().text))
    registration = prompt.section("s", "old", order=1)
    registration.replace("new")
    registration.close()
    assert seen == ["old", "new", ""]


def test_an_undone_change_listener_hears_no_more() -> None:
    """A change listener goes by its own registration, and with its view."""
    prompt = SystemPrompt()
    by_hand, by_view = Bell(), Bell()
    registration = prompt.on_change(by_hand)
    view = prompt.owner("plugin")
    view.on_change(by_view)
    prompt.variable("a", "A")
    registration.close()
    view.close()
    prompt.variable("b", "B")
    assert (by_hand.rung, by_view.rung) == (1, 1)


def test_a_change_listener_may_register() -> None:
    """A change listener can change the registry; what it does is told in turn."""
    prompt = SystemPrompt()
    bell = Bell()

    def follow() -> None:
        if bell.rung == 1:
            prompt.section("follower", "F", order=2)

    prompt.on_change(bell)
    prompt.on_change(follow)
    prompt.section("leader", "L", order=1)
    assert prompt.render_sync().text == "L\n\nF"
    assert bell.rung == 2


# Listeners that raise


@pytest.mark.parametrize("kind", MAKERS)
def test_a_raising_listener_takes_a_registration_back(kind: str) -> None:
    """When a change listener raises on making, nothing stays registered, it is notified once more, and its error
    reaches the caller."""
    prompt = furnished()
    before = state(prompt)
    bell = Bell(ValueError("no"))
    prompt.on_change(bell)
    with pytest.raises(ValueError, match=r"^no$"):
        MAKERS[kind](prompt)
    assert bell.rung == 2
    assert state(prompt) == before
    MAKERS[kind](prompt).close()
    assert state(prompt) == before


@pytest.mark.parametrize("kind", MAKERS)
def test_a_later_error_is_noted_on_the_first(kind: str) -> None:
    """When the roll-back is refused as well, the first error is the one raised, and tells of the second."""
    prompt = furnished()
    before = state(prompt)
    prompt.on_change(Bell(ValueError("first"), KeyError("second")))
    with pytest.raises(ValueError, match=r"^first") as caught:
        MAKERS[kind](prompt)
    assert "KeyError: 'second'" in " ".join(caught.value.__notes__)
    assert state(prompt) == before


def test_all_listeners_hear_though_one_raises() -> None:
    """One raising listener keeps no other from hearing, of the change or of its being taken back."""
    prompt = SystemPrompt()
    bells = [Bell(), Bell(ValueError("no")), Bell(OSError("neither"))]
    for bell in bells:
        prompt.on_change(bell)
    with pytest.raises(ValueError, match="no") as caught:
        prompt.section("s", "S", order=1)
    assert [bell.rung for bell in bells] == [2, 2, 2]
    assert "OSError: neither" in " ".join(caught.value.__notes__)


def test_no_error_of_a_roll_back_is_lost() -> None:
    """Two listeners that raise, at the change and when it is taken back, make four errors in one."""
    prompt = SystemPrompt()
    told = iter("abcd")

    def refuse() -> None:
        raise ValueError(next(told))

    prompt.on_change(refuse)
    prompt.on_change(refuse)
    with pytest.raises(ValueError, match="a") as caught:
        prompt.section("s", "x", order=1)
    assert [note[-1] for note in caught.value.__notes__] == ["b", "c", "d"]


def test_an_exit_takes_a_registration_back_too() -> None:
    """Also an interrupt out of a change listener leaves nothing half made."""

    class Exit(Bell):
        def __call__(self) -> None:
            super().__call__()
            if self.rung == 1:
                raise KeyboardInterrupt

    prompt = SystemPrompt()
    prompt.on_change(Exit())
    with pytest.raises(KeyboardInterrupt):
        prompt.section("s", "S", order=1)
    assert prompt.render_sync().text == ""


@pytest.mark.parametrize("kind", MAKERS)
def test_on_undoing_nothing_comes_back(kind: str) -> None:
    """A listener that raises on an undo does not bring the entry back; its error reaches whoever closed, once."""
    prompt = furnished()
    before = state(prompt)
    registration = MAKERS[kind](prompt)
    bell = Bell(ValueError("first"))
    prompt.on_change(bell)
    prompt.on_change(Bell(OSError("second")))
    with pytest.raises(ValueError, match=r"^first") as caught:
        registration.close()
    assert "OSError: second" in " ".join(caught.value.__notes__)
    assert bell.rung == 1
    assert state(prompt) == before
    registration.close()
    assert bell.rung == 1


def test_what_was_taken_back_is_not_undone_again() -> None:
    """A registration that was rolled back does not belong to its view any more."""
    prompt = SystemPrompt()
    view = prompt.owner("plugin")
    bell = Bell(ValueError("no"))
    prompt.on_change(bell)
    with pytest.raises(ValueError, match="no"):
        view.section("s", "S", order=1)
    prompt.section("s", "another's", order=1)
    view.close()
    assert bell.rung == 3
    assert prompt.render_sync().text == "another's"


# Replacing


def test_replacing_keeps_the_place_among_equals() -> None:
    """A replaced entry keeps its place among equal orders, its name and its options; it is told once."""
    prompt = SystemPrompt()
    for kind in (prompt.section, prompt.context):
        kind("a", "A", order=1)
    section = prompt.section("b", "B", order=1)
    context = prompt.context("b", "B", order=1)
    for kind in (prompt.section, prompt.context):
        kind("c", "C", order=1)
    bell = Bell()
    prompt.on_change(bell)
    section.replace("b2")
    context.replace(lambda: "b3")
    assert bell.rung == 2
    assert facts(prompt) == ("A\n\nb2\n\nC", "A\n\nb3\n\nC", [])


def test_replacing_a_variable() -> None:
    """A variable can be given another value, a provider, or none."""
    prompt = SystemPrompt()
    registration = prompt.variable("v", "one")
    told = []
    for value in ("two", None, lambda: "three"):
        registration.replace(value)
        told.append(prompt.assemble_sync().variables["v"])
    assert told == ["two", None, "three"]


def test_replacing_keeps_the_options() -> None:
    """The options of an entry outlast a replaced text: here `verbatim` and `requires_tools`."""
    prompt = SystemPrompt()
    registration = prompt.section("s", "{{x}}", order=1, verbatim=True, requires_tools=["t"])
    registration.replace("{{y}}")
    assert prompt.render_sync().text == ""
    prompt.tools([tool("t")])
    assert prompt.render_sync().text == "{{y}}"


def test_a_shadowing_entry_is_replaced_in_its_scope() -> None:
    """Replacing works in any layer, and is seen by the scopes below."""
    prompt = SystemPrompt()
    prompt.section("s", "global", order=1)
    team = prompt.scope("team")
    registration = team.section("s", "team", order=1)
    agent = prompt.scope("agent", parent=team)
    assert agent.render_sync().text == "team"
    registration.replace("new team")
    assert (agent.render_sync().text, prompt.render_sync().text) == ("new team", "global")


def test_a_raising_listener_brings_the_old_entry_back() -> None:
    """A replacement that a change listener refuses is taken back, at the same place, and told once more."""
    prompt = SystemPrompt()
    registration = prompt.section("a", "old", order=1)
    prompt.section("b", "B", order=1)
    bell = Bell(ValueError("first"), OSError("second"))
    prompt.on_change(bell)
    with pytest.raises(ValueError, match=r"^first") as caught:
        registration.replace("new")
    assert bell.rung == 2
    assert "OSError: second" in " ".join(caught.value.__notes__)
    assert prompt.render_sync().text == "old\n\nB"
    registration.replace("newer")
    assert prompt.render_sync().text == "newer\n\nB"
    registration.close()
    assert prompt.render_sync().text == "B"


def test_a_replacement_is_held_to_what_the_call_is_held_to() -> None:
    """An unfit value is refused before anything changes or anybody is told."""
    prompt = SystemPrompt()
    registration = prompt.section("s", "old", order=1)
    bell = Bell()
    prompt.on_change(bell)
    with pytest.raises(NotAStringError):
        registration.replace(None)
    with pytest.raises(NotAStringError):
        registration.replace(5)
    assert bell.rung == 0
    assert prompt.render_sync().text == "old"


@pytest.mark.parametrize("how", ["by hand", "by its view"])
def test_after_closing_there_is_nothing_to_replace(how: str) -> None:
    """`replace` on a closed registration raises and names the entry; a namesake is left alone."""
    prompt = SystemPrompt()
    view = prompt.owner("plugin")
    registration = view.section("s", "S", order=1)
    (registration if how == "by hand" else view).close()
    prompt.section("s", "namesake", order=1)
    with pytest.raises(InactiveContextError, match=r'section "s" of plugin.*closed; register it again'):
        registration.replace("x")
    assert prompt.render_sync().text == "namesake"


def test_a_change_listener_may_close_what_is_being_replaced() -> None:
    """A listener that closes the registration while it is being replaced leaves neither entry behind."""
    prompt = SystemPrompt()
    registration = prompt.section("s", "old", order=1)
    prompt.on_change(registration.close)
    registration.replace("new")
    assert prompt.render_sync().text == ""
    prompt.section("s", "another", order=1)
    assert prompt.render_sync().text == "another"


def test_a_change_listener_may_replace_again() -> None:
    """A listener that replaces within a replacement has the last word; undoing finds what is there."""
    prompt = SystemPrompt()
    registration = prompt.section("s", "old", order=1)
    bell = Bell()

    def again() -> None:
        bell()
        if bell.rung == 1:
            registration.replace("newest")

    prompt.on_change(again)
    registration.replace("new")
    assert (prompt.render_sync().text, bell.rung) == ("newest", 2)
    registration.close()
    assert names(prompt.assemble_sync().sections) == ["deployment:persona"]


# What is taken down at the call


def test_arguments_are_taken_down_at_the_call() -> None:
    """Lists handed over can be changed afterwards without changing what was registered."""
    prompt = SystemPrompt()
    protected, required, schemas = ["p"], ["t"], [tool("t")]
    prompt.section("p", "P", order=1)
    prompt.protect(sections=protected)
    prompt.section("s", "S", order=2, requires_tools=required)
    prompt.tools(schemas)
    prompt.on_assemble(listener(lambda assembly: assembly.sections.drop("p")))
    for given in (protected, required):
        given[:] = ["other"]
    schemas.clear()
    assert facts(prompt) == ("P\n\nS", "", ["t"])
