"""Foreword assembles the system prompt of LLM agents: contributed by many, owned to the last character.

    from foreword import SystemPrompt

The names below are all that is public here. Each is loaded when it is first used, so importing the package costs next
to nothing and brings in no event loop, no framework and no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.agent.agent import Agent as Agent
    from foreword.agent.context import assemble_context_for as assemble_context_for
    from foreword.agent.creation import create_agent as create_agent
    from foreword.agent.events import AGENT_ERROR as AGENT_ERROR
    from foreword.agent.events import AGENT_PRE_STEP as AGENT_PRE_STEP
    from foreword.agent.events import AGENT_REQUEST as AGENT_REQUEST
    from foreword.agent.events import AGENT_REQUEST_ERROR as AGENT_REQUEST_ERROR
    from foreword.agent.events import AGENT_TURN_STOPPING as AGENT_TURN_STOPPING
    from foreword.agent.events import AttemptFailed as AttemptFailed
    from foreword.agent.events import Enter as Enter
    from foreword.agent.events import PreStep as PreStep
    from foreword.agent.events import Reject as Reject
    from foreword.agent.events import RequestProposed as RequestProposed
    from foreword.agent.events import Retry as Retry
    from foreword.agent.events import TurnFailed as TurnFailed
    from foreword.agent.events import TurnStopping as TurnStopping
    from foreword.agent.model_selection import ModelSelection as ModelSelection
    from foreword.agent.model_selection import install_model_selection as install_model_selection
    from foreword.agent.models.adapter import ModelAdapter as ModelAdapter
    from foreword.agent.models.registry import ModelAdapters as ModelAdapters
    from foreword.agent.retry import RetryPolicy as RetryPolicy
    from foreword.agent.stream import RetryScheduled as RetryScheduled
    from foreword.agent.stream import StepFinished as StepFinished
    from foreword.agent.stream import StepStarted as StepStarted
    from foreword.agent.stream import TextDelta as TextDelta
    from foreword.agent.stream import ToolCallFinished as ToolCallFinished
    from foreword.agent.stream import ToolCallStarted as ToolCallStarted
    from foreword.agent.stream import TurnFinished as TurnFinished
    from foreword.agent.turn import Turn as Turn
    from foreword.compose.loading import App as App
    from foreword.compose.loading import open_deployment as open_deployment
    from foreword.errors import AgentBusyError as AgentBusyError
    from foreword.errors import AgentError as AgentError
    from foreword.errors import ApiKeyError as ApiKeyError
    from foreword.errors import AssemblyCancelledError as AssemblyCancelledError
    from foreword.errors import AssemblyError as AssemblyError
    from foreword.errors import ConfigFault as ConfigFault
    from foreword.errors import DeploymentError as DeploymentError
    from foreword.errors import DuplicateAdapterError as DuplicateAdapterError
    from foreword.errors import DuplicateEntryError as DuplicateEntryError
    from foreword.errors import DuplicateServiceError as DuplicateServiceError
    from foreword.errors import EmptyNameError as EmptyNameError
    from foreword.errors import EmptyProtectionError as EmptyProtectionError
    from foreword.errors import EntryRef as EntryRef
    from foreword.errors import EventModeError as EventModeError
    from foreword.errors import Fault as Fault
    from foreword.errors import ForewordError as ForewordError
    from foreword.errors import ForgedSnapshotError as ForgedSnapshotError
    from foreword.errors import InactiveContextError as InactiveContextError
    from foreword.errors import InvalidConfigError as InvalidConfigError
    from foreword.errors import InvalidMaskError as InvalidMaskError
    from foreword.errors import InvalidModelError as InvalidModelError
    from foreword.errors import InvalidModelSettingError as InvalidModelSettingError
    from foreword.errors import InvalidOptionError as InvalidOptionError
    from foreword.errors import InvalidPluginConfigError as InvalidPluginConfigError
    from foreword.errors import InvalidPluginError as InvalidPluginError
    from foreword.errors import InvalidSectionFilesError as InvalidSectionFilesError
    from foreword.errors import InvalidToolNameError as InvalidToolNameError
    from foreword.errors import InvalidToolSchemaError as InvalidToolSchemaError
    from foreword.errors import InvalidVariableNameError as InvalidVariableNameError
    from foreword.errors import KernelOwnsError as KernelOwnsError
    from foreword.errors import ListenerError as ListenerError
    from foreword.errors import LoneSurrogateError as LoneSurrogateError
    from foreword.errors import MalformedReferenceError as MalformedReferenceError
    from foreword.errors import MisplacedInstructionsError as MisplacedInstructionsError
    from foreword.errors import MissingContextValueError as MissingContextValueError
    from foreword.errors import MissingExtraError as MissingExtraError
    from foreword.errors import MissingServiceError as MissingServiceError
    from foreword.errors import ModelError as ModelError
    from foreword.errors import ModelFailedError as ModelFailedError
    from foreword.errors import MultipleCompleteSectionsError as MultipleCompleteSectionsError
    from foreword.errors import NoModelError as NoModelError
    from foreword.errors import NonFiniteOrderError as NonFiniteOrderError
    from foreword.errors import NotAStringError as NotAStringError
    from foreword.errors import NotJsonError as NotJsonError
    from foreword.errors import PluginDeadlockError as PluginDeadlockError
    from foreword.errors import PluginError as PluginError
    from foreword.errors import PluginFailedError as PluginFailedError
    from foreword.errors import PluginTimeoutError as PluginTimeoutError
    from foreword.errors import PromptTooLargeError as PromptTooLargeError
    from foreword.errors import ProtectedOverrideError as ProtectedOverrideError
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
    from foreword.errors import ScriptEndedError as ScriptEndedError
    from foreword.errors import SessionInUseError as SessionInUseError
    from foreword.errors import StepLimitError as StepLimitError
    from foreword.errors import ThreadsExhaustedError as ThreadsExhaustedError
    from foreword.errors import ToolNameCollisionError as ToolNameCollisionError
    from foreword.errors import TrustStoreError as TrustStoreError
    from foreword.errors import UnknownEntryError as UnknownEntryError
    from foreword.errors import UnknownProviderError as UnknownProviderError
    from foreword.errors import UnknownToolError as UnknownToolError
    from foreword.errors import UnknownToolOrderError as UnknownToolOrderError
    from foreword.errors import UnknownVariableError as UnknownVariableError
    from foreword.errors import UnreadableTextError as UnreadableTextError
    from foreword.errors import UnresolvedAnnotationError as UnresolvedAnnotationError
    from foreword.errors import UntrustedFileError as UntrustedFileError
    from foreword.errors import ValuelessVariableError as ValuelessVariableError
    from foreword.errors import WrongAnswerError as WrongAnswerError
    from foreword.errors import WrongThreadError as WrongThreadError
    from foreword.errors import YamlError as YamlError
    from foreword.jsonvalue import JsonValue as JsonValue
    from foreword.jsonvalue import freeze as freeze
    from foreword.jsonvalue import thaw as thaw
    from foreword.kernel.context import Context as Context
    from foreword.kernel.effects import Owner as Owner
    from foreword.kernel.effects import Registration as Registration
    from foreword.kernel.events import Event as Event
    from foreword.kernel.events import Mode as Mode
    from foreword.kernel.plugins import plugin as plugin
    from foreword.kernel.scope import GLOBAL as GLOBAL
    from foreword.kernel.scope import ParentBinding as ParentBinding
    from foreword.kernel.scope import ScopeKey as ScopeKey
    from foreword.kernel.scope import bind_parent as bind_parent
    from foreword.kernel.services import Service as Service
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
    from foreword.prompt.events import SYSTEM_PROMPT_ASSEMBLE as SYSTEM_PROMPT_ASSEMBLE
    from foreword.prompt.events import SYSTEM_PROMPT_CHANGE as SYSTEM_PROMPT_CHANGE
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
    from foreword.session.events import MessageSource as MessageSource
    from foreword.session.events import UserSaid as UserSaid
    from foreword.session.log import open_log as open_log
    from foreword.tools.context import ToolContext as ToolContext
    from foreword.tools.definition import ToolDefinition as ToolDefinition
    from foreword.tools.masks import ToolMask as ToolMask
    from foreword.tools.registry import ToolRegistry as ToolRegistry
    from foreword.tools.result import ToolResult as ToolResult
    from foreword.wire.messages import AssistantMessage as AssistantMessage
    from foreword.wire.messages import ToolCall as ToolCall
    from foreword.wire.messages import ToolMessage as ToolMessage
    from foreword.wire.messages import UserMessage as UserMessage
    from foreword.wire.request import ModelConfig as ModelConfig
    from foreword.wire.request import ModelRequest as ModelRequest

__all__ = [
    "AGENT_ERROR",
    "AGENT_PRE_STEP",
    "AGENT_REQUEST",
    "AGENT_REQUEST_ERROR",
    "AGENT_TURN_STOPPING",
    "DOMAIN_ORDER",
    "GLOBAL",
    "IDENTITY_ORDER",
    "PERSONA_ORDER",
    "PERSONA_SECTION",
    "SYSTEM_PROMPT_ASSEMBLE",
    "SYSTEM_PROMPT_CHANGE",
    "TOOL_GUIDANCE_ORDER",
    "TOOL_ORDER_REST",
    "Absence",
    "Agent",
    "AgentBusyError",
    "AgentError",
    "ApiKeyError",
    "App",
    "AssembleContext",
    "AssembledContext",
    "AssembledSection",
    "AssemblyCancelledError",
    "AssemblyError",
    "AssistantMessage",
    "AttemptFailed",
    "CancelToken",
    "ConfigFault",
    "Context",
    "ContextKey",
    "DeploymentError",
    "DuplicateAdapterError",
    "DuplicateEntryError",
    "DuplicateServiceError",
    "EmptyNameError",
    "EmptyProtectionError",
    "Enter",
    "EntryRef",
    "Event",
    "EventModeError",
    "ExtraKey",
    "Fault",
    "ForewordError",
    "ForgedSnapshotError",
    "InactiveContextError",
    "InvalidConfigError",
    "InvalidMaskError",
    "InvalidModelError",
    "InvalidModelSettingError",
    "InvalidOptionError",
    "InvalidPluginConfigError",
    "InvalidPluginError",
    "InvalidSectionFilesError",
    "InvalidToolNameError",
    "InvalidToolSchemaError",
    "InvalidVariableNameError",
    "JsonValue",
    "KernelOwnsError",
    "ListenerError",
    "LoneSurrogateError",
    "MalformedReferenceError",
    "MessageSource",
    "MisplacedInstructionsError",
    "MissingContextValueError",
    "MissingExtraError",
    "MissingServiceError",
    "Mode",
    "ModelAdapter",
    "ModelAdapters",
    "ModelConfig",
    "ModelError",
    "ModelFailedError",
    "ModelRef",
    "ModelRequest",
    "ModelSelection",
    "MultipleCompleteSectionsError",
    "NoModelError",
    "NonFiniteOrderError",
    "NotAStringError",
    "NotJsonError",
    "Origin",
    "Owner",
    "ParentBinding",
    "Placeholder",
    "PluginDeadlockError",
    "PluginError",
    "PluginFailedError",
    "PluginTimeoutError",
    "PreStep",
    "PromptAssembly",
    "PromptLimits",
    "PromptTooLargeError",
    "ProtectedOverrideError",
    "ProtectedSectionShadowError",
    "ProtectionConflictError",
    "ProviderFailedError",
    "ProviderFailure",
    "ProviderTimeoutError",
    "Registration",
    "RegistrationError",
    "Reject",
    "RenderError",
    "Rendering",
    "RequestProposed",
    "ReservedToolNameError",
    "Retry",
    "RetryPolicy",
    "RetryScheduled",
    "RunningLoopError",
    "ScopeAlreadyBoundError",
    "ScopeCycleError",
    "ScopeError",
    "ScopeKey",
    "ScriptEndedError",
    "Service",
    "SessionInUseError",
    "Source",
    "Span",
    "Spans",
    "StageTrace",
    "StepFinished",
    "StepLimitError",
    "StepStarted",
    "SystemPrompt",
    "SystemPromptConfig",
    "TextDelta",
    "ThreadsExhaustedError",
    "ToolCall",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolContext",
    "ToolDefinition",
    "ToolMask",
    "ToolMessage",
    "ToolNameCollisionError",
    "ToolProviderResult",
    "ToolRegistry",
    "ToolResult",
    "ToolSchema",
    "Trace",
    "TraceEvent",
    "TrustStoreError",
    "Turn",
    "TurnFailed",
    "TurnFinished",
    "TurnStopping",
    "UnknownEntryError",
    "UnknownProviderError",
    "UnknownToolError",
    "UnknownToolOrderError",
    "UnknownVariableError",
    "UnreadableTextError",
    "UnresolvedAnnotationError",
    "UntrustedFileError",
    "UserMessage",
    "UserSaid",
    "ValuelessVariableError",
    "WrongAnswerError",
    "WrongThreadError",
    "YamlError",
    "assemble_context_for",
    "bind_parent",
    "create_agent",
    "freeze",
    "install_model_selection",
    "join_context_sections",
    "open_deployment",
    "open_log",
    "plugin",
    "render",
    "render_context_sections",
    "render_context_snapshot",
    "render_prompt",
    "thaw",
]

_HOMES = {
    "foreword.agent.agent": ("Agent",),
    "foreword.agent.context": ("assemble_context_for",),
    "foreword.agent.creation": ("create_agent",),
    "foreword.agent.events": (
        "AGENT_ERROR",
        "AGENT_PRE_STEP",
        "AGENT_REQUEST",
        "AGENT_REQUEST_ERROR",
        "AGENT_TURN_STOPPING",
        "AttemptFailed",
        "Enter",
        "PreStep",
        "Reject",
        "RequestProposed",
        "Retry",
        "TurnFailed",
        "TurnStopping",
    ),
    "foreword.agent.model_selection": (
        "ModelSelection",
        "install_model_selection",
    ),
    "foreword.agent.models.adapter": ("ModelAdapter",),
    "foreword.agent.models.registry": ("ModelAdapters",),
    "foreword.agent.retry": ("RetryPolicy",),
    "foreword.agent.stream": (
        "RetryScheduled",
        "StepFinished",
        "StepStarted",
        "TextDelta",
        "ToolCallFinished",
        "ToolCallStarted",
        "TurnFinished",
    ),
    "foreword.agent.turn": ("Turn",),
    "foreword.compose.loading": (
        "App",
        "open_deployment",
    ),
    "foreword.errors": (
        "AgentBusyError",
        "AgentError",
        "ApiKeyError",
        "AssemblyCancelledError",
        "AssemblyError",
        "ConfigFault",
        "DeploymentError",
        "DuplicateAdapterError",
        "DuplicateEntryError",
        "DuplicateServiceError",
        "EmptyNameError",
        "EmptyProtectionError",
        "EntryRef",
        "EventModeError",
        "Fault",
        "ForewordError",
        "ForgedSnapshotError",
        "InactiveContextError",
        "InvalidConfigError",
        "InvalidMaskError",
        "InvalidModelError",
        "InvalidModelSettingError",
        "InvalidOptionError",
        "InvalidPluginConfigError",
        "InvalidPluginError",
        "InvalidSectionFilesError",
        "InvalidToolNameError",
        "InvalidToolSchemaError",
        "InvalidVariableNameError",
        "KernelOwnsError",
        "ListenerError",
        "LoneSurrogateError",
        "MalformedReferenceError",
        "MisplacedInstructionsError",
        "MissingContextValueError",
        "MissingExtraError",
        "MissingServiceError",
        "ModelError",
        "ModelFailedError",
        "MultipleCompleteSectionsError",
        "NoModelError",
        "NonFiniteOrderError",
        "NotAStringError",
        "NotJsonError",
        "PluginDeadlockError",
        "PluginError",
        "PluginFailedError",
        "PluginTimeoutError",
        "PromptTooLargeError",
        "ProtectedOverrideError",
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
        "ScriptEndedError",
        "SessionInUseError",
        "StepLimitError",
        "ThreadsExhaustedError",
        "ToolNameCollisionError",
        "TrustStoreError",
        "UnknownEntryError",
        "UnknownProviderError",
        "UnknownToolError",
        "UnknownToolOrderError",
        "UnknownVariableError",
        "UnreadableTextError",
        "UnresolvedAnnotationError",
        "UntrustedFileError",
        "ValuelessVariableError",
        "WrongAnswerError",
        "WrongThreadError",
        "YamlError",
    ),
    "foreword.jsonvalue": (
        "JsonValue",
        "freeze",
        "thaw",
    ),
    "foreword.kernel.context": ("Context",),
    "foreword.kernel.effects": (
        "Owner",
        "Registration",
    ),
    "foreword.kernel.events": (
        "Event",
        "Mode",
    ),
    "foreword.kernel.plugins": ("plugin",),
    "foreword.kernel.scope": (
        "GLOBAL",
        "ParentBinding",
        "ScopeKey",
        "bind_parent",
    ),
    "foreword.kernel.services": ("Service",),
    "foreword.kernel.source": ("Source",),
    "foreword.prompt.assembly": (
        "AssembledContext",
        "AssembledSection",
        "ExtraKey",
        "PromptAssembly",
    ),
    "foreword.prompt.config": (
        "PromptLimits",
        "SystemPromptConfig",
    ),
    "foreword.prompt.context": (
        "AssembleContext",
        "CancelToken",
        "ContextKey",
        "ModelRef",
    ),
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
    "foreword.prompt.events": (
        "SYSTEM_PROMPT_ASSEMBLE",
        "SYSTEM_PROMPT_CHANGE",
    ),
    "foreword.prompt.origin": ("Origin",),
    "foreword.prompt.render": (
        "join_context_sections",
        "render_context_sections",
        "render_context_snapshot",
        "render_prompt",
    ),
    "foreword.prompt.rendering": (
        "Rendering",
        "render",
    ),
    "foreword.prompt.spans": (
        "Span",
        "Spans",
    ),
    "foreword.prompt.system_prompt": ("SystemPrompt",),
    "foreword.prompt.trace": (
        "Absence",
        "StageTrace",
        "Trace",
        "TraceEvent",
    ),
    "foreword.session.events": (
        "MessageSource",
        "UserSaid",
    ),
    "foreword.session.log": ("open_log",),
    "foreword.tools.context": ("ToolContext",),
    "foreword.tools.definition": ("ToolDefinition",),
    "foreword.tools.masks": ("ToolMask",),
    "foreword.tools.registry": ("ToolRegistry",),
    "foreword.tools.result": ("ToolResult",),
    "foreword.wire.messages": (
        "AssistantMessage",
        "ToolCall",
        "ToolMessage",
        "UserMessage",
    ),
    "foreword.wire.request": (
        "ModelConfig",
        "ModelRequest",
    ),
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
