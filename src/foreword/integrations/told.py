"""What a request says, read off its body or off a framework's messages: the value that recorders hand on.

Everything in it is neutral but the `Shape`, from which the body can be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foreword.wire.chunks import Finish
from foreword.wire.messages import AssistantMessage

if TYPE_CHECKING:
    from foreword.integrations.shape import Shape
    from foreword.prompt.contributions import ToolSchema
    from foreword.session.events import MessageSource
    from foreword.wire.messages import Message
    from foreword.wire.request import ModelConfig
    from foreword.wire.tool_extras import ToolExtras

__all__ = ["NO_CREDITS", "Answered", "Body", "Credit", "Credits", "Heard", "Sent", "Told"]


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of the history."""

    message: Message
    source: MessageSource | None = None  # of a user-role message that is not the user's


@dataclass(frozen=True, slots=True)
class Told:
    """What a request says."""

    model: str
    settings: Mapping[str, Any]  # all that is neither instructions nor tools nor history, as it was sent
    instructions: tuple[str, ...]  # the system or developer messages that it begins with, or the system blocks
    tools: tuple[ToolSchema, ...]
    history: tuple[Heard, ...]
    shape: Shape | None = None  # None at the level of assembly, or if the body cannot be made again from it
    tool_extras: tuple[ToolExtras, ...] = ()  # what each tool carries beside its schema
    continues: bool = False  # the server keeps the history, and is only told what is new


@dataclass(frozen=True, slots=True)
class Credit:
    """What a framework says of an instruction: its text, what it is called, and who contributed it."""

    text: str
    name: str | None
    owner: str


@dataclass(frozen=True, slots=True)
class Credits:
    """Whose everything is, as far as a framework tells."""

    owner: str  # of what nobody else is named for
    parts: tuple[Credit, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict[str, str])  # the owner of a tool by its name


NO_CREDITS = Credits("application")
"""Those of a raw SDK, which knows of no owners."""


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes that are sent, or what stands for them; the log has their digest."""

    adapter: str  # the format
    version: str  # begins with the level
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that is about to be sent."""

    told: Told
    config: ModelConfig
    credits: Credits
    body: Body
    retry: bool = False  # the SDK tries the last request again


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of it."""

    finish: Finish
    message: AssistantMessage | None = None  # None if there is no answer
    milliseconds: int | None = None  # from the request to the end of the answer
    first: int | None = None  # to its beginning
