"""Strategies that several laws share."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from foreword import ToolSchema

VARIABLE_NAMES = ("a", "b", "ab", "b_1")

# Pieces that meet at random make every near miss of a reference there is.
PIECES = (
    "{", "}", "{{", "}}", "{{{", "}}}", "{{{{", "}}}}", "{{a}}", "{{b}}", "{{ab}}", "{{b_1}}", "{{zz}}", "{{none}}",
    "{{{{a}}}}", "{{{{ab}}}}", "a", "b", "ab", "b_1", "zz", "A", "1", "_", " ", "\n", "\r", "é", "𝄞", "$", "%s", "{0}",
)  # fmt: skip
PEACEFUL = tuple(piece for piece in PIECES if not {"{", "}"} & set(piece))
FITTING = (*PEACEFUL, "{{a}}", "{{b}}", "{{ab}}", "{{b_1}}", "{{{{a}}}}", "{{{{b_1}}}}", "{ ", "} ")

SURROGATES = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF, categories=["Cs"])
CHARACTERS = st.characters(codec="utf-8")
ANY_CHARACTER = st.one_of(st.characters(), SURROGATES, st.sampled_from("{}{}ab_ \n\0\x1b\u2028"))


def joined(pieces: tuple[str, ...], max_size: int = 12) -> st.SearchStrategy[str]:
    """Texts made of pieces."""
    return st.lists(st.sampled_from(pieces), max_size=max_size).map("".join)


template_texts = st.one_of(joined(PIECES), joined(FITTING), st.text("{}ab1_ \né𝄞", max_size=20))
"""Texts rich in braces; some are faulty."""

fitting_texts = joined(FITTING)
"""Texts without a fault, as long as `VARIABLE_NAMES` have values."""

texts = st.one_of(template_texts, st.text(ANY_CHARACTER, max_size=12))
"""Any text at all, lone surrogates and control characters included."""

values = st.one_of(st.text(CHARACTERS, max_size=6), joined(PIECES, 4))
"""What a variable can hold, much of it looking like a template."""

names = st.one_of(st.sampled_from(("a", "b", "x:y", "ä", "Z")), st.text(ANY_CHARACTER, min_size=1, max_size=6))
"""Names of sections, contexts, owners and scopes."""


class _Number(IntEnum):
    ONE = 1


class _Word(StrEnum):
    HALF = "half"


class _Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not what it holds"


numbers = st.one_of(st.integers(), st.floats(), st.sampled_from((10**400, -(10**400), -0.0, True, False, _Number.ONE)))

anything: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    numbers,
    texts,
    st.binary(max_size=4),
    st.sampled_from((_Word.HALF, _Text("held"), object(), int, len, print, dict, ..., 1j)),
    st.lists(st.one_of(st.none(), texts, numbers), max_size=3),
    st.tuples(st.one_of(texts, numbers)),
    st.dictionaries(st.one_of(texts, numbers), texts, max_size=2),
    st.sets(texts, max_size=3),
    st.builds(lambda parts: Path(*parts), st.lists(st.text(ANY_CHARACTER, max_size=4), max_size=2)),
)
"""Whatever a caller may hand over by mistake."""

json_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: str(number) != "-0.0"),
    st.text(CHARACTERS, max_size=5),
)
json_values: st.SearchStrategy[Any] = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=4), inner, max_size=3),
    max_leaves=8,
)
"""All that JSON is here."""

json_objects = st.dictionaries(st.text(CHARACTERS, max_size=4), json_values, max_size=3)


def tool_schemas(names: st.SearchStrategy[str]) -> st.SearchStrategy[ToolSchema]:
    """Tools that bear one of these names."""
    return st.builds(ToolSchema, names, st.text(CHARACTERS, max_size=5), json_objects)
