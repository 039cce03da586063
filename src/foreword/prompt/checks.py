"""What a registration is held to. Nothing is changed before all has passed, and the first fault is the one told.

The order is the contract's: the name, the order, whether the name is free (`Registry.check_free`), the options, the
text or value and its limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from foreword.errors import (
    EmptyNameError,
    EmptyProtectionError,
    EntryRef,
    InvalidOptionError,
    InvalidToolSchemaError,
    InvalidVariableNameError,
    NonFiniteOrderError,
    NotAStringError,
    ReservedToolNameError,
)
from foreword.kernel.names import NAME_RULE, plain_name, shortened, spellable
from foreword.kernel.source import Source
from foreword.kernel.timeouts import TIMEOUT_RULE, is_timeout
from foreword.prompt.context import ContextKey
from foreword.prompt.contributions import (
    TOOL_ORDER_REST,
    Entry,
    OrderedText,
    Placeholder,
    Protection,
    Provider,
    RuntimeContext,
    Section,
    ToolProviderResult,
    ToolSchema,
    ToolSource,
    Variable,
)
from foreword.prompt.last_good import LastGood
from foreword.prompt.origin import Origin
from foreword.prompt.template import is_variable_name
from foreword.prompt.text import described, plain_string, read_text, within

if TYPE_CHECKING:
    from foreword.prompt.config import PromptLimits

__all__ = [
    "check_flags",
    "check_options",
    "checked_last_good",
    "checked_name",
    "checked_order",
    "checked_protection",
    "checked_required",
    "checked_schemas",
    "checked_static",
    "checked_tools",
    "checked_variable_name",
    "with_value",
]

E = TypeVar("E", bound=Section | RuntimeContext | Variable)


# -- names and orders --------------------------------------------------------------------------------------------------


def checked_name(kind: str, name: object, owner: object) -> str:
    """The name of anything but a variable: a non-empty string."""
    plain = plain_name(name)
    if plain is None:
        raise EmptyNameError(kind, str(owner), shortened(name))
    return plain


def checked_variable_name(name: object, origin: Origin) -> str:
    """The name of a variable: what a reference can spell."""
    if not isinstance(name, str) or not is_variable_name(name):
        raise InvalidVariableNameError(name if isinstance(name, str) else shortened(name), str(origin))
    return "".join((name,))


def checked_order(order: object, kind: str, name: str, origin: Origin) -> float:
    """An order: a finite number, and no bool, which Python would take for one."""
    if isinstance(order, bool) or not isinstance(order, (int, float)) or not _is_finite(order):
        raise NonFiniteOrderError(origin.ref(kind, name), shortened(order))
    return order


def _is_finite(order: float) -> bool:
    try:
        return math.isfinite(order)
    except OverflowError:  # an int that no float can hold is a finite number all the same
        return True


# -- options -----------------------------------------------------------------------------------------------------------


def checked_required(tools: object, ref: EntryRef, *, complete: bool) -> tuple[str, ...]:
    """The names in ``requires_tools``, as they are at the call."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        hint = f": requires_tools=[{tools!r}]" if isinstance(tools, str) else f", not {described(tools)}"
        raise InvalidOptionError(ref, "requires_tools", f"must be a list of tool names{hint}")
    held = list(cast("Iterable[object]", tools))
    for name in held:
        if plain_name(name) is None:
            raise InvalidOptionError(ref, "requires_tools", f"must hold non-empty strings, not {shortened(name)}")
    names = cast("list[str]", held)
    if complete and names:
        why = "a complete section is the whole prompt and cannot depend on a tool; drop one of the two"
        raise InvalidOptionError(ref, "requires_tools", why)
    # a set has no order of its own, and which missing tool is named must not depend on the hash seed
    return tuple(sorted(names) if isinstance(tools, (set, frozenset)) else names)


def checked_last_good(on_error: object, by: object, ref: EntryRef) -> LastGood | None:
    """Where the last good answers of an entry are kept; None where nobody asks for them."""
    if isinstance(by, ContextKey):
        raise InvalidOptionError(ref, "last_good_by", f"must be a list of context keys: last_good_by=[{by!r}]")
    keys = list(cast("Iterable[object]", by)) if isinstance(by, Iterable) else [by]
    for key in keys:
        if not isinstance(key, ContextKey):
            raise InvalidOptionError(ref, "last_good_by", f"must hold ContextKeys, not {shortened(key)}")
    held = cast("list[ContextKey[Any]]", keys)
    for key in held:
        if getattr(key.type, "__hash__", key) is None:  # told apart by hash, and what can change has none
            why = f"cannot tell answers apart by {key!r}, whose values can change; take a key of str, int or a tuple"
            raise InvalidOptionError(ref, "last_good_by", why)
    if on_error == "last_good":
        return LastGood(tuple(held))
    if held:
        raise InvalidOptionError(ref, "last_good_by", 'has no effect without on_error="last_good"')
    return None


def check_signature(provider: Provider[Any], ref: EntryRef) -> None:
    """Refuse a function that could not be called: a provider takes the context or nothing."""
    if provider.required > 1:
        why = f"a provider takes the context or nothing, and this one requires {provider.required} arguments"
        raise InvalidOptionError(ref, "provider", why)


def check_flags(entry: Entry) -> None:
    """Options that are true or false: any other value counts as one of them in Python, as "no" counts as true."""
    for flag in entry.FLAGS:
        if type(getattr(entry, flag)) is not bool:
            raise InvalidOptionError(entry.ref, flag, f"must be True or False, not {shortened(getattr(entry, flag))}")


def check_options(entry: Entry) -> None:
    """Options that do not fit the entry's value; a setting that could never take effect is a mistake, so it is told."""
    ref = entry.ref
    static = entry.provider.call is None
    condition = cast("object", entry.when)
    if condition is not None and not callable(condition):
        raise InvalidOptionError(ref, "when", f"must be a function of the context, not {described(condition)}")
    if callable(condition) and Provider[bool](None, condition).is_async:
        raise InvalidOptionError(ref, "when", "must be a plain function: conditions are asked before anything async")
    _check_on_error(entry, static=static)
    if entry.thread and (static or entry.provider.is_async):
        what = "a static value needs no thread" if static else "an async provider runs in the event loop"
        raise InvalidOptionError(ref, "thread", f"{what}; drop it")
    timeout = cast("object", entry.timeout)
    if timeout is None:
        return
    if not is_timeout(timeout):
        why = f"{TIMEOUT_RULE}, not {shortened(timeout)}"
        raise InvalidOptionError(ref, "timeout", why)
    if static:
        raise InvalidOptionError(ref, "timeout", "a static value cannot time out; drop it")
    if not entry.is_awaited:
        why = "a plain function cannot be interrupted; define it with `async def`, or add thread=True"
        raise InvalidOptionError(ref, "timeout", why)


def _check_on_error(entry: Entry, *, static: bool) -> None:
    on_error = cast("object", entry.on_error)
    if on_error == "fail":
        return
    if isinstance(on_error, Placeholder):
        if not isinstance(cast("object", on_error.text), str):
            why = f"a Placeholder needs a string, not {described(on_error.text)}"
            raise InvalidOptionError(entry.ref, "on_error", why)
        if isinstance(entry, ToolSource):
            raise InvalidOptionError(entry.ref, "on_error", 'a Placeholder is a text, and tools have none; use "skip"')
    elif on_error not in ("skip", "last_good"):
        choices = '"fail", "skip", "last_good" or Placeholder(…)'
        raise InvalidOptionError(entry.ref, "on_error", f"must be {choices}, not {shortened(on_error)}")
    if static and entry.when is None:
        raise InvalidOptionError(entry.ref, "on_error", "a static value cannot fail; drop it, or give a provider")


# -- texts and values --------------------------------------------------------------------------------------------------


def with_value(entry: E, value: object, limits: PromptLimits) -> E:
    """Give an entry its text or value, options and limit checked: what a registration and its ``replace`` put in.

    Args:
        entry: made for this, and nobody else's yet: it is completed in place.
        value: what the caller gave.
        limits: what it is held to.

    Raises:
        InvalidOptionError: the entry's options do not fit the value.
        NotAStringError: neither a string nor a provider (nor a `Path` for a text, nor None for a variable).
        UnreadableTextError: the file of a `Path` cannot be read as UTF-8.
        PromptTooLargeError: a static text or value over its limit.
    """
    noun, limit = ("text", limits.text) if isinstance(entry, OrderedText) else ("value", limits.value)
    origin = entry.origin
    check_flags(entry)
    if callable(value):
        provider: Provider[Any] = Provider(None, value)
    elif isinstance(value, Path) and noun == "text":
        provider = Provider(read_text(value, entry.ref))
        origin = replace(origin, source=Source(str(value.absolute()), 1, is_text=True))
    elif value is None and noun == "value":
        provider = Provider(None)
    elif isinstance(value, str):
        provider = Provider(plain_string(value, noun))
    else:
        takes = "a string, a Path or a provider function" if noun == "text" else "a string, None or a provider function"
        raise NotAStringError(f"the {noun} of {entry}", described(value), f"give {takes}")
    if provider.required > 1:
        check_signature(provider, entry.ref)
    put = object.__setattr__  # many times faster than `dataclasses.replace`, and registering happens for each agent
    put(entry, "provider", provider)
    put(entry, "origin", origin)
    if entry.last_good is not None:
        put(entry, "last_good", entry.last_good.emptied())  # another value has no last good answers yet
    if entry.when is not None or entry.on_error != "fail" or entry.timeout is not None or entry.thread:
        check_options(entry)
    if provider.static is not None and len(provider.static) * 4 > limit:
        within(limit, provider.static, f"the {noun} of {entry}")
    return entry


def checked_static(text: object, ref: EntryRef, limits: PromptLimits) -> str:
    """A text that is there already: a string, or a `Path` that is read now."""
    if not isinstance(text, (str, Path)):
        raise NotAStringError(f"the text of {ref}", described(text), "give a string or a Path")
    held = read_text(text, ref) if isinstance(text, Path) else plain_string(text, "text")
    within(limits.text, held, f"the text of {ref}")
    return held


# -- protections and tools ---------------------------------------------------------------------------------------------


def checked_protection(origin: Origin, sections: object, tools: object) -> Protection:
    """A protection of at least one name; the names are taken as they are at the call."""
    held = Protection(origin, _names(sections, "sections", origin), _names(tools, "tools", origin))
    if not held.sections and not held.tools:
        raise EmptyProtectionError(str(origin))
    return held


def _names(names: object, what: str, origin: Origin) -> tuple[str, ...]:
    of_what = f"{what}= of a protection of {origin}"
    if isinstance(names, str) or not isinstance(names, Iterable):
        way_out = f"give a list of names: {what}=[{names!r}]" if isinstance(names, str) else "give a list of names"
        raise NotAStringError(of_what, f"not a list but {described(names)}", way_out)
    held = tuple(cast("Iterable[object]", names))
    for name in held:
        if not isinstance(name, str):
            raise NotAStringError(f"a name in {of_what}", described(name))
    return cast("tuple[str, ...]", held)


def checked_tools(value: object, bare: ToolSource) -> ToolSource:
    """A tool provider with its value; static schemas are checked here, those of a function at each assembly."""
    check_flags(bare)
    if callable(value):
        made = replace(bare, provider=Provider(None, value))
        check_signature(made.provider, bare.ref)
    else:
        given = value if isinstance(value, ToolProviderResult) else _as_result(value)
        schemas, known = checked_schemas(given, bare, answering=False)
        result = replace(given, schemas=schemas, known_names=None if given.known_names is None else known)
        made = replace(bare, provider=Provider(result))
        made.memory.schemas, made.memory.known = schemas, known
    check_options(made)
    return made


def _as_result(value: Any) -> ToolProviderResult:
    return ToolProviderResult(value)  # what it holds is checked next


def checked_schemas(
    result: ToolProviderResult, source: ToolSource, *, answering: bool
) -> tuple[tuple[ToolSchema, ...], frozenset[str]]:
    """The schemas and known names of an answer, detached from it.

    Args:
        result: what the provider gave.
        source: the provider.
        answering: in an assembly; a reserved name is then left to the order stage, which tells it after all failures.
    """
    given = cast("object", result.schemas)
    who = "it" if answering else str(source)  # a failing answer is told with its provider's name in front
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidToolSchemaError(None, f"{who} gives {described(given)}, not a list of ToolSchema")
    _check_origins(result, who)
    schemas: tuple[Any, ...] = tuple(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    last = source.memory.schemas
    if answering and last is not None and len(schemas) == len(last) and all(map(is_, schemas, last)):
        return last, _known(result, last, source)  # the very same frozen objects: checked already
    for schema in schemas:
        _check_schema(schema, source, who, answering=answering)
    return schemas, _known(result, schemas, source)


def _check_schema(schema: object, source: ToolSource, who: str, *, answering: bool) -> None:
    if not isinstance(schema, ToolSchema):
        raise InvalidToolSchemaError(None, f"{who} gives {described(schema)} for a tool; make it a ToolSchema(…)")
    name = plain_name(schema.name)
    if name is None:
        why = f"{who} gives a tool whose name is {shortened(schema.name)}; it {NAME_RULE}"
        raise InvalidToolSchemaError(None, why)
    description = cast("object", schema.description)
    if not isinstance(description, str) or not spellable(description):
        what = described(description) if not isinstance(description, str) else "text with a lone surrogate"
        raise InvalidToolSchemaError(name, f"{who} gives {what} as its description; give a string")
    if name == TOOL_ORDER_REST and not answering:
        raise ReservedToolNameError(name, str(source.origin))


def _check_origins(result: ToolProviderResult, who: str) -> None:
    for field, kind in (("origins", Origin), ("hidden_by", EntryRef)):
        told = cast("object", getattr(result, field))
        if not isinstance(told, Mapping):
            raise InvalidToolSchemaError(None, f"{who} gives {described(told)} as {field}; give a dict by tool name")
        for value in cast("Mapping[object, object]", told).values():
            if not isinstance(value, kind):
                why = f"{who} gives {described(value)} among its {field}; make it an {kind.__name__}"
                raise InvalidToolSchemaError(None, why)


def _known(result: ToolProviderResult, schemas: tuple[ToolSchema, ...], source: ToolSource) -> frozenset[str]:
    if result.known_names is None:
        return frozenset(schema.name for schema in schemas)
    given = cast("object", result.known_names)
    if isinstance(given, str) or not isinstance(given, Iterable):
        what = "one string" if isinstance(given, str) else described(given)
        raise NotAStringError(f"known_names of {source}", f"not a list but {what}", "give a list of names")
    names = list(cast("Iterable[object]", given))
    for name in names:
        if not isinstance(name, str):
            raise NotAStringError(f"a name in known_names of {source}", described(name))
    return frozenset(cast("list[str]", names))
