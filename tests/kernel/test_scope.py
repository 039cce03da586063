"""Scope keys: identity, chains, who may move a key."""

from __future__ import annotations

import gc
import weakref
from enum import StrEnum
from typing import Any

import pytest

from foreword import (
    GLOBAL,
    EmptyNameError,
    ScopeAlreadyBoundError,
    ScopeCycleError,
    ScopeKey,
    SystemPrompt,
    bind_parent,
)


def test_keys_of_one_name_are_two_scopes() -> None:
    """Keys compare by identity, so two agents may bear one name."""
    prompt = SystemPrompt()
    one, other = ScopeKey("agent"), ScopeKey("agent")
    prompt.scope(one).section("s", "one", order=1)
    assert one != other
    assert prompt.scope(one).render_sync().text == "one"
    assert prompt.scope(other).render_sync().text == ""


@pytest.mark.parametrize("name", [3, "", "\ud800", None], ids=ascii)
def test_a_key_has_a_name_that_can_be_shown(name: Any) -> None:
    """Errors show it and logs keep it, so another one is refused at once."""
    with pytest.raises(EmptyNameError) as caught:
        ScopeKey(name)
    assert str(caught.value) == f"the name of a scope must be a non-empty string that UTF-8 can spell, not {name!r}"


def test_a_key_keeps_what_its_name_holds() -> None:
    """A member of a string enumeration is as good a name as any, and shown as what it holds."""

    class Team(StrEnum):
        BILLING = "billing"

    assert type(ScopeKey(Team.BILLING).name) is str
    assert repr(ScopeKey(Team.BILLING)) == "ScopeKey('billing')"


def test_a_chain_names_the_farthest_ancestor_first() -> None:
    """A key's chain is its ancestors and itself, farthest first, without the global layer."""
    team, agent = ScopeKey("team"), ScopeKey("agent")
    bind_parent(team, GLOBAL)
    bind_parent(agent, team)
    assert agent.chain() == (team, agent)
    assert GLOBAL.chain() == ()
    assert (agent.parent, team.parent) == (team, None)


def test_a_key_is_bound_once() -> None:
    """A second binding of a key is refused, names key and parent, and leaves the key where it is."""
    team, agent = ScopeKey("team"), ScopeKey("agent")
    bind_parent(agent, team)
    with pytest.raises(ScopeAlreadyBoundError, match=r"scope agent is already bound to team.*rebind\(\)"):
        bind_parent(agent, None)
    assert agent.parent is team


def test_a_key_bound_to_nothing_is_bound() -> None:
    """Directly under the global layer is a place like any other: the key counts as bound."""
    agent = ScopeKey("agent")
    bind_parent(agent, None)
    assert agent.bound
    with pytest.raises(ScopeAlreadyBoundError, match="directly under the global layer"):
        bind_parent(agent, ScopeKey("team"))


def test_the_binding_moves_its_key() -> None:
    """`rebind` moves the key, to the global layer too."""
    one, other, agent = ScopeKey("one"), ScopeKey("other"), ScopeKey("agent")
    binding = bind_parent(agent, one)
    binding.rebind(other)
    assert (agent.parent, binding.parent, binding.key) == (other, other, agent)
    binding.rebind(GLOBAL)
    assert agent.parent is None
    binding.rebind(one)
    binding.rebind(None)
    assert agent.chain() == (agent,)


@pytest.mark.parametrize("steps_down", [0, 1, 2])
def test_a_cycle_is_refused(steps_down: int) -> None:
    """No key can stand below itself, at whatever distance; the refused move changes nothing."""
    keys = [ScopeKey("top"), ScopeKey("middle"), ScopeKey("low")]
    top = bind_parent(keys[0], None)
    bind_parent(keys[1], keys[0])
    bind_parent(keys[2], keys[1])
    with pytest.raises(ScopeCycleError, match=f"top cannot stand below {keys[steps_down].name}.*choose a parent"):
        top.rebind(keys[steps_down])
    assert keys[2].chain() == tuple(keys)


def test_a_key_can_be_bound_after_a_refused_binding() -> None:
    """A binding refused for a cycle leaves the key unbound, so it can still be bound elsewhere."""
    agent = ScopeKey("agent")
    with pytest.raises(ScopeCycleError):
        bind_parent(agent, agent)
    assert bind_parent(agent, ScopeKey("team")).parent is not None


def test_the_global_layer_has_no_parent() -> None:
    """`GLOBAL` cannot be put below anything."""
    with pytest.raises(ScopeCycleError, match="global"):
        bind_parent(GLOBAL, ScopeKey("team"))


def test_what_people_see_of_keys_and_bindings() -> None:
    """The texts of keys and bindings tell the names."""
    binding = bind_parent(ScopeKey("agent"), ScopeKey("team"))
    assert repr(binding.key) == "ScopeKey('agent')"
    assert repr(binding) == "<ParentBinding of agent to team>"
    binding.rebind(None)
    assert repr(binding) == "<ParentBinding of agent to global>"


def test_no_table_outlives_a_scope() -> None:
    """Once a scope is closed and nobody holds its key, the registry does not keep the key alive either."""
    prompt = SystemPrompt()
    view = prompt.scope("agent")
    view.section("s", "S", order=1)
    view.variable("v", "V")
    assert view.render_sync().text == "S"
    key = weakref.ref(view.key)
    view.close()
    del view
    gc.collect()
    assert key() is None
