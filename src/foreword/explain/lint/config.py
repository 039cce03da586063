"""Which rules run, and what of their findings is known and meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from foreword.errors import ConfigFault, InvalidConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.explain.lint.finding import Finding
    from foreword.explain.lint.rule import Rule

__all__ = ["SECTION_TOKENS", "LintConfig"]

SECTION_TOKENS: Final = 4000
"""The budget of a section, in estimated tokens, unless somebody sets another."""


@dataclass(frozen=True, slots=True)
class LintConfig:
    """Which rules run, and which findings are known.

    Attributes:
        select: codes, or beginnings of codes (``FW3``), of the rules that run; empty for all.
        ignore: what not to tell, and why: a code, the beginning of one, or ``CODE:NAME`` for one entry alone.
        section_tokens: the budget of one section, in estimated tokens.
    """

    select: tuple[str, ...] = ()
    ignore: Mapping[str, str] = field(default_factory=dict[str, str])
    section_tokens: int = SECTION_TOKENS

    def check(self, rules: Iterable[Rule]) -> None:
        """See that every code in it is one: a misspelt one would do nothing, and nobody would notice.

        Raises:
            InvalidConfigError: with all that are none.
        """
        codes = [rule.code for rule in rules]
        faults = [
            ConfigFault("invalid_config", where, f'there is no rule "{given}"; {did_you_mean(given, codes, "rules")}')
            for where, named in (("select", self.select), ("ignore", self.ignore))
            for given in named
            if not _covers_one(given if where == "select" else _code_of(given), codes)
        ]
        if self.section_tokens < 1:
            faults.append(ConfigFault("invalid_config", "section_tokens", "must be a positive number of tokens"))
        if faults:
            raise InvalidConfigError(faults)

    def selects(self, code: str) -> bool:
        """Whether a rule runs. One that is ignored runs all the same, to tell an ignore that is no longer needed."""
        return not self.select or any(code.startswith(each) for each in self.select)

    def ignored_by(self, finding: Finding) -> str | None:
        """The key of `ignore` that covers a finding; None if it is to be told."""
        for key in self.ignore:
            code, _, name = key.partition(":")
            if finding.code.startswith(code) and (not name or name == finding.name):
                return key
        return None


def _code_of(key: str) -> str:
    return key.partition(":")[0]


def _covers_one(given: str, codes: Iterable[str]) -> bool:
    return bool(given) and any(code.startswith(given) for code in codes)
