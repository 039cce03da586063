"""Explain: what a prompt says and why, what changed, what it costs, what will go wrong. Read only.

    subject = subject_of(prompt.render_sync())              # or: await subject_at(log, "last@7")
    find_text(subject, "in two sentences")                  # who wrote that, and where
    why_missing(subject, "acme:rules")                      # why something is not there
    diff_of(subject, other)                                 # what differs, and whose it is
    tokens_of(subject).owners                               # what each owner costs
    compare(before, subject).broken_by                      # who broke the provider's cache

Each question is asked of a `Subject`, the same for a prompt just rendered and for one that was logged long ago.
The rules that look for what will go wrong are in `foreword.explain.lint`. Loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.explain.absence import Missing as Missing
    from foreword.explain.absence import why_missing as why_missing
    from foreword.explain.breaks import Break as Break
    from foreword.explain.cache import CacheStep as CacheStep
    from foreword.explain.cache import compare as compare
    from foreword.explain.cache_session import OwnerLoss as OwnerLoss
    from foreword.explain.cache_session import SessionCache as SessionCache
    from foreword.explain.cache_session import session_cache as session_cache
    from foreword.explain.diff import Change as Change
    from foreword.explain.diff import Content as Content
    from foreword.explain.diff import Diff as Diff
    from foreword.explain.diff import HistoryChange as HistoryChange
    from foreword.explain.diff import diff_of as diff_of
    from foreword.explain.finding import FirstSeen as FirstSeen
    from foreword.explain.finding import FoundStep as FoundStep
    from foreword.explain.finding import find_steps as find_steps
    from foreword.explain.finding import first_seen as first_seen
    from foreword.explain.layout import Layout as Layout
    from foreword.explain.masking import masked as masked
    from foreword.explain.measuring import Prefix as Prefix
    from foreword.explain.profiles import CacheProfile as CacheProfile
    from foreword.explain.profiles import profile_for as profile_for
    from foreword.explain.profiles import profile_named as profile_named
    from foreword.explain.provenance import Occurrence as Occurrence
    from foreword.explain.provenance import Stretch as Stretch
    from foreword.explain.provenance import explain_line as explain_line
    from foreword.explain.provenance import find_text as find_text
    from foreword.explain.steps import subject_at as subject_at
    from foreword.explain.steps import subject_before as subject_before
    from foreword.explain.steps import subjects as subjects
    from foreword.explain.subject import Part as Part
    from foreword.explain.subject import PartTool as PartTool
    from foreword.explain.subject import RequestMessage as RequestMessage
    from foreword.explain.subject import Subject as Subject
    from foreword.explain.subject import Variable as Variable
    from foreword.explain.subject import subject_of as subject_of
    from foreword.explain.tokenizers import Tokenizer as Tokenizer
    from foreword.explain.tokenizers import tokenizer_for as tokenizer_for
    from foreword.explain.tokenizers import tokenizer_named as tokenizer_named
    from foreword.explain.tokens import Cost as Cost
    from foreword.explain.tokens import OwnerCost as OwnerCost
    from foreword.explain.tokens import TokenReport as TokenReport
    from foreword.explain.tokens import tokens_of as tokens_of
    from foreword.explain.tool_keys import KeyChange as KeyChange
    from foreword.explain.words import Piece as Piece
    from foreword.explain.words import word_diff as word_diff

_HOMES = {
    "foreword.explain.absence": ("Missing", "why_missing"),
    "foreword.explain.breaks": ("Break",),
    "foreword.explain.cache": ("CacheStep", "compare"),
    "foreword.explain.cache_session": ("OwnerLoss", "SessionCache", "session_cache"),
    "foreword.explain.diff": ("Change", "Content", "Diff", "HistoryChange", "diff_of"),
    "foreword.explain.finding": ("FirstSeen", "FoundStep", "find_steps", "first_seen"),
    "foreword.explain.layout": ("Layout",),
    "foreword.explain.masking": ("masked",),
    "foreword.explain.measuring": ("Prefix",),
    "foreword.explain.profiles": ("CacheProfile", "profile_for", "profile_named"),
    "foreword.explain.provenance": ("Occurrence", "Stretch", "explain_line", "find_text"),
    "foreword.explain.steps": ("subject_at", "subject_before", "subjects"),
    "foreword.explain.subject": ("Part", "PartTool", "RequestMessage", "Subject", "Variable", "subject_of"),
    "foreword.explain.tokenizers": ("Tokenizer", "tokenizer_for", "tokenizer_named"),
    "foreword.explain.tokens": ("Cost", "OwnerCost", "TokenReport", "tokens_of"),
    "foreword.explain.tool_keys": ("KeyChange",),
    "foreword.explain.words": ("Piece", "word_diff"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Break",
    "CacheProfile",
    "CacheStep",
    "Change",
    "Content",
    "Cost",
    "Diff",
    "FirstSeen",
    "FoundStep",
    "HistoryChange",
    "KeyChange",
    "Layout",
    "Missing",
    "Occurrence",
    "OwnerCost",
    "OwnerLoss",
    "Part",
    "PartTool",
    "Piece",
    "Prefix",
    "RequestMessage",
    "SessionCache",
    "Stretch",
    "Subject",
    "TokenReport",
    "Tokenizer",
    "Variable",
    "compare",
    "diff_of",
    "explain_line",
    "find_steps",
    "find_text",
    "first_seen",
    "masked",
    "profile_for",
    "profile_named",
    "session_cache",
    "subject_at",
    "subject_before",
    "subject_of",
    "subjects",
    "tokenizer_for",
    "tokenizer_named",
    "tokens_of",
    "why_missing",
    "word_diff",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
