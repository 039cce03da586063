"""The prompt of a logged step, in the form in which a rendering is shown."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from foreword.cli.explain_subject import logged_subject
from foreword.cli.shown import Shown
from foreword.errors import EntryRef
from foreword.explain.masking import masked
from foreword.prompt.digest import Digests

if TYPE_CHECKING:
    from collections.abc import Generator

    from foreword.explain.subject import Subject
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.spans import Spans
    from foreword.prompt.trace import Trace

__all__ = ["logged"]


@contextmanager
def logged(address: str, store: str | None) -> Generator[Shown]:
    """The prompt behind an address.

    Raises:
        Fault: there is no store, and the address is a mere word.
        StoreError: there is no such store, or it cannot be read.
        SessionError: there is no such step, or it cannot be read.
    """
    subject = logged_subject(address, store)
    yield Shown(_Logged(subject), None, title=f"Prompt of {subject.title}", unstored=subject.unstored)


@dataclass(frozen=True)
class _Logged:
    """A logged prompt, read as a rendering is."""

    subject: Subject

    @cached_property
    def _masked(self) -> Subject:
        return masked(self.subject)

    @property
    def text(self) -> str:
        return self.subject.text

    @property
    def snapshot(self) -> str:
        return self.subject.snapshot

    @property
    def spans(self) -> Spans:
        return self.subject.spans

    @property
    def snapshot_spans(self) -> Spans:
        return self.subject.snapshot_spans

    @property
    def masked_spans(self) -> Spans:
        return self._masked.spans

    @property
    def masked_snapshot_spans(self) -> Spans:
        return self._masked.snapshot_spans

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        return tuple(tool.schema for tool in self.subject.tools)

    @property
    def tool_origins(self) -> tuple[Origin | None, ...]:
        return tuple(tool.origin for tool in self.subject.tools)

    @property
    def trace(self) -> Trace:
        return self.subject.trace

    @property
    def digest(self) -> str:
        return Digests().of_list([section.text for section in self.subject.sections])

    @property
    def dropped(self) -> tuple[EntryRef, ...]:
        empty = [event for event in self.subject.trace.events if event.action == "empty"]
        return tuple(EntryRef(each.kind, each.name, each.owner or "?", each.scope) for each in empty)
