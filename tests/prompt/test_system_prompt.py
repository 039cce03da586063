"""The front door: views, owners, scopes, and the two sections that it registers itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.short import facts, listener, names, tool

from foreword import (
    GLOBAL,
    IDENTITY_ORDER,
    PERSONA_ORDER,
    PERSONA_SECTION,
    AssembleContext,
    InactiveContextError,
    ScopeAlreadyBoundError,
    ScopeCycleError,
    ScopeKey,
    SystemPrompt,
    SystemPromptConfig,
    bind_parent,
)

# The six lines


def test_the_six_lines() -> None:
    """A prompt takes six lines: persona, variable, two sections, and a text to print."""
    prompt = SystemPrompt(persona="You are {{company}}'s billing assistant.")
    prompt.variable("company", "Acme")
    prompt.section("rules", "Never promise a refund.", order=20)
    prompt.section("tone", "Answer in two sentences.", order=30)
    told = "You are Acme's billing assistant.\n\nNever promise a refund.\n\nAnswer in two sentences."
    assert prompt.render_sync().text == told


def test_two_prompts_do_not_meet() -> None:
    """Nothing is global: one key in two prompts is two layers, and variables and listeners stay apart."""
    one, other = SystemPrompt(), SystemPrompt()
    key = ScopeKey("agent")
    one.scope(key).section("s", "one", order=1)
    one.variable("v", "V")
    one.suppress_runtime_context()
    other.scope(key).section("s", "other", order=1)
    other.context("c", "C", order=1)
    assert facts(one.scope(key)) == ("one", "", [])
    assert facts(other.scope(key)) == ("other", "C", [])


# Views


def test_a_prompt_is_the_view_of_main_on_the_global_layer() -> None:
    """Built directly, the owner is `main` and the scope global; there is no binding to hold."""
    prompt = SystemPrompt()
    assert repr(prompt) == "<SystemPrompt: owner main, scope global>"
    assert prompt.key is GLOBAL
    assert prompt.binding is None
    assert prompt.stuck == ()


def test_a_view_tells_owner_and_scope() -> None:
    """A view's text tells its owner, its scope, and whether it is closed."""
    prompt = SystemPrompt()
    view = prompt.scope("agent").owner("git")
    assert repr(view) == "<SystemPrompt: owner git, scope agent>"
    view.close()
    assert repr(view) == "<SystemPrompt: owner git, scope agent, closed>"


def test_a_scope_is_owned_by_its_name() -> None:
    """`scope` makes a new owner of the scope's name; what it registers belongs to that owner."""
    view = SystemPrompt().scope("agent")
    view.section("s", "S", order=1)
    (span,) = view.render_sync().spans
    assert (span.owner, span.origin.scope, span.origin.layer) == ("agent", "agent", "scope agent")


def test_views_share_one_registry_and_one_config() -> None:
    """What one view registers, all see; the configuration is the same object everywhere."""
    config = SystemPromptConfig(persona="P")
    prompt = SystemPrompt(config)
    prompt.owner("rules").section("s", "S", order=1)
    assert prompt.owner("other").render_sync().text == "P\n\nS"
    assert prompt.scope("agent").config is prompt.owner("x").config is config


def test_owners_of_one_name_are_two_owners() -> None:
    """A name is no identity: closing one view leaves a namesake's registrations alone."""
    prompt = SystemPrompt()
    one, other = prompt.owner("plugin"), prompt.owner("plugin")
    one.section("a", "A", order=1)
    other.section("b", "B", order=2)
    one.close()
    assert prompt.render_sync().text == "B"


def test_a_view_is_a_context_manager() -> None:
    """`with` closes a view and everything registered through it."""
    prompt = SystemPrompt()
    with prompt.owner("plugin") as view:
        view.section("s", "S", order=1)
        assert prompt.render_sync().text == "S"
    assert not view.active
    assert prompt.render_sync().text == ""


def test_closing_the_main_view_undoes_identity_and_persona() -> None:
    """Identity and persona are `main`'s registrations, and go with it; scopes stay."""
    prompt = SystemPrompt(identity="I", persona="P")
    agent = prompt.scope("agent")
    agent.section("s", "S", order=1)
    prompt.close()
    assert agent.render_sync().text == "S"


def test_closing_a_view_twice_does_nothing() -> None:
    """A view may be closed any number of times."""
    view = SystemPrompt().owner("plugin")
    view.close()
    view.close()
    assert not view.active


# Scopes


def test_a_scope_outlives_the_view_that_made_it() -> None:
    """A scope bound below a closed view stays, and still sees through it to what is left of its chain."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = team.scope("agent", parent=team)
    team.section("t", "team", order=1)
    agent.section("a", "agent", order=2)
    assert agent.render_sync().text == "team\n\nagent"
    team.close()
    assert agent.active
    assert agent.render_sync().text == "agent"
    assert agent.key.parent is team.key


def test_a_closed_view_keeps_its_binding() -> None:
    """Closing a scope's view undoes its registrations, not its place: its own binding still moves the key."""
    prompt = SystemPrompt()
    old, new = prompt.scope("old"), prompt.scope("new")
    new.section("n", "new", order=1)
    agent = prompt.scope("agent", parent=old)
    agent.close()
    assert agent.binding is not None
    assert agent.key.parent is old.key
    agent.binding.rebind(new.key)
    assert prompt.render_sync(AssembleContext(scope=agent)).text == "new"


def test_parents_are_views_or_keys() -> None:
    """A parent is named by its view, by its key, or, for the global layer, by None or `GLOBAL`."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    assert prompt.scope("a", parent=team).key.parent is team.key
    assert prompt.scope("b", parent=team.key).key.parent is team.key
    assert prompt.scope("c", parent=None).key.parent is None
    assert prompt.scope("d", parent=GLOBAL).key.parent is None
    assert team.scope("e").key.parent is None


def test_a_view_holds_its_scope_s_binding() -> None:
    """Who makes a scope may move it; an owner made from that view may not."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    assert agent.binding is not None
    assert agent.binding.key is agent.key
    assert agent.owner("git").binding is None


def test_joining_an_existing_scope() -> None:
    """A key in place of a name joins that scope: another owner, the same layer, and no right to move it."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    joined = prompt.scope(agent.key)
    joined.section("j", "joined", order=1)
    assert joined.binding is None
    assert joined.key is agent.key
    assert agent.key.parent is team.key
    assert agent.render_sync().text == "joined"
    agent.close()
    assert joined.render_sync().text == "joined"
    joined.close()
    assert prompt.render_sync(AssembleContext(scope=agent)).text == ""


def test_joining_with_a_parent_binds_a_free_key_only() -> None:
    """With a parent, `scope` binds a key that is free, and refuses one that is bound."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    key = ScopeKey("agent")
    agent = prompt.scope(key, parent=team)
    assert agent.binding is not None
    assert key.parent is team.key
    with pytest.raises(ScopeAlreadyBoundError, match="agent"):
        prompt.scope(key, parent=team)


def test_a_scope_cannot_stand_below_itself() -> None:
    """A cycle through `scope` is refused like any other."""
    prompt = SystemPrompt()
    key = ScopeKey("agent")
    with pytest.raises(ScopeCycleError, match="agent"):
        prompt.scope(key, parent=key)


def test_a_key_bound_elsewhere_is_seen_with_its_parents() -> None:
    """The chain is the key's own, whoever bound it."""
    team, key = ScopeKey("team"), ScopeKey("agent")
    bind_parent(key, team)
    prompt = SystemPrompt()
    prompt.scope(team).section("t", "team", order=1)
    assert prompt.scope(key).render_sync().text == "team"


# Whose prompt is assembled


def scoped() -> tuple[SystemPrompt, SystemPrompt]:
    prompt = SystemPrompt()
    prompt.section("g", "global", order=1)
    agent = prompt.scope("agent")
    agent.section("a", "agent", order=2)
    return prompt, agent


def test_a_view_assembles_for_its_own_scope() -> None:
    """Without a scope in the context, the view's own one is meant."""
    prompt, agent = scoped()
    assert prompt.render_sync().text == "global"
    assert agent.render_sync().text == "global\n\nagent"
    assert agent.owner("git").render_sync(AssembleContext()).text == "global\n\nagent"


def test_a_context_names_another_scope() -> None:
    """A context's scope goes before the view's own, by key or by view; `GLOBAL` asks for no scope's prompt."""
    prompt, agent = scoped()
    assert prompt.render_sync(AssembleContext(scope=agent)).text == "global\n\nagent"
    assert prompt.render_sync(AssembleContext(scope=agent.key)).text == "global\n\nagent"
    assert agent.render_sync(AssembleContext(scope=GLOBAL)).text == "global"
    assert agent.render_sync(AssembleContext(scope=prompt)).text == "global"


def test_a_closed_view_still_names_its_scope() -> None:
    """As a context's scope a closed view stays valid, and names a layer that may be empty."""
    prompt, agent = scoped()
    team = prompt.scope("team")
    team.section("t", "team", order=0)
    assert agent.binding is not None
    agent.binding.rebind(team.key)
    agent.close()
    assert prompt.render_sync(AssembleContext(scope=agent)).text == "team\n\nglobal"


def test_a_scope_never_seen_before_sees_the_global_layer() -> None:
    """A key that nothing was ever registered for is a scope without contributions."""
    prompt, _ = scoped()
    assert prompt.render_sync(AssembleContext(scope=ScopeKey("new"))).text == "global"


# After closing

USES: dict[str, Callable[[SystemPrompt], Any]] = {
    "section": lambda view: view.section("s", "S", order=1),
    "context": lambda view: view.context("c", "C", order=1),
    "variable": lambda view: view.variable("v", "V"),
    "tools": lambda view: view.tools([tool("t")]),
    "protect": lambda view: view.protect(sections=["s"]),
    "suppress_runtime_context": lambda view: view.suppress_runtime_context(),
    "on_assemble": lambda view: view.on_assemble(listener(lambda assembly: None)),
    "on_change": lambda view: view.on_change(lambda: None),
    "owner": lambda view: view.owner("part"),
    "scope": lambda view: view.scope("below"),
    "assemble_sync": lambda view: view.assemble_sync(),
    "render_sync": lambda view: view.render_sync(),
}


@pytest.mark.parametrize("use", USES)
def test_a_closed_view_refuses_everything_by_name(use: str) -> None:
    """Registering or assembling through a closed view is an error that tells its owner and its scope."""
    prompt = SystemPrompt()
    view = prompt.scope("agent").owner("git")
    view.close()
    with pytest.raises(InactiveContextError, match=r"owner git .*scope agent.* closed") as caught:
        USES[use](view)
    assert caught.value.kind == "inactive_context"
    assert facts(prompt, AssembleContext(scope=view)) == ("", "", [])


@pytest.mark.anyio
@pytest.mark.parametrize("door", ["assemble", "render"])
async def test_a_closed_view_refuses_the_async_doors(door: str) -> None:
    """The async doors refuse a closed view as the sync ones do."""
    view = SystemPrompt().owner("git")
    view.close()
    with pytest.raises(InactiveContextError, match="git"):
        await getattr(view, door)()


def test_a_decorator_outlived_by_its_view_refuses() -> None:
    """A decorator made before its view was closed registers nothing after it."""
    prompt = SystemPrompt()
    view = prompt.owner("git")
    decorate = view.section("s", order=1)
    view.close()
    with pytest.raises(InactiveContextError, match="git"):
        decorate(lambda: "S")
    assert prompt.render_sync().text == ""


# Decorators


def test_a_decorator_returns_its_function_unchanged() -> None:
    """Without a value each registering call is a decorator that gives back the very function."""
    prompt = SystemPrompt()

    def text() -> str:
        return "{{v}}!"

    def value() -> str:
        return "V"

    def tools() -> list[Any]:
        return [tool("t")]

    assert prompt.section("s", order=1)(text) is text
    assert prompt.context("c", order=1)(text) is text
    assert prompt.variable("v")(value) is value
    assert prompt.tools()(tools) is tools  # type: ignore[type-var]
    assert facts(prompt) == ("V!", "V!", ["t"])


def test_what_a_decorator_registered_goes_with_its_view() -> None:
    """A decorated function is registered until its view closes."""
    prompt = SystemPrompt()
    with prompt.owner("plugin") as view:

        @view.section("s", order=1)
        def section() -> str:
            return "S"

        @view.tools()
        def tools() -> Any:
            return [tool("t")]

        assert facts(prompt) == ("S", "", ["t"])
    assert facts(prompt) == ("", "", [])
    assert section() == "S"


def test_one_function_may_serve_several_entries() -> None:
    """Decorators stack: a function can be a section, a context and a variable at once."""
    prompt = SystemPrompt()

    @prompt.section("s", order=1)
    @prompt.context("c", order=1)
    @prompt.variable("v")
    def text() -> str:
        return "T"

    assembly = prompt.assemble_sync()
    assert names(assembly.sections)[-1] == "s"
    assert facts(prompt) == ("T", "T", [])
    assert assembly.variables == {"v": "T"}


# Identity and persona

SEEDS = "You are an AI agent powered by DeepSeek Harness."


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, None),
        ({"include_harness_identity": None}, None),
        ({"include_harness_identity": False}, None),
        ({"include_harness_identity": True}, SEEDS),
        ({"identity": "I am {{name}}."}, "I am Ada."),
        ({"identity": "I am {{name}}.", "include_harness_identity": True}, "I am Ada."),
        ({"identity": None, "include_harness_identity": True}, SEEDS),
    ],
    ids=str,
)
def test_who_the_model_is_told_to_be(fields: dict[str, Any], text: str | None) -> None:
    """A prompt built directly has no identity unless one is given or the seeds' one is asked for."""
    prompt = SystemPrompt(**fields)
    prompt.variable("name", "Ada")
    assembly = prompt.assemble_sync()
    assert ("harness:identity" in names(assembly.sections)) == (text is not None)
    assert prompt.render_sync().text == (text or "")


def test_identity_comes_before_everything_by_custom() -> None:
    """The identity stands at order −100, the persona at 0, other negative orders between them."""
    prompt = SystemPrompt(identity="I", persona="P")
    prompt.section("early", "E", order=-1)
    prompt.section("earliest", "first", order=IDENTITY_ORDER - 1)
    prompt.section("late", "L", order=1)
    assert prompt.render_sync().text == "first\n\nI\n\nE\n\nP\n\nL"


def test_an_empty_persona_holds_its_slot() -> None:
    """Without a persona the slot is there all the same, and renders to nothing."""
    rendering = SystemPrompt().render_sync()
    assert rendering.text == ""
    assert [ref.name for ref in rendering.dropped] == [PERSONA_SECTION]


def test_a_scope_has_its_own_persona() -> None:
    """A section of the persona's name in a scope takes its place there, and nowhere else."""
    prompt = SystemPrompt(identity="G", persona="main")
    prompt.section("after", "after", order=PERSONA_ORDER)
    child = prompt.scope("child")
    registration = child.section(PERSONA_SECTION, "child", order=PERSONA_ORDER)
    assert child.render_sync().text == "G\n\nchild\n\nafter"
    assert prompt.render_sync().text == "G\n\nmain\n\nafter"
    registration.close()
    assert child.render_sync().text == "G\n\nmain\n\nafter"


def test_the_persona_s_name_is_taken_in_the_global_layer() -> None:
    """Persona and identity are sections like any other: their names are theirs."""
    from foreword import DuplicateEntryError

    prompt = SystemPrompt(identity="I")
    for name in (PERSONA_SECTION, "harness:identity"):
        with pytest.raises(DuplicateEntryError, match=name):
            prompt.section(name, "x", order=1)


def test_config_and_fields_exclude_each_other() -> None:
    """A config object and single fields together are refused: which of them counts would be a guess."""
    with pytest.raises(TypeError, match="not both"):
        SystemPrompt(SystemPromptConfig(), persona="P")


def test_a_text_in_place_of_the_config_is_told_to_be_the_persona() -> None:
    """The likely first mistake, `SystemPrompt("You are …")`, is told its way out."""
    with pytest.raises(TypeError, match="persona="):
        SystemPrompt("You are a pirate.")  # type: ignore[arg-type]
