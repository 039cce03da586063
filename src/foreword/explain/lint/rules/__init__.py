"""The rules, one a file, in the order of their codes.

The first digit is the group: 1 what breaks a cached prefix, 2 references and structure, 3 tools, 4 characters and
secrets, 5 what is paid for twice. A code is never given to another rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.explain.lint.rules import (
    bidirectional_override,
    cannot_assemble,
    control_characters,
    differs_between_processes,
    duplicate_tool,
    dynamic_before_fixed,
    empty_prompt,
    empty_section,
    foreign_braces,
    guidance_without_tool,
    invisible_characters,
    lone_surrogate,
    made_at_start,
    malformed_reference,
    near_identical_sections,
    open_identity,
    override_without_target,
    oversize_section,
    protected_displaced,
    required_tool_unknown,
    secret,
    shadow_never_wins,
    tie_between_plugins,
    tool_name_refused,
    tool_names_collide,
    unknown_tool_order,
    unknown_variable,
    unused_variable,
    valueless_variable,
    volatile_text,
)

if TYPE_CHECKING:
    from foreword.explain.lint.rule import Rule

__all__ = ["RULES"]

_MODULES = (
    bidirectional_override,
    cannot_assemble,
    control_characters,
    differs_between_processes,
    duplicate_tool,
    dynamic_before_fixed,
    empty_prompt,
    empty_section,
    foreign_braces,
    guidance_without_tool,
    invisible_characters,
    lone_surrogate,
    made_at_start,
    malformed_reference,
    near_identical_sections,
    open_identity,
    override_without_target,
    oversize_section,
    protected_displaced,
    required_tool_unknown,
    secret,
    shadow_never_wins,
    tie_between_plugins,
    tool_name_refused,
    tool_names_collide,
    unknown_tool_order,
    unknown_variable,
    unused_variable,
    valueless_variable,
    volatile_text,
)

RULES: Final[tuple[Rule, ...]] = tuple(sorted((module.RULE for module in _MODULES), key=lambda rule: rule.code))
"""Every rule that ships."""
