"""What an assembly is for: typed values, scope, agent, model, and a signal."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from tests.support.short import listener

from foreword import (
    GLOBAL,
    AssembleContext,
    CancelToken,
    ContextKey,
    ListenerError,
    MissingContextValueError,
    ModelRef,
    ProviderFailedError,
    ScopeKey,
    SystemPrompt,
    UnknownVariableError,
)

TENANT = ContextKey("tenant", str)
LIMIT = ContextKey("limit", int)


# Values


def test_values_are_read_by_key() -> None:
    """A value is read by its very key; another key of the same name has none."""
    context = AssembleContext({TENANT: "acme", LIMIT: 3})
    assert (context[TENANT], context[LIMIT]) == ("acme", 3)
    assert set(context.keys) == {TENANT, LIMIT}
    namesake = ContextKey("tenant", str)
    assert context.get(namesake) is None
    with pytest.raises(MissingContextValueError):
        context[namesake]


def test_get_has_a_default() -> None:
    """`get` gives the value, else the default, else None."""
    context = AssembleContext({TENANT: "acme"})
    assert context.get(TENANT, "nobody") == "acme"
    assert context.get(LIMIT, 7) == 7
    assert context.get(LIMIT) is None


def test_a_missing_value_is_told_with_those_there_are() -> None:
    """A missing value names the key, how to give it, and the keys that have one; it is a KeyError that reads well."""
    context = AssembleContext({TENANT: "acme"})
    with pytest.raises(MissingContextValueError) as caught:
        context[LIMIT]
    error = caught.value
    assert (error.kind, error.key, error.given) == ("missing_context_value", "limit", ("tenant",))
    assert isinstance(error, KeyError)
    assert 'the key "limit"' in str(error)
    assert "context.get(KEY, default)" in str(error)
    assert "acme" not in str(error)


def test_a_provider_that_misses_a_value_is_named() -> None:
    """In an assembly the error names the key and the provider that asked for it."""
    prompt = SystemPrompt()
    prompt.owner("billing").section("s", lambda context: context[TENANT], order=1)
    with pytest.raises(ProviderFailedError, match=r'section "s" of billing.*tenant'):
        prompt.render_sync()
    assert prompt.render_sync(AssembleContext({TENANT: "acme"})).text == "acme"


def test_a_condition_or_listener_that_misses_a_value_is_named() -> None:
    """So it is for a condition, and for a listener."""
    prompt = SystemPrompt()
    registration = prompt.section("s", "S", order=1, when=lambda context: context[TENANT] == "acme")
    with pytest.raises(ProviderFailedError, match="tenant"):
        prompt.render_sync()
    registration.close()

    async def asking(assembly: Any, context: AssembleContext, call_next: Any) -> Any:
        context[TENANT]
        return await call_next()

    prompt.owner("billing").on_assemble(asking)
    with pytest.raises(ListenerError, match=r"of billing.*tenant"):
        prompt.render_sync()


@pytest.mark.parametrize("value", [5, None, b"acme"], ids=repr)
def test_a_value_is_of_its_key_s_type(value: object) -> None:
    """A value of another type is refused when the context is made, naming the key and not the value."""
    with pytest.raises(TypeError, match=r"ContextKey\('tenant', str\)"):
        AssembleContext({TENANT: value})


def test_a_key_has_a_type_that_values_can_be_checked_against() -> None:
    """Several classes will do; what Python cannot check is refused when the key is made, not when it is first used."""
    either = ContextKey("tenant", str | None)  # type: ignore[arg-type]
    assert AssembleContext({either: None})[either] is None
    with pytest.raises(TypeError, match=r"ContextKey\('tenant', str \| None\)"):
        AssembleContext({either: 5})
    with pytest.raises(TypeError, match=r"checked against list\[str\]; give a class"):
        ContextKey("names", list[str])


def test_a_value_may_be_of_a_subtype() -> None:
    """Whatever is an instance of the key's type will do."""
    key = ContextKey("number", object)
    assert AssembleContext({key: 5})[key] == 5


@pytest.mark.parametrize("values", [{"tenant": "acme"}, {5: "x"}, ["tenant"]], ids=repr)
def test_plain_names_are_no_keys(values: Any) -> None:
    """Strings in place of keys are told to be made keys."""
    with pytest.raises(TypeError, match="KEY"):
        AssembleContext(values)


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("scope", "agent", "ScopeKey"),
        ("agent", "agent", "ScopeKey"),
        ("model", "gpt-5", "ModelRef"),
        ("signal", "stop", "CancelToken"),
    ],
)
def test_fields_are_of_their_types(field: str, value: Any, hint: str) -> None:
    """A name in place of a scope, an agent, a model or a signal is refused where it is given, saying what fits."""
    with pytest.raises(TypeError, match=hint):
        AssembleContext(**{field: value})


def test_no_template_sees_the_values() -> None:
    """A context's values are for providers; a template knows registered variables only."""
    prompt = SystemPrompt(persona="{{tenant}}")
    with pytest.raises(UnknownVariableError):
        prompt.render_sync(AssembleContext({TENANT: "acme"}))


# Frozen


def test_a_context_is_frozen() -> None:
    """Fields cannot be set, deleted or added, and the error says to make another context."""
    context = AssembleContext({TENANT: "acme"}, scope=GLOBAL)
    for name in ("scope", "model", "signal", "agent", "other"):
        with pytest.raises(AttributeError, match="make another one"):
            setattr(context, name, None)
    with pytest.raises(AttributeError, match="make another one"):
        del context.scope
    with pytest.raises(TypeError):
        context[TENANT] = "other"  # type: ignore[index]


def test_a_copy_of_a_context_is_itself() -> None:
    """It cannot change, and its keys are told apart by identity; so it cannot be pickled either."""
    context = AssembleContext({TENANT: "acme"})
    assert copy.copy(context) is copy.deepcopy(context) is context
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(context)


@pytest.mark.parametrize("given", [{TENANT: "acme"}, ScopeKey("a"), SystemPrompt()], ids=["dict", "key", "view"])
def test_what_is_rendered_for_is_a_context(given: Any) -> None:
    """Values or a scope in its place are told what to write."""
    with pytest.raises(TypeError, match=r"AssembleContext\(\{KEY: value\}, scope=…\)"):
        SystemPrompt().render_sync(given)


def test_values_are_copied() -> None:
    """The dict that was handed over may change afterwards."""
    values: dict[ContextKey[Any], object] = {TENANT: "acme"}
    context = AssembleContext(values)
    values[TENANT] = "other"
    values[LIMIT] = 5
    assert context[TENANT] == "acme"
    assert LIMIT not in context.keys


def test_absent_fields_are_none() -> None:
    """An empty context has no value and no field."""
    context = AssembleContext()
    assert (context.scope, context.agent, context.model, context.signal) == (None,) * 4
    assert tuple(context.keys) == ()
    assert repr(context) == "AssembleContext([])"


def test_what_people_see_of_a_context() -> None:
    """The text of a context shows keys and fields, never a value: values may be secret."""
    context = AssembleContext({TENANT: "hunter2"}, scope=ScopeKey("agent"), model=ModelRef("acme", "m-1"))
    assert repr(context) == "AssembleContext(['tenant'], scope=ScopeKey('agent'), model=ModelRef('acme', 'm-1'))"
    assert repr(TENANT) == "ContextKey('tenant', str)"


def test_a_view_stands_for_its_key() -> None:
    """A view as scope is its key: the context keeps no registry alive."""
    view = SystemPrompt().scope("agent")
    assert AssembleContext(scope=view).scope is view.key


def test_an_agent_is_a_scope_key_of_its_own() -> None:
    """The agent that a prompt is for does not choose the scope: that is what `scope` is for."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    agent.section("s", "S", order=1)
    seen: list[ScopeKey | None] = []
    prompt.on_assemble(listener(lambda assembly: None))
    prompt.variable("v", lambda context: seen.append(context.agent))  # type: ignore[arg-type, return-value, func-returns-value]
    assert prompt.render_sync(AssembleContext(agent=agent.key)).text == ""
    assert seen == [agent.key]


# Models


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        ("gpt-5", True),
        ("gpt-*", True),
        ("*", True),
        ("gpt-?", True),
        ("gpt-[45]", True),
        ("gpt-[!45]", False),
        ("gpt", False),
        ("GPT-5", False),
        ("openai", False),
        ("openai*", False),
        ("openai:*", True),
        ("openai:gpt-5", True),
        ("*:gpt-5", True),
        ("azure:gpt-5", False),
        (":gpt-5", False),
        ("openai:", False),
        ("", False),
    ],
)
def test_a_model_matches_a_glob(glob: str, matches: bool) -> None:
    """A glob is held against the name, or against `provider:name` if it has a colon; case counts."""
    assert ModelRef("openai", "gpt-5").matches(glob) is matches


def test_a_name_with_a_colon_is_matched_with_its_provider() -> None:
    """Only the glob's colon decides, not the name's."""
    model = ModelRef("ollama", "qwen3:32b")
    assert model.matches("qwen3*")
    assert model.matches("ollama:qwen3:32b")
    assert model.matches("*:32b")
    assert not model.matches("qwen3:32b")


def test_models_are_values() -> None:
    """Models of one provider and name are equal, also as keys."""
    one, other = ModelRef("a", "b"), ModelRef("a", "b")
    assert one == other
    assert len({one, other, ModelRef("a", "c"), ModelRef("b", "b")}) == 3
    assert one != ("a", "b")
    assert repr(one) == "ModelRef('a', 'b')"


def test_a_token_is_cancelled_for_a_reason() -> None:
    """None would leave it as it was: it is refused, and no reason given is `user`."""
    token = CancelToken()
    with pytest.raises(TypeError, match="the reason is a NoneType"):
        token.cancel(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="half a surrogate pair"):
        token.cancel("\ud800")
    assert not token.cancelled
    token.cancel()
    assert (token.cancelled, token.reason) == (True, "user")


def test_a_token_is_cancelled_once() -> None:
    """The first reason stands."""
    token = CancelToken()
    assert (token.cancelled, token.reason) == (False, None)
    token.cancel()
    token.cancel("later")
    assert (token.cancelled, token.reason) == (True, "user")
