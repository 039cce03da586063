"""Masks as values: which names they admit, and what they cannot be."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import InvalidMaskError, NotAStringError, ToolMask


@pytest.mark.parametrize(
    ("lists", "admitted"),
    [
        ({"allow": ["bash"]}, ["bash"]),
        ({"deny": ["bash"]}, ["BASH", "mcp__git__log", "mcp__orders__get", "mcp__orders__list", "odd[1]"]),
        ({"allow": []}, []),
        ({"allow": ["mcp__orders__*"]}, ["mcp__orders__get", "mcp__orders__list"]),
        ({"allow": ["mcp__*"], "deny": ["mcp__git__*"]}, ["mcp__orders__get", "mcp__orders__list"]),
        ({"allow": ["*"], "deny": ["mcp__*"]}, ["BASH", "bash", "odd[1]"]),
        ({"allow": ["?ash"]}, ["bash"]),
        ({"allow": ["[bB]*"]}, ["BASH", "bash"]),
        ({"allow": ["odd[1]"]}, ["odd[1]"]),
        ({"allow": ["bash"], "deny": ["bash"]}, []),
        ({"allow": ["bash"], "deny": []}, ["bash"]),
    ],
)
def test_what_a_mask_admits(lists: dict[str, Any], admitted: list[str]) -> None:
    """What `allow` means, without what `deny` means; names to the letter, patterns with case."""
    tools = ["BASH", "bash", "mcp__git__log", "mcp__orders__get", "mcp__orders__list", "odd[1]"]
    mask = ToolMask(**lists)
    assert [tool for tool in tools if mask.admits(tool)] == admitted


def test_a_mask_is_a_value() -> None:
    """Its lists are copied; equal masks are equal, can be hashed, and survive pickling."""
    lists = ["a", "b"]
    mask = ToolMask(allow=lists)
    lists.append("c")
    assert mask == ToolMask(allow=("a", "b"))
    assert hash(mask) == hash(ToolMask(allow=iter(["a", "b"])))  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(mask)) == mask
    assert not mask.admits("c")


def test_what_in_a_mask_means_nothing() -> None:
    """Names that nobody bears are told apart from patterns that mean nobody."""
    mask = ToolMask(allow=["bash", "bsh", "mcp__*"], deny=["x*", "bsh"])
    assert mask.names == ("bash", "bsh", "mcp__*", "x*")
    assert mask.unknown(["bash", "mcp__a"]) == ("bsh",)
    assert mask.unmatched(["bash", "mcp__a"]) == ("x*",)


@pytest.mark.parametrize("lists", [{}, {"deny": []}, {"allow": None, "deny": None}])
def test_a_mask_that_masks_nothing(lists: dict[str, Any]) -> None:
    """A mask without effect is a mistake, and told as one."""
    with pytest.raises(InvalidMaskError, match="masks nothing") as caught:
        ToolMask(**lists)
    assert caught.value.kind == "empty_mask"


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({"allow": "bash"}, "allow=['bash']"),
        ({"deny": 5}, "not a list but an int"),
        ({"allow": [5]}, "not a string but an int"),
        ({"deny": [""]}, "an empty string"),
        ({"deny": [None]}, "None"),
    ],
)
def test_lists_that_are_none(lists: dict[str, Any], told: str) -> None:
    """A bare string is no list of names, and a name is a non-empty string."""
    with pytest.raises(NotAStringError) as caught:
        ToolMask(**lists)
    assert told in str(caught.value)


NAMES = st.text("ab_*?[]", min_size=1, max_size=4)


@given(st.lists(NAMES, max_size=3) | st.none(), st.lists(NAMES, min_size=1, max_size=3), st.lists(NAMES, max_size=6))
def test_the_law_of_masks(allow: list[str] | None, deny: list[str], tools: list[str]) -> None:
    """Allowing and denying are two masks that must both admit; every listed name means at least itself."""
    both, denied = ToolMask(allow, deny), ToolMask(deny=deny)
    for tool in tools:
        allowed = allow is None or ToolMask(allow=allow).admits(tool)
        assert both.admits(tool) is (allowed and denied.admits(tool))
    assert not any(denied.admits(name) for name in deny)
    assert set(both.unknown(tools)) | set(both.unmatched(tools)) <= set(both.names)
    assert not both.unknown(both.names)
    assert not both.unmatched(both.names)
