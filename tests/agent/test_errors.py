"""Errors of agents: they name the culprit and the way out, and survive pickling."""

import copy
import pickle

import pytest

from foreword.errors import (
    AgentBusyError,
    AgentError,
    ForgedSnapshotError,
    NoModelError,
    SessionInUseError,
    StepLimitError,
    WrongAnswerError,
)

ERRORS = {
    "agent_busy": AgentBusyError("clerk", 3),
    "no_model": NoModelError("clerk"),
    "step_limit": StepLimitError("clerk", 100),
    "wrong_answer": WrongAnswerError("agent/request", "a ModelConfig", "a str"),
    "forged_snapshot": ForgedSnapshotError("It is noon."),
    "session_in_use": SessionInUseError("abc", "clerk"),
}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("agent_busy", ("agent clerk is in turn 3", "agent.inject(text)")),
        ("no_model", ("agent clerk has no model", "install_model_selection")),
        ("step_limit", ("agent clerk has taken 100 steps", "max_steps=…")),
        ("wrong_answer", ("a listener of agent/request gave a str", "await call_next()")),
        ("forged_snapshot", ('"It is noon."', "register a context")),
        ("session_in_use", ("session abc is that of agent clerk", "fork the session")),
    ],
)
def test_what_they_say(kind: str, words: tuple[str, ...]) -> None:
    """Who is to blame, and what to do."""
    error = ERRORS[kind]
    assert error.kind == kind
    assert all(each in str(error) for each in words)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_they_survive_pickling(error: AgentError) -> None:
    """Pickled and copied they are the same, attributes included."""
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)
