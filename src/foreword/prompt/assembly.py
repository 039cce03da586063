"""What one step works with: an assembly of sections, contexts, tools and variables, and what a listener may do to it.

Entries are frozen; the lists and the dict belong to this assembly alone. A listener replaces, adds, removes and moves
entries, and can never reach into another assembly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from foreword.errors import EntryRef
from foreword.prompt.entries import Entries
from foreword.prompt.template import Template

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.draft import Draft
    from foreword.prompt.origin import Origin

__all__ = ["AssembledContext", "AssembledSection", "ExtraKey", "PromptAssembly", "render_each"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AssembledText:
    """An ordered text in an assembly, resolved but not yet interpolated."""

    name: str
    text: str
    origin: Origin | None = None  # the pipeline fills it in for what a listener makes
    verbatim: bool = False  # the text is no template
    _template: Template | None = field(default=None, init=False, repr=False, compare=False)
    _last: tuple[list[str | None], str] | None = field(default=None, init=False, repr=False, compare=False)
    _has_stood: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def has_stood(self) -> bool:
        """Whether it has been part of some assembly, its origin told; else a listener has just made it."""
        return self._has_stood

    def standing(self) -> Self:
        """This, marked as part of an assembly."""
        object.__setattr__(self, "_has_stood", True)
        return self

    KIND: ClassVar[str] = "text"

    @property
    def template(self) -> Template:
        """The parsed text; parsed at the first use."""
        template = self._template
        if template is None:
            template = Template.verbatim(self.text) if self.verbatim else Template.parse(self.text)
            object.__setattr__(self, "_template", template)
        return template

    @property
    def ref(self) -> EntryRef:
        """The reference that errors carry."""
        origin = self.origin
        return EntryRef(self.KIND, self.name, "a listener") if origin is None else origin.ref(self.KIND, self.name)

    def ref_at(self, line: int) -> EntryRef:
        """The same for a line of the text, from 1: of a text from a file, it has that line of the file."""
        origin = self.origin
        if origin is None or origin.source is None:
            return self.ref
        return replace(origin, source=origin.source.down(line - 1)).ref(self.KIND, self.name)

    def render(self, values: dict[str, str | None]) -> str:
        """The text with its references resolved; raises `RenderError` with the place of the first fault."""
        return (self._template or self.template).render(values, self)

    def render_again(self, values: dict[str, str | None]) -> str:
        """As `render`; keeps what came out, for a text that is rendered at every step with much the same values."""
        given = list(map(values.get, (self._template or self.template).names))
        last = self._last
        if last is not None and last[0] == given:
            return last[1]
        text = self.render(values)
        object.__setattr__(self, "_last", (given, text))
        return text


def render_each(entries: Iterable[AssembledText], values: dict[str, str | None]) -> list[str]:
    """What each `render` gives, at the price of one call less: steps spend their time here."""
    return [(each._template or each.template).render(values, each) for each in entries]  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True, slots=True)
class AssembledSection(AssembledText):
    """One section of an assembly. A listener makes one with ``AssembledSection(name, text)``."""

    KIND: ClassVar[str] = "section"


@dataclass(frozen=True, slots=True)
class AssembledContext(AssembledText):
    """One runtime context of an assembly. A listener makes one with ``AssembledContext(name, text)``."""

    KIND: ClassVar[str] = "context"


class ExtraKey(Generic[T]):
    """A typed key under which a plugin keeps something of its own in an assembly. Compares by identity."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: type[T]) -> None:
        self.name = name
        self.type = type

    def __repr__(self) -> str:
        return f"ExtraKey({self.name!r}, {self.type.__name__})"


class PromptAssembly:
    """The one mutable object of a run: what the model is about to be told.

    Attributes:
        variables: every registered variable with its value, None for "no value this time".
        extras: what plugins keep here under an `ExtraKey`.
    """

    __slots__ = ("_contexts", "_sections", "_tools", "draft", "extras", "variables")

    def __init__(
        self,
        sections: Iterable[AssembledSection] = (),
        contexts: Iterable[AssembledContext] = (),
        tools: Iterable[ToolSchema] = (),
        variables: dict[str, str | None] | None = None,
        extras: dict[ExtraKey[Any], Any] | None = None,
    ) -> None:
        self._sections: Entries[AssembledSection] | None = Entries(sections, "section")
        self._contexts: Entries[AssembledContext] | None = Entries(contexts, "context")
        self._tools: Entries[ToolSchema] | None = Entries(tools, "tool")
        self.variables: dict[str, str | None] = {} if variables is None else variables
        self.extras: dict[ExtraKey[Any], Any] = {} if extras is None else extras
        self.draft: Draft | None = None

    @classmethod
    def of(cls, draft: Draft, variables: dict[str, str | None]) -> PromptAssembly:
        """An assembly whose lists are made from a draft when first asked for: most steps never ask."""
        made = cls.__new__(cls)
        made._sections = made._contexts = made._tools = None
        made.variables = variables
        made.extras = {}
        made.draft = draft
        return made

    @property
    def sections(self) -> Entries[AssembledSection]:
        """The sections, in the order in which they are rendered."""
        if self._sections is None:
            self._sections = Entries(self._drafted().sections(), "section")
        return self._sections

    @sections.setter
    def sections(self, entries: Iterable[AssembledSection]) -> None:
        self._sections = Entries(entries, "section")

    @property
    def contexts(self) -> Entries[AssembledContext]:
        """The runtime contexts, in the order in which the snapshot tells them."""
        if self._contexts is None:
            self._contexts = Entries(self._drafted().contexts(), "context")
        return self._contexts

    @contexts.setter
    def contexts(self, entries: Iterable[AssembledContext]) -> None:
        self._contexts = Entries(entries, "context")

    @property
    def tools(self) -> Entries[ToolSchema]:
        """The tool schemas, in the order in which the model gets them."""
        if self._tools is None:
            self._tools = Entries(self._drafted().tools(), "tool")
        return self._tools

    @tools.setter
    def tools(self, entries: Iterable[ToolSchema]) -> None:
        self._tools = Entries(entries, "tool")

    def listed(self) -> tuple[Entries[Any] | None, Entries[Any] | None, Entries[Any] | None]:
        """The three lists as far as they were made: None means untouched, as drafted."""
        return self._sections, self._contexts, self._tools

    def make_lists(self) -> None:
        """Make the lists that nobody has asked for yet."""
        self.sections, self.contexts, self.tools = self.sections, self.contexts, self.tools

    def _drafted(self) -> Draft:
        assert self.draft is not None  # noqa: S101 - only `of` leaves lists unmade, and it sets the draft
        return self.draft

    def __repr__(self) -> str:
        counts = f"{len(self.sections)} sections, {len(self.contexts)} contexts, {len(self.tools)} tools"
        return f"<PromptAssembly: {counts}, {len(self.variables)} variables>"
