"""`ToolRegistry`: who has which tools. On a `SystemPrompt` of its own, or as a service of a kernel.

    tools = ToolRegistry(prompt)

    @tools.register
    def refund(order: str, cents: int) -> str:
        \"\"\"Refund an order.\"\"\"
        ...

    agent = tools.at(prompt.scope("support"))
    agent.restrict(deny=["mcp__*"])
    await agent.call("refund", '{"order": "7", "cents": 100}')

A `ToolRegistry` is always a view, like the `SystemPrompt` that it stands on: an owner and a scope, on a toolbox that
all views share. The toolbox is one tool provider of the prompt; what is registered here is told there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from foreword.errors import (
    DuplicateEntryError,
    InvalidMaskError,
    InvalidOptionError,
    ReservedToolNameError,
    UnknownToolError,
    did_you_mean,
    shown,
)
from foreword.kernel.context import Context
from foreword.kernel.names import shortened
from foreword.kernel.plugins import plugin
from foreword.kernel.scope import GLOBAL, ScopeKey, as_key
from foreword.kernel.services import Service
from foreword.kernel.source import caller, calling_line
from foreword.prompt.checks import check_options
from foreword.prompt.context import AssembleContext
from foreword.prompt.contributions import TOOL_ORDER_REST
from foreword.prompt.system_prompt import SystemPrompt
from foreword.prompt.text import described
from foreword.tools.context import ToolContext
from foreword.tools.definition import ToolDefinition
from foreword.tools.execute import execute
from foreword.tools.masks import Mask, ToolMask
from foreword.tools.registrations import MaskRegistration, ToolRegistration
from foreword.tools.resolver import ScopeTools, Tool, ToolLayer
from foreword.tools.result import MAX_RESULT, failure
from foreword.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from foreword.errors import EntryRef
    from foreword.jsonvalue import JsonValue
    from foreword.kernel.scope import HasKey
    from foreword.kernel.source import Source
    from foreword.prompt.context import CancelToken
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.registry import Registrar
    from foreword.tools.result import ToolResult

__all__ = ["ToolRegistry"]

F = TypeVar("F", bound=Callable[..., Any])

_NO_OPTIONS: Final[dict[str, Any]] = {
    "name": None, "description": None, "parameters": None, "timeout": None, "sensitive": False,
    "max_result": MAX_RESULT,
}  # fmt: skip
_log = logging.getLogger("foreword.tools")


class ToolRegistry(Service):
    """The tools of agents: registered by plugins, seen by scopes, masked for some, called by name.

    Built directly, it is the view of its prompt's owner on the global layer. Under a kernel, mount the class
    (``ctx.mount(ToolRegistry)``) and have plugins take it by annotation.

    Args:
        prompt: the prompt that the tools are shown to, in the global layer; one registry a prompt.

    Raises:
        InvalidOptionError: the prompt is a view on some scope, or has a registry already.
        InactiveContextError: the prompt is closed.
    """

    __slots__ = ("_box", "_prompt")

    def __init__(self, prompt: SystemPrompt) -> None:
        source = calling_line(caller(1))
        self._prompt = _global(prompt, source)
        self._box = Toolbox(prompt, source)

    # -- as a service, and as views ------------------------------------------------------------------------------------

    @classmethod
    def as_plugin(cls) -> Callable[..., Any]:
        """The plugin that provides a `ToolRegistry` to others; what ``ctx.mount(ToolRegistry)`` mounts."""
        return tools_plugin

    def bind(self, ctx: Context) -> ToolRegistry:
        """The view of a context: its owner is the context's plugin, its scope the context's."""
        return self._view(self._prompt.bind(ctx))

    def at(self, view: SystemPrompt) -> ToolRegistry:
        """The same tools for another view of the prompt: what is registered through it goes when that view closes.

        Raises:
            ValueError: it is a view of another prompt.
            TypeError: it is no view of a prompt.
        """
        if not isinstance(cast("object", view), SystemPrompt):
            raise TypeError(
                f"tools are seen at a view of their prompt, not {described(view)}: tools.at(prompt.scope(…))"
            )
        if not view.is_view_of(self._prompt):
            raise ValueError(f"{view!r} is a view of another prompt than that of these tools")
        return self._view(view)

    @property
    def key(self) -> ScopeKey:
        """The key of this view's scope; `GLOBAL` for the global layer."""
        return self._prompt.key

    @property
    def active(self) -> bool:
        """Whether one may still register through this view."""
        return self._prompt.active

    @property
    def scopes(self) -> tuple[ScopeKey, ...]:
        """The scopes that hold tools or masks, in the order in which they first did."""
        return self._box.scopes()

    @property
    def stuck(self) -> tuple[EntryRef, ...]:
        """The tools that went on running after their call was given up; until they end."""
        return self._box.running.stuck()

    # -- registering ---------------------------------------------------------------------------------------------------

    @overload
    def register(self, tool: ToolDefinition, /, *, source: Source | None = None) -> ToolRegistration: ...
    @overload
    def register(
        self, tool: F, /, *, name: str | None = None, description: str | None = None,
        parameters: Mapping[str, JsonValue] | None = None, timeout: float | None = None, sensitive: bool = False,
        max_result: int = MAX_RESULT, source: Source | None = None,
    ) -> F: ...  # fmt: skip
    @overload
    def register(
        self, /, *, name: str | None = None, description: str | None = None,
        parameters: Mapping[str, JsonValue] | None = None, timeout: float | None = None, sensitive: bool = False,
        max_result: int = MAX_RESULT, source: Source | None = None,
    ) -> Callable[[F], F]: ...  # fmt: skip
    def register(
        self,
        tool: Any = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, JsonValue] | None = None,
        timeout: float | None = None,
        sensitive: bool = False,
        max_result: int = MAX_RESULT,
        source: Source | None = None,
    ) -> Any:
        """Register a tool, for this view's scope and those below it; in a scope it shadows a namesake further out.

        As a call or as a decorator, with options or without: ``@tools.register``, ``@tools.register(timeout=5)``,
        ``tools.register(refund, name="pay_back")``, ``tools.register(ToolDefinition(…))``.

        Args:
            tool: a function, which is given back as it is; or a definition, for which its registration is given.
            name: of a function: None for its own.
            description: of a function: None for its docstring, without the ``Args:`` section.
            parameters: of a function: a JSON Schema of type "object"; the function then takes all arguments as one
                dict. None to derive it from the annotations, and to call the function by its parameters.
            timeout: of a function: seconds that a call may take; None for any time.
            sensitive: of a function: its arguments and results are to be kept from whoever looks on.
            max_result: of a function: UTF-8 bytes that a result's text may have; the rest is cut off, visibly.
            source: the place to show for it; the line of this call if not given.

        Raises:
            InvalidToolSchemaError: it has no name, or does not say (in JSON Schema) what it takes; or another option
                of it is none.
            ReservedToolNameError: it has the name that marks the unlisted tools.
            DuplicateEntryError: the name is taken in this layer.
            InvalidOptionError: the timeout is no positive number of seconds.
            InactiveContextError: this view is closed. Nothing was changed, whatever was raised; an exception of a
                change listener takes the registration back.
        """
        place = calling_line(caller(1)) if source is None else source
        options: dict[str, Any] = {
            "name": name, "description": description, "parameters": parameters, "timeout": timeout,
            "sensitive": sensitive, "max_result": max_result,
        }  # fmt: skip
        if isinstance(tool, ToolDefinition):
            if options != _NO_OPTIONS:
                raise TypeError("a ToolDefinition has its own options; give them there")
            return self._register(tool, place)
        if tool is not None:
            self._register(ToolDefinition.of(tool, local=caller(1).f_locals, **options), place)
            return tool

        def decorate(function: F) -> F:
            self._register(ToolDefinition.of(function, local=caller(1).f_locals, **options), place)
            return function

        return decorate

    def _register(self, definition: ToolDefinition, source: Source) -> ToolRegistration:
        registrar, box = self._prompt.registrar(source), self._box
        if definition.name == TOOL_ORDER_REST:
            raise ReservedToolNameError(definition.name, str(registrar.origin))
        guard = _guard_of(registrar, definition.name)
        tool = Tool.of(definition, registrar.origin, registrar.registry.next_seq(), registrar.owner, guard)
        check_options(tool)

        def insert(layer: ToolLayer) -> None:
            held = layer.tools.get(tool.name)
            if held is not None:
                raise DuplicateEntryError(tool.ref, held.ref)
            layer.tools.insert(tool)

        undo = box.remover(registrar, lambda layer: layer.tools.remove(tool))
        registration = ToolRegistration(tool, registrar.owner, undo, box.running, registrar.ctx)
        box.add(registrar, registration, insert)
        return registration

    def restrict(
        self,
        mask: ToolMask | None = None,
        /,
        *,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        later: bool = False,
        source: Source | None = None,
    ) -> MaskRegistration:
        """Mask what this view's scope inherits: the global tools and those of enclosing scopes, never its own.

        It counts for the scopes below as well, and for tools that come later. Of several masks, each must admit a tool.
        Whoever is not to see a tool cannot call it either.

        Args:
            mask: a mask; or give its lists by name.
            allow: the names and patterns (``mcp__git__*``) of tools that are left; empty for none.
            deny: those of tools that are hidden.
            later: names may be those of tools that are still to come, as while an application is loaded anew.
            source: the place to show for it; the line of this call if not given.

        Returns:
            The registration. Its ``unmatched`` are the names and patterns that mean no tool as things are. A pattern
            among them at the time of this call is logged as a warning, since its tools may be still to come; not if
            ``later`` says that they are.

        Raises:
            UnknownToolError: a name is that of no tool that this scope inherits; not if tools may come ``later``.
            InvalidMaskError: it would mask nothing (no list, or only ``deny=[]``), or this view is the global one.
            NotAStringError: a list is none, or holds what is no name.
            InvalidOptionError: ``later`` is neither True nor False.
            TypeError: the mask is none.
            InactiveContextError: this view is closed.
        """
        place = calling_line(caller(1)) if source is None else source
        registrar, box = self._prompt.registrar(place), self._box
        scope, origin = registrar.scope, registrar.origin
        held = Mask(_mask(mask, allow, deny, origin), origin)
        if not isinstance(cast("object", later), bool):
            raise InvalidOptionError(held.ref, "later", f"must be True or False, not {shortened(later)}")
        if scope is GLOBAL:
            why = "stands in the global layer, which inherits nothing; mask a scope: tools.at(prompt.scope(…))"
            raise InvalidMaskError("unscoped_mask", str(origin), why)

        def insert(layer: ToolLayer) -> None:
            inherited = box.of(scope).inherited
            unknown = held.mask.unknown(inherited)
            if unknown and not later:
                raise UnknownToolError(str(origin), unknown, sorted(inherited))
            layer.masks[held] = None

        undo = box.remover(registrar, lambda layer: layer.masks.pop(held, None))
        registration = MaskRegistration(held, registrar.owner, undo, lambda: box.of(scope).inherited)
        box.add(registrar, registration, insert)
        for pattern in () if later else registration.unmatched:
            _log.warning('the pattern "%s" of %s matches no tool that is there now', shown(pattern), held)
        return registration

    # -- looking up ----------------------------------------------------------------------------------------------------

    def schemas(self, scope: ScopeKey | HasKey | None = None) -> tuple[ToolSchema, ...]:
        """What a model sees of the tools of a scope (None for this view's), in order of registration."""
        return tuple(tool.definition.schema for tool in self._of(scope).visible.values())

    def known_names(self, scope: ScopeKey | HasKey | None = None) -> frozenset[str]:
        """The names of the tools that a scope has, and of those that masks hide from it."""
        return self._of(scope).known

    def sensitive_names(self, scope: ScopeKey | HasKey | None = None) -> frozenset[str]:
        """The names of those tools of a scope whose calls are not to be shown to whoever looks on."""
        return self._of(scope).sensitive

    def get(self, name: str, scope: ScopeKey | HasKey | None = None) -> ToolDefinition | None:
        """The tool of a name in a scope; None if it has none, or may not see it."""
        tool = self._of(scope).visible.get(name)
        return None if tool is None else tool.definition

    def origin_of(self, name: str, scope: ScopeKey | HasKey | None = None) -> Origin | None:
        """Who registered the tool of a name in a scope, and where; None as `get` says."""
        tool = self._of(scope).visible.get(name)
        return None if tool is None else tool.origin

    def admits(self, name: str, scope: ScopeKey | HasKey | None = None) -> bool:
        """Whether all masks on a scope's chain admit a name, whoever bears it: for tools that stand elsewhere."""
        layers = self._box.layers.chain(self._key(scope))
        return all(mask.mask.admits(name) for layer in layers for mask in layer.masks)

    # -- calling -------------------------------------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        *,
        scope: ScopeKey | HasKey | None = None,
        call_id: str = "",
        signal: CancelToken | None = None,
        context: AssembleContext | None = None,
    ) -> ToolResult:
        """Call a tool of a scope.

        Args:
            name: which.
            arguments: JSON, as a model writes it, or an object.
            scope: whose tool; None for the context's scope, else for this view's.
            call_id: which call it is, as the model named it.
            signal: cancels the call; None for the context's.
            context: what the tool may know of its call: a `ToolContext` or an `AssembleContext`.

        Returns:
            What came of it. Failures are results, too, and their text is for the model: an unknown tool, arguments that
            do not fit, an error of the tool, a timeout, a cancelled signal. See `ToolResult`.

        Raises:
            TypeError: the scope is neither a key nor a view.
            BaseException: a cancellation of the caller, an exit that the tool raised; nothing else.
        """
        told = AssembleContext() if context is None else context
        key = self._key(told.scope if scope is None else scope)
        visible = self._box.of(key).visible
        tool = visible.get(name) if isinstance(cast("object", name), str) else None
        if tool is None:
            return _unknown(name, visible)
        own = ToolContext.of_call(told, key, name, call_id, told.signal if signal is None else signal)
        return await execute(tool, arguments, own, self._box.running)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _key(self, scope: ScopeKey | HasKey | None) -> ScopeKey:
        return self.key if scope is None else as_key(scope)

    def _of(self, scope: ScopeKey | HasKey | None) -> ScopeTools:
        return self._box.of(self._key(scope))

    def _view(self, prompt: SystemPrompt) -> ToolRegistry:
        view = ToolRegistry.__new__(ToolRegistry)
        view._box, view._prompt = self._box, prompt
        return view

    def __repr__(self) -> str:
        return f"<ToolRegistry: scope {self.key.name}, {len(self._of(None).visible)} tools>"


@plugin(name="tools")
def tools_plugin(prompt: SystemPrompt, ctx: Context) -> None:
    """Provide a `ToolRegistry` to the plugins of a kernel."""
    ctx.provide(ToolRegistry(prompt))


def _global(prompt: SystemPrompt, source: Source) -> SystemPrompt:
    if not isinstance(cast("object", prompt), SystemPrompt):
        raise TypeError(f"tools stand on a SystemPrompt, not {described(prompt)}: ToolRegistry(prompt)")
    registrar = prompt.registrar(source)
    origin = registrar.origin
    if prompt.key is not GLOBAL:
        why = "must be a view on the global layer; make the registry once, and take tools.at(view) for a scope's view"
        raise InvalidOptionError(origin.ref("tool registry", "tools"), "prompt", why)
    holder = Toolbox.of_prompt(registrar.registry)
    if holder is not None:
        why = (
            f"has the tools of another registry already, {holder}; use that one, and its tools.at(view) for other views"
        )
        raise InvalidOptionError(origin.ref("tool registry", "tools"), "prompt", why)
    return prompt


def _mask(mask: ToolMask | None, allow: Any, deny: Any, origin: Origin) -> ToolMask:
    if mask is not None:
        if allow is not None or deny is not None:
            raise TypeError("give either a ToolMask or its lists, not both")
        if not isinstance(cast("object", mask), ToolMask):
            raise TypeError(f"{described(mask)} is no ToolMask; give its lists by name: restrict(deny=[…])")
        return mask
    try:
        return ToolMask(allow, deny)
    except InvalidMaskError as fault:
        raise InvalidMaskError(fault.kind, str(origin), fault.why) from None


def _unknown(name: object, visible: Iterable[str]) -> ToolResult:
    """The result of a call of a tool that is not there: for the model, which may name one better."""
    if not isinstance(name, str):
        why = f"a tool is called by its name, not by {described(name)}; {did_you_mean('', visible, 'tools')}"
    else:
        why = f'there is no tool "{shown(name)}"; {did_you_mean(name, visible, "tools")}'
    return failure("UNKNOWN_TOOL", why)


def _guard_of(registrar: Registrar, tool: str) -> Callable[[BaseException], BaseException]:
    """What goes round the errors of a tool: under a kernel, its guard."""
    ctx = registrar.ctx
    if ctx is None:
        return lambda error: error
    return partial(ctx.root.guard, registrar.owner.name, f"tool {tool}")
