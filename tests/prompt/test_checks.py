"""What a registration is held to, and in which order its faults are told."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.support.short import Bell, tool

from foreword import (
    AssembleContext,
    ContextKey,
    DuplicateEntryError,
    EmptyNameError,
    EmptyProtectionError,
    InvalidOptionError,
    InvalidVariableNameError,
    NonFiniteOrderError,
    NotAStringError,
    Placeholder,
    PromptLimits,
    PromptTooLargeError,
    ProtectedSectionShadowError,
    ProtectionConflictError,
    ReservedToolNameError,
    SystemPrompt,
    ToolProviderResult,
)

ORDERED = ["section", "context"]


async def async_text() -> str:
    return "x"


async def async_tools() -> ToolProviderResult:
    return ToolProviderResult([])


async def async_condition(context: AssembleContext) -> bool:
    return True


# Names and orders


@pytest.mark.parametrize("kind", ORDERED)
@pytest.mark.parametrize("name", ["", None, 5, b"rules", ("a",)], ids=repr)
def test_a_name_is_a_non_empty_string(kind: str, name: Any) -> None:
    """An empty name, or one that is no string, is refused and names kind and owner."""
    view = SystemPrompt().owner("plugin")
    with pytest.raises(EmptyNameError, match=f"{kind} of plugin") as caught:
        getattr(view, kind)(name, "x", order=1)
    assert caught.value.kind == "empty_name"


@pytest.mark.parametrize("kind", ORDERED)
@pytest.mark.parametrize(
    "order",
    [math.nan, math.inf, -math.inf, True, False, "1", None, 1j, Decimal(1), Fraction(1, 2)],
    ids=repr,
)
def test_an_order_is_a_finite_number(kind: str, order: Any) -> None:
    """Orders are finite ints or floats; no booleans, no other kinds of number."""
    with pytest.raises(NonFiniteOrderError, match=f'{kind} "s" of main') as caught:
        getattr(SystemPrompt(), kind)("s", "x", order=order)
    assert caught.value.given == repr(order)


@pytest.mark.parametrize("kind", ORDERED)
def test_an_order_is_required_by_name(kind: str) -> None:
    """There is no default order, and none by position."""
    with pytest.raises(TypeError, match="order"):
        getattr(SystemPrompt(), kind)("s", "x")
    with pytest.raises(TypeError, match="positional"):
        getattr(SystemPrompt(), kind)("s", "x", 1)


@pytest.mark.parametrize(
    "name", ["", "A", "aB", "1a", "_a", "a-b", "a b", "a.b", " a", "a\n", "ä", "aé", "a١", "{{a}}", None, 5], ids=repr
)
def test_a_variable_s_name_is_what_a_reference_can_spell(name: Any) -> None:
    """The whole name is a lower-case letter, then letters, digits or underscores; ASCII only."""
    with pytest.raises(InvalidVariableNameError, match="of plugin") as caught:
        SystemPrompt().owner("plugin").variable(name, "x")
    assert caught.value.kind == "invalid_variable_name"


@pytest.mark.parametrize("name", ["a", "z9", "a_", "a__b", "company_name2"])
def test_fit_variable_names(name: str) -> None:
    """Names that references can spell are taken."""
    prompt = SystemPrompt(persona=f"{{{{{name}}}}}")
    prompt.variable(name, "x")
    assert prompt.render_sync().text == "x"


# Protections and tools


@pytest.mark.parametrize("given", [{}, {"sections": []}, {"tools": ()}, {"sections": iter([]), "tools": set()}])
def test_a_protection_names_something(given: dict[str, Any]) -> None:
    """A protection without a single name is refused, naming its owner."""
    with pytest.raises(EmptyProtectionError, match="of plugin") as caught:
        SystemPrompt().owner("plugin").protect(**given)
    assert caught.value.kind == "empty_protection"


@pytest.mark.parametrize("argument", ["sections", "tools"])
@pytest.mark.parametrize("given", ["safety", [5], ["safety", None], 5, [["safety"]]], ids=repr)
def test_a_protection_takes_lists_of_strings(argument: str, given: Any) -> None:
    """A bare string, a number, or a list with something else in it is told which argument is meant."""
    with pytest.raises(NotAStringError, match=f"{argument}=.*of plugin"):
        SystemPrompt().owner("plugin").protect(**{argument: given})


def test_a_bare_string_is_told_to_become_a_list() -> None:
    """The likely slip, `protect(sections="safety")`, is told its way out."""
    with pytest.raises(NotAStringError, match=r"sections=\['safety'\]"):
        SystemPrompt().protect(sections="safety")


def test_the_reserved_marker_is_no_tool_name() -> None:
    """A static tool of the name that marks unlisted tools is refused when it is registered."""
    prompt = SystemPrompt()
    with pytest.raises(ReservedToolNameError, match=r"files .*<unlisted-tools>.*rename the tool"):
        prompt.owner("files").tools([tool("a"), tool("<unlisted-tools>")])
    assert prompt.render_sync().tools == ()


# Options that do not fit

STATIC: dict[str, Callable[..., Any]] = {
    "section": lambda view, **options: view.section("x", "text", order=1, **options),
    "context": lambda view, **options: view.context("x", "text", order=1, **options),
    "variable": lambda view, **options: view.variable("x", "value", **options),
    "tools": lambda view, **options: view.tools([tool("x")], **options),
}
SYNC: dict[str, Callable[..., Any]] = {
    "section": lambda view, **options: view.section("x", lambda: "text", order=1, **options),
    "context": lambda view, **options: view.context("x", lambda: "text", order=1, **options),
    "variable": lambda view, **options: view.variable("x", lambda: "value", **options),
    "tools": lambda view, **options: view.tools(list, **options),
}
ASYNC: dict[str, Callable[..., Any]] = {
    "section": lambda view, **options: view.section("x", async_text, order=1, **options),
    "context": lambda view, **options: view.context("x", async_text, order=1, **options),
    "variable": lambda view, **options: view.variable("x", async_text, **options),
    "tools": lambda view, **options: view.tools(async_tools, **options),
}
DOCS = ContextKey("docs", list)
TEXTS = ("section", "context")
ALL = ("section", "context", "variable", "tools")


def unfit() -> list[Any]:
    """Every option that does not fit its entry: how it is registered, kind, options, the option to blame, a hint."""
    cases: list[tuple[str, dict[str, Callable[..., Any]], tuple[str, ...], dict[str, Any], str, str]] = [
        ("static", STATIC, ALL, {"timeout": 1}, "timeout", "static"),
        ("static", STATIC, ALL, {"on_error": "skip"}, "on_error", "static value cannot fail"),
        ("static", STATIC, TEXTS, {"on_error": Placeholder("x")}, "on_error", "static value cannot fail"),
        ("static", STATIC, ("variable",), {"on_error": Placeholder("x")}, "on_error", "static value cannot fail"),
        ("sync", SYNC, ALL, {"timeout": 1}, "timeout", "async def"),
        ("sync", SYNC, ("tools",), {"on_error": Placeholder("x")}, "on_error", '"skip"'),
        ("sync", SYNC, ALL, {"on_error": "retry"}, "on_error", "Placeholder"),
        ("sync", SYNC, ALL, {"on_error": "Skip"}, "on_error", '"skip"'),
        ("sync", SYNC, ALL, {"on_error": None}, "on_error", '"fail"'),
        ("sync", SYNC, TEXTS, {"on_error": Placeholder(5)}, "on_error", "string"),  # type: ignore[arg-type]
        ("sync", SYNC, ALL, {"when": True}, "when", "function of the context"),
        ("sync", SYNC, ALL, {"when": "gpt-*"}, "when", "function of the context"),
        ("sync", SYNC, ALL, {"when": async_condition}, "when", "plain function"),
        ("static", STATIC, ALL, {"when": async_condition}, "when", "plain function"),
        ("async", ASYNC, ALL, {"timeout": 0}, "timeout", "positive"),
        ("async", ASYNC, ALL, {"timeout": -1}, "timeout", "positive"),
        ("async", ASYNC, ALL, {"timeout": math.nan}, "timeout", "positive"),
        ("async", ASYNC, ALL, {"timeout": math.inf}, "timeout", "positive"),
        ("async", ASYNC, ALL, {"timeout": 10**400}, "timeout", "at most"),
        ("async", ASYNC, ALL, {"timeout": 10_000_001}, "timeout", "at most"),
        ("async", ASYNC, ALL, {"timeout": True}, "timeout", "number of seconds"),
        ("async", ASYNC, ALL, {"timeout": "1s"}, "timeout", "number of seconds"),
        ("static", STATIC, TEXTS, {"requires_tools": "bash"}, "requires_tools", r"requires_tools=\['bash'\]"),
        ("static", STATIC, TEXTS, {"requires_tools": 5}, "requires_tools", "list of tool names"),
        ("static", STATIC, TEXTS, {"requires_tools": None}, "requires_tools", "list of tool names"),
        ("static", STATIC, TEXTS, {"requires_tools": [""]}, "requires_tools", "non-empty strings"),
        ("static", STATIC, TEXTS, {"requires_tools": [5]}, "requires_tools", "non-empty strings"),
        ("static", STATIC, TEXTS, {"requires_tools": ["\ud800"]}, "requires_tools", "non-empty strings"),
        ("static", STATIC, TEXTS, {"verbatim": "no"}, "verbatim", "True or False, not 'no'"),
        ("static", STATIC, ("section",), {"complete": "no"}, "complete", "True or False"),
        ("static", STATIC, ("context", "variable"), {"sensitive": 0}, "sensitive", "True or False, not 0"),
        ("sync", SYNC, ALL, {"thread": "no"}, "thread", "True or False"),
        ("sync", SYNC, ALL, {"on_error": "last_good", "last_good_by": [DOCS]}, "last_good_by", "values can change"),
        (
            "static", STATIC, ("section",), {"requires_tools": ["bash"], "complete": True}, "requires_tools",
            "complete section",
        ),
    ]  # fmt: skip
    return [
        pytest.param(register[kind], kind, options, blamed, hint, id=f"{how} {kind} {number}")
        for number, (how, register, kinds, options, blamed, hint) in enumerate(cases)
        for kind in kinds
    ]


@pytest.mark.parametrize(("register", "kind", "options", "blamed", "hint"), unfit())
def test_an_option_must_fit_its_entry(
    register: Callable[..., Any], kind: str, options: dict[str, Any], blamed: str, hint: str
) -> None:
    """An option that could never take effect, or makes no sense, is refused, named with its entry and a way out."""
    prompt = SystemPrompt()
    bell = Bell()
    prompt.on_change(bell)
    with pytest.raises(InvalidOptionError, match=hint) as caught:
        register(prompt.owner("plugin"), **options)
    error = caught.value
    assert (error.kind, error.option) == ("invalid_option", blamed)
    assert error.entry.kind == {"tools": "tool provider"}.get(kind, kind)
    assert "of plugin" in str(error)
    assert bell.rung == 0
    register(prompt)


UNKNOWN = {
    "section": ["sensitive"],
    "context": ["complete"],
    "variable": ["verbatim", "requires_tools", "complete", "order"],
    "tools": ["verbatim", "requires_tools", "complete", "order", "sensitive"],
}


@pytest.mark.parametrize(("kind", "option"), [(kind, option) for kind, each in UNKNOWN.items() for option in each])
def test_an_option_of_another_kind_is_no_argument(kind: str, option: str) -> None:
    """Options that a kind does not have are refused as Python refuses unknown arguments."""
    with pytest.raises(TypeError, match=option):
        STATIC[kind](SystemPrompt(), **{option: True})


@pytest.mark.parametrize("register", [*SYNC.values(), *ASYNC.values()])
def test_fit_options_are_taken(register: Callable[..., Any]) -> None:
    """A provider takes `when` and `on_error`, and an async one a timeout."""
    prompt = SystemPrompt()
    register(prompt.scope("a"), when=lambda context: False, on_error="skip")
    register(prompt.scope("b"), on_error="fail")
    if register in ASYNC.values():
        register(prompt.scope("c"), timeout=0.5)


def test_options_are_checked_when_a_decorated_function_is_known() -> None:
    """A decorator is held to the same as a call with a value."""
    prompt = SystemPrompt()
    with pytest.raises(InvalidOptionError, match="async def"):

        @prompt.section("s", order=1, timeout=1)
        def sync() -> str:
            return "x"

    assert prompt.render_sync().text == ""


def test_replacing_is_held_to_the_options_too() -> None:
    """A replacement must fit the options given at the registration: no static value where a timeout stands."""
    prompt = SystemPrompt()
    registration = prompt.section("s", async_text, order=1, timeout=1)
    with pytest.raises(InvalidOptionError, match="static"):
        registration.replace("static")
    with pytest.raises(InvalidOptionError, match="async def"):
        registration.replace(lambda: "sync")
    registration.replace(async_text)
    assert prompt.render_sync().text == "x"


@pytest.mark.parametrize("kind", ALL)
def test_a_provider_takes_the_context_or_nothing(kind: str) -> None:
    """A function that requires more than one argument could never be called: that is told at the registration."""
    prompt = SystemPrompt()

    def greedy(context: AssembleContext, extra: str) -> str:
        return extra

    register = {
        "section": lambda: prompt.section("x", greedy, order=1),  # type: ignore[call-overload]
        "context": lambda: prompt.context("x", greedy, order=1),  # type: ignore[call-overload]
        "variable": lambda: prompt.variable("x", greedy),  # type: ignore[call-overload]
        "tools": lambda: prompt.tools(greedy),  # type: ignore[call-overload]
    }
    with pytest.raises(InvalidOptionError, match="the context or nothing"):
        register[kind]()


@pytest.mark.parametrize("name", ["", 5, None], ids=repr)
def test_owners_and_scopes_have_names(name: Any) -> None:
    """An owner's or a scope's name is a non-empty string: every message and trace shows it."""
    prompt = SystemPrompt()
    with pytest.raises(EmptyNameError, match="owner"):
        prompt.owner(name)
    with pytest.raises((EmptyNameError, TypeError), match="scope"):
        prompt.scope(name)


# Values


@pytest.mark.parametrize("value", [None, 5, b"x", ["x"], 1.5], ids=repr)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_is_a_string_a_path_or_a_provider(kind: str, value: Any) -> None:
    """Anything else is refused at the call, saying what fits."""
    with pytest.raises(NotAStringError, match="a string, a Path or a provider"):
        getattr(SystemPrompt(), kind)("s", value, order=1)


@pytest.mark.parametrize("value", [5, b"x", True], ids=repr)
def test_a_value_is_a_string_none_or_a_provider(value: Any) -> None:
    """A variable's value is not turned into text: numbers are refused at the call."""
    with pytest.raises(NotAStringError, match="a string, None or a provider"):
        SystemPrompt().variable("v", value)


def test_a_value_is_never_shown() -> None:
    """An error tells what kind of thing was given, not the thing: it may be a secret."""
    with pytest.raises(NotAStringError) as caught:
        SystemPrompt().variable("v", b"hunter2")  # type: ignore[call-overload]
    assert "hunter2" not in str(caught.value)


# Limits


@pytest.mark.parametrize("kind", TEXTS)
def test_a_static_text_is_held_to_its_limit(kind: str) -> None:
    """Limits count UTF-8 bytes: a text of exactly that many passes, one more does not."""
    prompt = SystemPrompt(limits=PromptLimits(text=6))
    getattr(prompt, kind)("fits", "ääa1", order=1)
    with pytest.raises(PromptTooLargeError, match=f'{kind} "s" of main') as caught:
        getattr(prompt, kind)("s", "äää1", order=1)
    error = caught.value
    assert (error.kind, error.size, error.limit) == ("prompt_too_large", 7, 6)


def test_a_static_value_is_held_to_its_limit() -> None:
    """Values have a limit of their own."""
    prompt = SystemPrompt(limits=PromptLimits(text=1, value=4))
    prompt.variable("fits", "1234")
    with pytest.raises(PromptTooLargeError, match='variable "v" of main'):
        prompt.variable("v", "12345")


def test_replacing_is_held_to_the_limits_too() -> None:
    """A replaced text may not be larger than a registered one."""
    prompt = SystemPrompt(limits=PromptLimits(text=3))
    registration = prompt.section("s", "abc", order=1)
    with pytest.raises(PromptTooLargeError):
        registration.replace("abcd")
    assert prompt.render_sync().text == "abc"


# The order of the faults

TOO_LARGE = "x" * 100


@pytest.mark.parametrize("kind", TEXTS)
def test_faults_are_told_in_a_fixed_order(kind: str) -> None:
    """Name, order, uniqueness, protection, options, size: the first fault in this order is the one told."""
    prompt = SystemPrompt(limits=PromptLimits(text=10))
    agent = prompt.scope("agent")
    register = getattr(agent, kind)
    register("taken", "x", order=1)
    prompt.protect(sections=["safety"])
    steps: list[tuple[type[Exception], str, float, bool | None]] = [
        (EmptyNameError, "", math.nan, True),
        (NonFiniteOrderError, "taken", math.nan, True),
        (DuplicateEntryError, "taken", 1, True),
        (ProtectedSectionShadowError, "safety", 1, True),
        (InvalidOptionError, "free", 1, True),
        (PromptTooLargeError, "free", 1, None),
    ]
    for error, name, order, when in steps:
        if kind == "context" and error is ProtectedSectionShadowError:
            continue
        with pytest.raises(error):
            register(name, TOO_LARGE, order=order, when=when)


def test_a_taken_name_is_told_before_a_bad_value() -> None:
    """For a variable: name, uniqueness, then options and value."""
    prompt = SystemPrompt(limits=PromptLimits(value=10))
    prompt.variable("taken", "x")
    steps: list[tuple[type[Exception], str, Any]] = [
        (InvalidVariableNameError, "Bad", True),
        (DuplicateEntryError, "taken", True),
        (InvalidOptionError, "free", True),
        (PromptTooLargeError, "free", None),
    ]
    for error, name, when in steps:
        with pytest.raises(error):
            prompt.variable(name, TOO_LARGE, when=when)


def test_a_protection_s_names_are_told_before_its_conflicts() -> None:
    """For a protection: strings first, then that there are any, then conflicts."""
    prompt = SystemPrompt()
    prompt.scope("agent").section("s", "x", order=1)
    with pytest.raises(NotAStringError):
        prompt.protect(sections=["s", 5])  # type: ignore[list-item]
    with pytest.raises(EmptyProtectionError):
        prompt.protect(sections=[])
    with pytest.raises(ProtectionConflictError):
        prompt.protect(sections=["s"])
    prompt.protect(tools=["s"])
