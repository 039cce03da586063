"""What a step registers, through the view of the place it happens in."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from foreword import AssembleContext, ContextKey, PromptAssembly, SystemPrompt, ToolProviderResult, ToolSchema
from foreword.testing.conformance.listening import CallNext, action
from foreword.testing.conformance.scenario import Fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from foreword.testing.conformance.crashes import Crashes

__all__ = ["REGISTERS", "WHO", "Registration"]

WHO = ContextKey("who", str)
"""The value of the assembly context that a step's ``who`` sets and the provider ``who`` reads."""


class Registration(Protocol):
    """What a step registered."""

    def close(self) -> object:
        """Undo it."""
        ...


_Provider: TypeAlias = "Callable[..., Any]"  # asked with the context or without, and null may be what it answers


def _text(fields: Fields, name: str, crashes: Crashes) -> str | _Provider:
    """Read a text or value: a string, null (a provider without an answer), or a provider of the runner's."""
    value = fields.values.get(name)
    if value is None:
        return lambda: None
    return value if isinstance(value, str) else _provider(Fields(value, f"{fields.where}, {name}"), crashes)


def _provider(fields: Fields, crashes: Crashes) -> _Provider:
    kind, prefix = fields.text("provider"), fields.text_or_none("prefix") or ""
    if kind == "count":
        calls = count(1)
        return lambda: f"{prefix}{next(calls)}"
    if kind == "who":
        return _who(prefix, crashes)
    raise fields.fault("provider", '"count" or "who"')


def _who(prefix: str, crashes: Crashes) -> Callable[[AssembleContext], str]:
    def who(context: AssembleContext) -> str:
        with crashes.noted():
            return f"{prefix}{context.get(WHO, 'nobody')}"

    return who


def _section(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    text = _text(step, "text", crashes)
    return prompt.section(step.text("name"), text, order=step.order(), complete=step.flag("complete"))


def _context(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    return prompt.context(step.text("name"), _text(step, "text", crashes), order=step.order())


def _variable(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    value = None if step.values.get("value") is None else _text(step, "value", crashes)
    return prompt.variable(step.text("name"), value)


def _tools(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    """Register a provider, never a static list: its schemas are judged at the assembly."""
    known = step.names("known_names")
    read = [
        (tool.text("name"), tool.text("description"), tool.mapping("parameters")) for tool in step.objects("schemas")
    ]

    def provider() -> ToolProviderResult:
        return ToolProviderResult(schemas=[ToolSchema(*tool) for tool in read], known_names=known)

    return prompt.tools(provider)


def _protect(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    return prompt.protect(sections=step.names("sections") or [], tools=step.names("tools") or [])


def _suppress(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    return prompt.suppress_runtime_context()


def _listen(prompt: SystemPrompt, step: Fields, crashes: Crashes) -> Registration:
    acts = [action(fields, crashes) for fields in step.objects("actions")]

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        for act in acts:
            assembly = await act(assembly, call_next)
        return assembly

    return prompt.on_assemble(listener, prepend=step.flag("prepend"))


REGISTERS: dict[str, Callable[[SystemPrompt, Fields, Crashes], Registration]] = {
    "section": _section,
    "context": _context,
    "variable": _variable,
    "tools": _tools,
    "protect": _protect,
    "suppress_context": _suppress,
    "listener": _listen,
}
"""By the kind of the step."""
