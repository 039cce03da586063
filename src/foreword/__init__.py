"""Foreword assembles the system prompt of LLM agents: contributed by many, owned to the last character.

    from foreword import SystemPrompt

The names below are all that is public here. Each is loaded when it is first used, so importing the package costs next
to nothing and brings in no event loop, no framework and no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.errors import AssemblyCancelledError as AssemblyCancelledError
    from foreword.errors import AssemblyError as AssemblyError
    from foreword.errors import ConfigFault as ConfigFault
    from foreword.errors import DuplicateEntryError as DuplicateEntryError
    from foreword.errors import EmptyNameError as EmptyNameError
    from foreword.errors import EmptyProtectionError as EmptyProtectionError
    from foreword.errors import EntryRef as EntryRef
    from foreword.errors import ForewordError as ForewordError
    from foreword.errors import InactiveContextError as InactiveContextError
    from foreword.errors import InvalidConfigError as InvalidConfigError
    from foreword.errors import InvalidOptionError as InvalidOptionError
    from foreword.errors import InvalidToolSchemaError as InvalidToolSchemaError
    from foreword.errors import InvalidVariableNameError as InvalidVariableNameError
    from foreword.errors import ListenerError as ListenerError
    from foreword.errors import LoneSurrogateError as LoneSurrogateError
    from foreword.errors import MalformedReferenceError as MalformedReferenceError
    from foreword.errors import MissingContextValueError as MissingContextValueError
    from foreword.errors import MultipleCompleteSectionsError as MultipleCompleteSectionsError
    from foreword.errors import NonFiniteOrderError as NonFiniteOrderError
    from foreword.errors import NotAStringError as NotAStringError
    from foreword.errors import NotJsonError as NotJsonError
    from foreword.errors import PromptTooLargeError as PromptTooLargeError
    from foreword.errors import ProtectedSectionShadowError as ProtectedSectionShadowError
    from foreword.errors import ProtectionConflictError as ProtectionConflictError
    from foreword.errors import ProviderFailedError as ProviderFailedError
    from foreword.errors import ProviderFailure as ProviderFailure
    from foreword.errors import ProviderTimeoutError as ProviderTimeoutError
    from foreword.errors import RegistrationError as RegistrationError
    from foreword.errors import RenderError as RenderError
    from foreword.errors import ReservedToolNameError as ReservedToolNameError
    from foreword.errors import RunningLoopError as RunningLoopError
    from foreword.errors import ScopeAlreadyBoundError as ScopeAlreadyBoundError
    from foreword.errors import ScopeCycleError as ScopeCycleError
    from foreword.errors import ScopeError as ScopeError
    from foreword.errors import UnknownEntryError as UnknownEntryError
    from foreword.errors import UnknownToolOrderError as UnknownToolOrderError
    from foreword.errors import UnknownVariableError as UnknownVariableError
    from foreword.errors import UnreadableTextError as UnreadableTextError
    from foreword.errors import ValuelessVariableError as ValuelessVariableError
    from foreword.jsonvalue import JsonValue as JsonValue
    from foreword.jsonvalue import freeze as freeze
    from foreword.jsonvalue import thaw as thaw
    from foreword.kernel.effects import Owner as Owner
    from foreword.kernel.effects import Registration as Registration
    from foreword.kernel.scope import GLOBAL as GLOBAL
    from foreword.kernel.scope import ParentBinding as ParentBinding
    from foreword.kernel.scope import ScopeKey as ScopeKey
    from foreword.kernel.scope import bind_parent as bind_parent
    from foreword.kernel.source import Source as Source
    from foreword.prompt.assembly import AssembledContext as AssembledContext
    from foreword.prompt.assembly import AssembledSection as AssembledSection
    from foreword.prompt.assembly import ExtraKey as ExtraKey
    from foreword.prompt.assembly import PromptAssembly as PromptAssembly
    from foreword.prompt.config import PromptLimits as PromptLimits
    from foreword.prompt.config import SystemPromptConfig as SystemPromptConfig
    from foreword.prompt.context import AssembleContext as AssembleContext
    from foreword.prompt.context import CancelToken as CancelToken
    from foreword.prompt.context import ContextKey as ContextKey
    from foreword.prompt.context import ModelRef as ModelRef
    from foreword.prompt.contributions import DOMAIN_ORDER as DOMAIN_ORDER
    from foreword.prompt.contributions import IDENTITY_ORDER as IDENTITY_ORDER
    from foreword.prompt.contributions import PERSONA_ORDER as PERSONA_ORDER
    from foreword.prompt.contributions import PERSONA_SECTION as PERSONA_SECTION
    from foreword.prompt.contributions import TOOL_GUIDANCE_ORDER as TOOL_GUIDANCE_ORDER
    from foreword.prompt.contributions import TOOL_ORDER_REST as TOOL_ORDER_REST
    from foreword.prompt.contributions import Placeholder as Placeholder
    from foreword.prompt.contributions import ToolProviderResult as ToolProviderResult
    from foreword.prompt.contributions import ToolSchema as ToolSchema
    from foreword.prompt.origin import Origin as Origin
    from foreword.prompt.render import join_context_sections as join_context_sections
    from foreword.prompt.render import render_context_sections as render_context_sections
    from foreword.prompt.render import render_context_snapshot as render_context_snapshot
    from foreword.prompt.render import render_prompt as render_prompt
    from foreword.prompt.rendering import Rendering as Rendering
    from foreword.prompt.rendering import render as render
    from foreword.prompt.spans import Span as Span
    from foreword.prompt.spans import Spans as Spans
    from foreword.prompt.system_prompt import SystemPrompt as SystemPrompt
    from foreword.prompt.trace import Absence as Absence
    from foreword.prompt.trace import StageTrace as StageTrace
    from foreword.prompt.trace import Trace as Trace
    from foreword.prompt.trace import TraceEvent as TraceEvent

__all__ = [
    "DOMAIN_ORDER",
    "GLOBAL",
    "IDENTITY_ORDER",
    "PERSONA_ORDER",
    "PERSONA_SECTION",
    "TOOL_GUIDANCE_ORDER",
    "TOOL_ORDER_REST",
    "Absence",
    "AssembleContext",
    "AssembledContext",
    "AssembledSection",
    "AssemblyCancelledError",
    "AssemblyError",
    "CancelToken",
    "ConfigFault",
    "ContextKey",
    "DuplicateEntryError",
    "EmptyNameError",
    "EmptyProtectionError",
    "EntryRef",
    "ExtraKey",
    "ForewordError",
    "InactiveContextError",
    "InvalidConfigError",
    "InvalidOptionError",
    "InvalidToolSchemaError",
    "InvalidVariableNameError",
    "JsonValue",
    "ListenerError",
    "LoneSurrogateError",
    "MalformedReferenceError",
    "MissingContextValueError",
    "ModelRef",
    "MultipleCompleteSectionsError",
    "NonFiniteOrderError",
    "NotAStringError",
    "NotJsonError",
    "Origin",
    "Owner",
    "ParentBinding",
    "Placeholder",
    "PromptAssembly",
    "PromptLimits",
    "PromptTooLargeError",
    "ProtectedSectionShadowError",
    "ProtectionConflictError",
    "ProviderFailedError",
    "ProviderFailure",
    "ProviderTimeoutError",
    "Registration",
    "RegistrationError",
    "RenderError",
    "Rendering",
    "ReservedToolNameError",
    "RunningLoopError",
    "ScopeAlreadyBoundError",
    "ScopeCycleError",
    "ScopeError",
    "ScopeKey",
    "Source",
    "Span",
    "Spans",
    "StageTrace",
    "SystemPrompt",
    "SystemPromptConfig",
    "ToolProviderResult",
    "ToolSchema",
    "Trace",
    "TraceEvent",
    "UnknownEntryError",
    "UnknownToolOrderError",
    "UnknownVariableError",
    "UnreadableTextError",
    "ValuelessVariableError",
    "bind_parent",
    "freeze",
    "join_context_sections",
    "render",
    "render_context_sections",
    "render_context_snapshot",
    "render_prompt",
    "thaw",
]

_HOMES = {
    "foreword.errors": (
        "AssemblyCancelledError",
        "AssemblyError",
        "ConfigFault",
        "DuplicateEntryError",
        "EmptyNameError",
        "EmptyProtectionError",
        "EntryRef",
        "ForewordError",
        "InactiveContextError",
        "InvalidConfigError",
        "InvalidOptionError",
        "InvalidToolSchemaError",
        "InvalidVariableNameError",
        "ListenerError",
        "LoneSurrogateError",
        "MalformedReferenceError",
        "MissingContextValueError",
        "MultipleCompleteSectionsError",
        "NonFiniteOrderError",
        "NotAStringError",
        "NotJsonError",
        "PromptTooLargeError",
        "ProtectedSectionShadowError",
        "ProtectionConflictError",
        "ProviderFailedError",
        "ProviderFailure",
        "ProviderTimeoutError",
        "RegistrationError",
        "RenderError",
        "ReservedToolNameError",
        "RunningLoopError",
        "ScopeAlreadyBoundError",
        "ScopeCycleError",
        "ScopeError",
        "UnknownEntryError",
        "UnknownToolOrderError",
        "UnknownVariableError",
        "UnreadableTextError",
        "ValuelessVariableError",
    ),
    "foreword.jsonvalue": ("JsonValue", "freeze", "thaw"),
    "foreword.kernel.effects": ("Owner", "Registration"),
    "foreword.kernel.scope": ("GLOBAL", "ParentBinding", "ScopeKey", "bind_parent"),
    "foreword.prompt.assembly": ("AssembledContext", "AssembledSection", "ExtraKey", "PromptAssembly"),
    "foreword.prompt.config": ("PromptLimits", "SystemPromptConfig"),
    "foreword.prompt.context": ("AssembleContext", "CancelToken", "ContextKey", "ModelRef"),
    "foreword.prompt.contributions": (
        "DOMAIN_ORDER",
        "IDENTITY_ORDER",
        "PERSONA_ORDER",
        "PERSONA_SECTION",
        "TOOL_GUIDANCE_ORDER",
        "TOOL_ORDER_REST",
        "Placeholder",
        "ToolProviderResult",
        "ToolSchema",
    ),
    "foreword.kernel.source": ("Source",),
    "foreword.prompt.origin": ("Origin",),
    "foreword.prompt.render": (
        "join_context_sections",
        "render_context_sections",
        "render_context_snapshot",
        "render_prompt",
    ),
    "foreword.prompt.rendering": ("Rendering", "render"),
    "foreword.prompt.spans": ("Span", "Spans"),
    "foreword.prompt.system_prompt": ("SystemPrompt",),
    "foreword.prompt.trace": ("Absence", "StageTrace", "Trace", "TraceEvent"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
