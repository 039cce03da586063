"""What one assembly is for: the scope, the agent, the model, the caller's own values, and a way to cancel it.

`AssembleContext` is handed to every provider and listener. (A plugin's own ``ctx`` is another thing, and so is a
*runtime context*, which is a contribution: see the glossary in ARCHITECTURE.md.)
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, cast, overload

from foreword.errors import MissingContextValueError, with_article
from foreword.kernel.names import spellable
from foreword.kernel.scope import ScopeKey, as_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from foreword.kernel.scope import HasKey

__all__ = ["AssembleContext", "CancelToken", "ContextKey", "ModelRef"]

T = TypeVar("T")
D = TypeVar("D")

_NO_VALUES: Final[dict[ContextKey[Any], object]] = {}  # one for all contexts without any: every view has one


class ContextKey(Generic[T]):
    """A typed key for a value that callers pass to providers: ``TENANT = ContextKey("tenant", str)``.

    Keys compare by identity, so two plugins that chose the same name do not meet. No template sees the values.
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: type[T]) -> None:
        """Make a key.

        Args:
            name: what errors call it.
            type: the class of its values, or several as in ``str | None``.

        Raises:
            TypeError: the type is none that a value can be checked against, as ``list[str]`` is not.
        """
        try:
            isinstance(cast("object", None), type)
        except TypeError:
            why = f"no value can be checked against {type!r}; give a class"
            raise TypeError(f"ContextKey({name!r}, …): {why}") from None
        self.name = name
        self.type = type

    def __repr__(self) -> str:
        return f"ContextKey({self.name!r}, {getattr(self.type, '__name__', self.type)})"


class ModelRef:
    """Which model the prompt is for."""

    __slots__ = ("name", "provider")

    def __init__(self, provider: str, name: str) -> None:
        self.provider = provider
        self.name = name

    def matches(self, glob: str) -> bool:
        """Whether a glob fits the model's name, or ``provider:name`` if the glob has a colon; case counts."""
        return fnmatchcase(f"{self.provider}:{self.name}" if ":" in glob else self.name, glob)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelRef) and (self.provider, self.name) == (other.provider, other.name)

    def __hash__(self) -> int:
        return hash((self.provider, self.name))

    def __repr__(self) -> str:
        return f"ModelRef({self.provider!r}, {self.name!r})"


class CancelToken:
    """Says that something is no longer wanted. Any thread may cancel; an assembly looks before each of its phases."""

    __slots__ = ("_calls", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        # Without a lock, so that a signal handler may cancel: popitem hands each call to exactly one thread.
        self._calls: dict[object, Callable[[], object]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self.reason is not None

    def cancel(self, reason: str = "user") -> None:
        """Cancel, for a reason that errors show. The first reason stands.

        Raises:
            TypeError: the reason is no string.
            ValueError: UTF-8 cannot spell it, and so no log could tell it.
        """
        if not isinstance(cast("object", reason), str):
            raise TypeError(f"the reason is {with_article(type(reason).__name__)}; give a string, or nothing")
        if not spellable(reason):
            raise ValueError(f"the reason {reason!r} holds half a surrogate pair; repair it where it is read")
        if self.reason is None:
            self.reason = reason
        self._run_calls()

    def on_cancel(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call a function once when the token is cancelled; at once if it is already.

        Args:
            call: must be quick and must not raise; it runs in the thread that cancels, which can be any, and even in a
                signal handler. To get back into an event loop, use its own way to be called from outside.

        Returns:
            The undo: after it the function is not called any more, unless that has begun.
        """
        key = object()
        self._calls[key] = call
        if self.reason is not None:
            self._run_calls()

        def undo() -> None:
            self._calls.pop(key, None)

        return undo

    def _run_calls(self) -> None:
        while self._calls:
            try:
                _, call = self._calls.popitem()
            except KeyError:  # another thread took the last one
                return
            call()


class AssembleContext:
    """What one assembly is for. Immutable; every field may be absent, and providers must tolerate that.

    Args:
        values: the caller's own values by `ContextKey`; copied.
        scope: whose prompt is asked for, a key or a view; None leaves it to the view that assembles, `GLOBAL` asks for
            the prompt of no scope.
        agent: the agent that the prompt is for, itself a scope key.
        model: the model that the prompt is for.
        signal: cancels the assembly.

    Raises:
        TypeError: a value is not of its key's type, or an argument is not what it should be.
    """

    __slots__ = ("_values", "agent", "model", "scope", "signal")

    scope: ScopeKey | None
    agent: ScopeKey | None
    model: ModelRef | None
    signal: CancelToken | None

    def __init__(
        self,
        values: Mapping[ContextKey[Any], object] | None = None,
        *,
        scope: ScopeKey | HasKey | None = None,
        agent: ScopeKey | None = None,
        model: ModelRef | None = None,
        signal: CancelToken | None = None,
    ) -> None:
        if values is not None and not isinstance(cast("object", values), Mapping):
            raise TypeError(f"values is {with_article(type(values).__name__)}; give a mapping: {{KEY: value}}")
        held = dict(values) if values else _NO_VALUES
        for key, value in held.items():
            if not isinstance(cast("object", key), ContextKey):
                raise TypeError(f'{key!r} is no ContextKey; make one once: KEY = ContextKey("name", str)')
            if not isinstance(value, key.type):
                raise TypeError(f"the value of {key!r} is {with_article(type(value).__name__)}")
        _check_type("agent", agent, ScopeKey, "a ScopeKey")
        _check_type("model", model, ModelRef, 'a ModelRef("provider", "name")')
        _check_type("signal", signal, CancelToken, "a CancelToken")
        put = object.__setattr__
        put(self, "_values", held)
        put(self, "scope", None if scope is None else as_key(scope))
        put(self, "agent", agent)
        put(self, "model", model)
        put(self, "signal", signal)

    @property
    def keys(self) -> Iterable[ContextKey[Any]]:
        """The keys that have a value."""
        return tuple(self._values)

    def __getitem__(self, key: ContextKey[T]) -> T:
        """The value of a key.

        Raises:
            MissingContextValueError: there is none; the assembly's error then names the provider that asked.
        """
        try:
            return cast("T", self._values[key])
        except KeyError:
            raise MissingContextValueError(key.name, sorted(each.name for each in self._values)) from None

    @overload
    def get(self, key: ContextKey[T]) -> T | None: ...
    @overload
    def get(self, key: ContextKey[T], default: D) -> T | D: ...
    def get(self, key: ContextKey[T], default: D | None = None) -> T | D | None:
        """The value of a key, or the default."""
        return cast("T | D | None", self._values.get(key, default))

    def at(self, scope: ScopeKey) -> AssembleContext:
        """The same context for another scope."""
        made = AssembleContext.__new__(AssembleContext)
        for name in AssembleContext.__slots__:
            object.__setattr__(made, name, scope if name == "scope" else getattr(self, name))
        return made

    def __copy__(self) -> AssembleContext:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> AssembleContext:
        return self  # its keys are told apart by identity

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AssembleContext cannot be pickled: its keys are told apart by identity; make another one")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an AssembleContext cannot be changed; make another one with {name}=…")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an AssembleContext cannot be changed; make another one without {name}")

    def __repr__(self) -> str:
        fields = {"scope": self.scope, "agent": self.agent, "model": self.model, "signal": self.signal}
        told = [f"{name}={value!r}" for name, value in fields.items() if value is not None]
        return f"AssembleContext({', '.join([repr(sorted(key.name for key in self._values)), *told])})"

    _values: dict[ContextKey[Any], object]


def _check_type(name: str, value: object, wanted: type, make: str) -> None:
    if value is not None and not isinstance(value, wanted):
        raise TypeError(f"{name} is {with_article(type(value).__name__)}; give {make}")
