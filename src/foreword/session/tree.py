"""Trees of shared blobs: long lists of which one member changes at a time.

A list of digests becomes nodes of at most five, filled from the left, up to a single one. When a leaf changes, only the
nodes above it are new; all others are in the store already. A *root* binds lists together, with their sizes, and single
blobs behind them: a header is one, and what explains a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from foreword.session.blobs import BlobFault, add_blob
from foreword.session.records import Node, Root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from foreword.session.blobs import Blobs

__all__ = ["FANOUT", "check_root", "read_root", "write_root"]

T = TypeVar("T")

FANOUT: Final = 5

_node: msgspec.json.Decoder[Node] = msgspec.json.Decoder(Node)
_root: msgspec.json.Decoder[Root] = msgspec.json.Decoder(Root)


def write_root(
    blobs: dict[bytes, bytes],
    lists: Sequence[Sequence[bytes]],
    singles: Sequence[bytes],
    positions: Sequence[int] = (),
) -> bytes:
    """Bind lists of digests and single digests together.

    Args:
        blobs: takes the nodes and the root.
        lists: each becomes a tree.
        singles: digests that stand for themselves.
        positions: numbers that go with them; see `foreword.session.records.Root`.

    Returns:
        The digest of the root.
    """
    children = [*(_tree(blobs, leaves) for leaves in lists), *singles]
    sizes = tuple(len(leaves) for leaves in lists)
    root = Root(tuple(child.hex() for child in children), sizes, tuple(positions))
    return add_blob(blobs, msgspec.json.encode(root))


async def read_root(blobs: Blobs, digest: bytes) -> tuple[list[list[bytes]], list[bytes]]:
    """The lists and the single digests of a root."""
    lists, singles, _ = await read_whole_root(blobs, digest)
    return lists, singles


async def read_whole_root(blobs: Blobs, digest: bytes) -> tuple[list[list[bytes]], list[bytes], tuple[int, ...]]:
    """The lists, the single digests and the positions of a root.

    Raises:
        BlobFault: the root or a node is missing or wrong, or a list has another size than the root says.
    """
    root = _decoded(_root, digest, await blobs.one(digest))
    children = [bytes.fromhex(child) for child in root.k]
    lists = [await _leaves(blobs, tree, count) for tree, count in zip(children, root.n, strict=False)]
    return lists, children[len(lists) :], root.p


async def check_root(blobs: Blobs, digest: bytes, seen: AbstractSet[bytes]) -> tuple[set[bytes], set[bytes]]:
    """Read everything below a root that was not seen yet.

    Returns:
        What was read and is as it was stored: the root, nodes, leaves and single blobs. Then the leaves and single
        blobs that are empty.

    Raises:
        BlobFault: the first of them that is missing or wrong.
        ErasedBlob: the root or a node is empty; they hold no content that could be erased.
    """
    whole = {digest}
    root = _decoded(_root, digest, await blobs.one(digest))
    children = [bytes.fromhex(child) for child in root.k]
    contents = children[len(root.n) :]
    for tree, count in zip(children, root.n, strict=False):
        level = [tree]
        for _ in range(_depth(count)):
            nodes = await blobs.read(node for node in level if node not in seen)
            whole.update(nodes)
            level = [child for node, body in nodes.items() for child in _children(node, body)]
        contents += level
    held = await blobs.held(each for each in contents if each not in seen)
    empty = {each for each, content in held.items() if content is None}
    return whole | (held.keys() - empty), empty


def _tree(blobs: dict[bytes, bytes], leaves: Sequence[bytes]) -> bytes:
    """The tree over some leaves; that of none is one empty node."""
    level = list(leaves)
    while True:
        level = [add_blob(blobs, _node_of(group)) for group in _groups(level)]
        if len(level) == 1:
            return level[0]


async def _leaves(blobs: Blobs, tree: bytes, count: int) -> list[bytes]:
    level = [tree]
    for _ in range(_depth(count)):
        nodes = await blobs.read(level)
        level = [child for digest in level for child in _children(digest, nodes[digest])]
    if len(level) != count:
        raise BlobFault(tree, f"it is a tree of {len(level)} where there should be {count}")
    return level


def _groups(level: list[bytes]) -> Iterator[list[bytes]]:
    return (level[start : start + FANOUT] for start in range(0, len(level) or 1, FANOUT))


def _node_of(group: list[bytes]) -> bytes:
    return b'{"k":[%s]}' % ",".join([f'"{digest.hex()}"' for digest in group]).encode()


def _children(digest: bytes, body: bytes) -> list[bytes]:
    return [bytes.fromhex(child) for child in _decoded(_node, digest, body).k]


def _decoded(decoder: msgspec.json.Decoder[T], digest: bytes, body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise BlobFault(digest, f"it is no part of a tree: {fault}") from None


def _depth(count: int) -> int:
    depth, holds = 1, FANOUT
    while holds < count:
        depth, holds = depth + 1, holds * FANOUT
    return depth
