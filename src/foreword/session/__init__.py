"""Sessions: an append-only log of what an agent was told and answered, from which each request can be made again.

async with open_log("sqlite:foreword.db") as log:
session = await log.create(labels={"ticket": "4711"})
session.append(TurnStart(1))
...
await session.flush()                       # durable from here on
rebuilt = await rebuild(log, "last@1")      # the request of the first step, byte for byte
assert (await verify(log)).intact           # nothing was changed since it was logged
"""

from foreword.errors import (
    ContentNotStoredError,
    DamagedLogError,
    ErasedContentError,
    ErasureBlockedError,
    EventRefusedError,
    FlushFailedError,
    HeaderDriftError,
    InvalidAddressError,
    InvalidSessionIdError,
    NewerLogError,
    RequestMismatchError,
    SessionBusyError,
    SessionConflictError,
    SessionError,
    SessionExistsError,
    SessionFencedError,
    StoreError,
    StoreForkedError,
    StoreVersionError,
    UnknownAddressError,
    UnknownSessionError,
)
from foreword.session.drift import (
    Drift,
    Resumption,
)
from foreword.session.erasure import (
    ErasedIn,
    ErasureReport,
    SharedContent,
)
from foreword.session.events import (
    RUNTIME_CONTEXT,
    AssistantSaid,
    BodyDigest,
    ContentErased,
    ContextPart,
    Event,
    ForkedFrom,
    HeaderPart,
    HeaderReason,
    HeaderWritten,
    HeldSnapshot,
    HistoryReplaced,
    LoggedEvent,
    MessageSource,
    Note,
    RequestAttempted,
    RequestEnded,
    SessionStart,
    StepEnd,
    StepStart,
    Timings,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnEndReason,
    TurnStart,
    UnknownEvent,
    UserSaid,
)
from foreword.session.finding import (
    Location,
)
from foreword.session.header import (
    RequestHeader,
)
from foreword.session.ledger import (
    Clock,
    Content,
    Entropy,
)
from foreword.session.log import (
    Log,
    SessionInfo,
    open_log,
)
from foreword.session.masking import (
    masked_event,
    masked_header,
)
from foreword.session.matching import (
    Remains,
)
from foreword.session.placeholders import (
    ERASED,
    NOT_STORED,
)
from foreword.session.reading import (
    IfErased,
)
from foreword.session.rebuild import (
    BodyMaker,
    Rebuilt,
    rebuild,
    verify_request,
)
from foreword.session.repair import (
    REQUEST_OUTCOME_UNKNOWN,
    TOOL_NOT_STARTED,
    TOOL_OUTCOME_UNKNOWN,
    repair,
)
from foreword.session.session import (
    Observer,
    Session,
)
from foreword.session.trace import (
    StepExplanation,
    StepTrace,
    step_trace,
)
from foreword.session.verify import (
    LogFault,
    SessionReport,
    Verification,
    verify,
)
from foreword.session.view import (
    SessionView,
)

__all__ = [
    "ERASED",
    "NOT_STORED",
    "REQUEST_OUTCOME_UNKNOWN",
    "RUNTIME_CONTEXT",
    "TOOL_NOT_STARTED",
    "TOOL_OUTCOME_UNKNOWN",
    "AssistantSaid",
    "BodyDigest",
    "BodyMaker",
    "Clock",
    "Content",
    "ContentErased",
    "ContentNotStoredError",
    "ContextPart",
    "DamagedLogError",
    "Drift",
    "Entropy",
    "ErasedContentError",
    "ErasedIn",
    "ErasureBlockedError",
    "ErasureReport",
    "Event",
    "EventRefusedError",
    "FlushFailedError",
    "ForkedFrom",
    "HeaderDriftError",
    "HeaderPart",
    "HeaderReason",
    "HeaderWritten",
    "HeldSnapshot",
    "HistoryReplaced",
    "IfErased",
    "InvalidAddressError",
    "InvalidSessionIdError",
    "Location",
    "Log",
    "LogFault",
    "LoggedEvent",
    "MessageSource",
    "NewerLogError",
    "Note",
    "Observer",
    "Rebuilt",
    "Remains",
    "RequestAttempted",
    "RequestEnded",
    "RequestHeader",
    "RequestMismatchError",
    "Resumption",
    "Session",
    "SessionBusyError",
    "SessionConflictError",
    "SessionError",
    "SessionExistsError",
    "SessionFencedError",
    "SessionInfo",
    "SessionReport",
    "SessionStart",
    "SessionView",
    "SharedContent",
    "StepEnd",
    "StepExplanation",
    "StepStart",
    "StepTrace",
    "StoreError",
    "StoreForkedError",
    "StoreVersionError",
    "Timings",
    "ToolAnswered",
    "ToolCalled",
    "TurnEnd",
    "TurnEndReason",
    "TurnStart",
    "UnknownAddressError",
    "UnknownEvent",
    "UnknownSessionError",
    "UserSaid",
    "Verification",
    "masked_event",
    "masked_header",
    "open_log",
    "rebuild",
    "repair",
    "step_trace",
    "verify",
    "verify_request",
]
