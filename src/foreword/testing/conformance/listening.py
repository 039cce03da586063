"""What a listener of a scenario does: its actions, one after the other, on the assembly that it is given."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from foreword import AssembledContext, AssembledSection, PromptAssembly, ToolSchema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from foreword.testing.conformance.crashes import Crashes
    from foreword.testing.conformance.scenario import Fields

__all__ = ["Act", "CallNext", "action"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)
CallNext: TypeAlias = "Callable[[], Awaitable[PromptAssembly]]"
Act: TypeAlias = "Callable[[PromptAssembly, CallNext], Awaitable[PromptAssembly]]"
_Edit: TypeAlias = "Callable[[PromptAssembly], None]"


async def _next(assembly: PromptAssembly, call_next: CallNext) -> PromptAssembly:
    return await call_next()


async def _throw(assembly: PromptAssembly, call_next: CallNext) -> PromptAssembly:
    raise RuntimeError("the scenario's listener raises")


async def _replace_all(assembly: PromptAssembly, call_next: CallNext) -> PromptAssembly:
    return PromptAssembly(sections=[], contexts=[], tools=[], variables={})


_ACTS: dict[str, Act] = {"next": _next, "throw": _throw, "replace_all": _replace_all}


def action(fields: Fields, crashes: Crashes) -> Act:
    """What a listener does for one action. It is read whole now: a fault later would pass for a recorded error."""
    kind = fields.text("do")
    if kind in _ACTS:
        return _ACTS[kind]
    if kind not in _EDITS:
        raise fields.fault("do", "a known action")
    edit = _EDITS[kind](fields)

    async def act(assembly: PromptAssembly, call_next: CallNext) -> PromptAssembly:
        with crashes.noted():
            edit(assembly)
        return assembly

    return act


def _change(entries: list[_N], name: str, changed: Callable[[_N], _N]) -> None:
    """Put a changed entry in the place of the first of that name, if there is one."""
    at = next((at for at, entry in enumerate(entries) if entry.name == name), None)
    if at is not None:
        entries[at] = changed(entries[at])


def _remove(entries: list[_N], name: str) -> None:
    entries[:] = [entry for entry in entries if entry.name != name]


def _add_section(action: Fields, *, first: bool) -> _Edit:
    name, text = action.text("name"), action.text("text")

    def edit(assembly: PromptAssembly) -> None:
        assembly.sections.insert(0 if first else len(assembly.sections), AssembledSection(name, text))

    return edit


def _edit_section(action: Fields) -> _Edit:
    name, text = action.text("name"), action.text("text")
    return lambda assembly: _change(assembly.sections, name, lambda section: replace(section, text=text))


def _replace_section(action: Fields) -> _Edit:
    name, text = action.text("name"), action.text("text")
    return lambda assembly: _change(assembly.sections, name, lambda section: AssembledSection(name, text))


def _remove_section(action: Fields) -> _Edit:
    name = action.text("name")
    return lambda assembly: _remove(assembly.sections, name)


def _reverse_sections(action: Fields) -> _Edit:
    return lambda assembly: assembly.sections.reverse()


def _append_context(action: Fields) -> _Edit:
    name, text = action.text("name"), action.text("text")
    return lambda assembly: assembly.contexts.append(AssembledContext(name, text))


def _remove_context(action: Fields) -> _Edit:
    name = action.text("name")
    return lambda assembly: _remove(assembly.contexts, name)


def _append_tool(action: Fields) -> _Edit:
    name, description = action.text("name"), action.text_or_none("description")
    told = name if description is None else description
    return lambda assembly: assembly.tools.append(ToolSchema(name, told, {}))


def _edit_tool(action: Fields) -> _Edit:
    name, description = action.text("name"), action.text("description")

    def changed(tool: ToolSchema) -> ToolSchema:
        return replace(tool, description=description, parameters={**tool.parameters, "leak": True})

    return lambda assembly: _change(assembly.tools, name, changed)


def _remove_tool(action: Fields) -> _Edit:
    name = action.text("name")
    return lambda assembly: _remove(assembly.tools, name)


def _reverse_tools(action: Fields) -> _Edit:
    return lambda assembly: assembly.tools.reverse()


def _set_variable(action: Fields) -> _Edit:
    name, value = action.text("name"), action.text_or_none("value")

    def edit(assembly: PromptAssembly) -> None:
        assembly.variables[name] = value

    return edit


def _delete_variable(action: Fields) -> _Edit:
    name = action.text("name")

    def edit(assembly: PromptAssembly) -> None:
        assembly.variables.pop(name, None)

    return edit


_EDITS: dict[str, Callable[[Fields], _Edit]] = {
    "append_section": partial(_add_section, first=False),
    "prepend_section": partial(_add_section, first=True),
    "edit_section": _edit_section,
    "replace_section": _replace_section,
    "remove_section": _remove_section,
    "reverse_sections": _reverse_sections,
    "append_context": _append_context,
    "remove_context": _remove_context,
    "append_tool": _append_tool,
    "edit_tool": _edit_tool,
    "remove_tool": _remove_tool,
    "reverse_tools": _reverse_tools,
    "set_variable": _set_variable,
    "delete_variable": _delete_variable,
}
