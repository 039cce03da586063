"""A disk that loses power: from what was there, and the journal of what was done since, to what may be there afterwards.

    journal ─▶ changes ─▶ Disk ─▶ after_power_loss(chance) ─▶ a folder

What a file held at its last sync stays. Of what was written since, each piece stays or not, some of them in part: disks
write sectors of 512 bytes, in whatever order they like. Names that were made or removed since the folder's last sync
are undone from the newest back, since file systems keep those in order.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Change", "Disk", "changes_in"]

_SECTOR = 512
_HEAD = struct.Struct("<cIIQQ")  # kind, lengths of two texts and of the data, a number


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a journal; shim.c says what the kinds mean."""

    kind: str
    name: str
    other: str
    number: int
    data: bytes


def changes_in(journal: Path) -> Iterator[Change]:
    """What a journal tells. Its last entry may be cut: whoever wrote it was killed."""
    with journal.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            kind, first, second, length, number = _HEAD.unpack(head)
            texts, data = file.read(first + second), file.read(length)
            if len(texts) + len(data) < first + second + length:
                return
            yield Change(kind.decode(), texts[:first].decode(), texts[first:].decode(), number, data)


@dataclass(slots=True)
class _File:
    """What is sure to be there, and what was done since."""

    sure: bytearray = field(default_factory=bytearray)
    since: list[Change] = field(default_factory=list)

    def synced(self) -> None:
        for change in self.since:
            _apply(self.sure, change)
        self.since.clear()

    def after_power_loss(self, chance: random.Random) -> bytes:
        content, keep = bytearray(self.sure), chance.choice([0.0, 0.3, 0.7, 0.95, 1.0])
        for change in self.since:
            if chance.random() < keep:
                _apply(content, change)
            elif change.kind == "W" and chance.random() < 0.2:
                for sector in _sectors(change):
                    if chance.random() < 0.5:
                        _apply(content, sector)
        return bytes(content)


def _apply(content: bytearray, change: Change) -> None:
    at = change.number
    if change.kind == "T":
        del content[at:]
        content.extend(bytes(at - len(content)))
        return
    content.extend(bytes(max(0, at - len(content))))
    content[at : at + len(change.data)] = change.data


def _sectors(change: Change) -> Iterator[Change]:
    """A write, cut where sectors of the disk end."""
    at, end = change.number, change.number + len(change.data)
    while at < end:
        stop = min((at // _SECTOR + 1) * _SECTOR, end)
        yield Change("W", change.name, "", at, change.data[at - change.number : stop - change.number])
        at = stop


class Disk:
    """The files of a folder, of which all is sure to be there at first."""

    def __init__(self, folder: Path) -> None:
        self._sure = {each.name: _File(bytearray(each.read_bytes())) for each in _files(folder)}
        self._now = dict(self._sure)
        self._since: list[Change] = []  # of names
        self._made: dict[int, _File] = {}  # by the change of names that made each
        self.synced = 0

    def follow(self, change: Change) -> None:
        """Take in what was done."""
        match change.kind:
            case "W" | "T":
                self._now[change.name].since.append(change)
            case "S":
                self._now[change.name].synced()
                self.synced += 1
            case "C" | "U" | "R":
                self._made[len(self._since)] = file = _File()
                self._since.append(change)
                _rename(self._now, change, file)
            case "D":
                for at, each in enumerate(self._since):
                    _rename(self._sure, each, self._made[at])
                self._since.clear()
            case _:
                pass

    def after_power_loss(self, folder: Path, chance: random.Random) -> None:
        """Write what may be there then into an empty folder."""
        names = dict(self._sure)
        for at in range(chance.randint(0, len(self._since))):
            _rename(names, self._since[at], self._made[at])
        for name, file in names.items():
            (folder / name).write_bytes(file.after_power_loss(chance))


def _rename(names: dict[str, _File], change: Change, made: _File) -> None:
    match change.kind:
        case "C":
            names[change.name] = made
        case "U":
            names.pop(change.name, None)
        case _:
            names[change.other] = names.pop(change.name)


def _files(folder: Path) -> list[Path]:
    return [each for each in sorted(folder.iterdir()) if each.is_file() and not each.name.endswith("-shm")]
