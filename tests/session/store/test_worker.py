"""The thread that writes: one at any time, whatever breaks off its start."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import pytest

from foreword.session.store.worker import Worker


@contextmanager
def starting_breaks_off(where: str, error: type[BaseException]) -> Generator[None]:
    """Have an error come up in `Thread.start` when it makes the thread, or waits for it to run."""

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and frame.f_code.co_name == "start":
            here = "makes" if str(getattr(argument, "__name__", "")).startswith("start_") else ""
        else:
            caller = frame.f_back
            is_waiting = event == "call" and frame.f_code.co_name == "wait" and caller is not None
            here = "waits" if is_waiting and caller.f_code.co_name == "start" else ""
        if here == where:
            sys.setprofile(None)
            raise error("from outside")

    sys.setprofile(interrupt)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_two_jobs_never_run_at_once_though_ctrl_c_breaks_off_the_start_of_a_thread() -> None:
    """The thread runs all the same, so the next job must not get another one beside it."""
    worker, done = Worker("writes"), threading.Event()
    begun, go_on = threading.Event(), threading.Event()
    told: list[str] = []

    def first() -> None:
        begun.set()
        go_on.wait(10)
        told.append("first")

    def second() -> None:
        told.append("second")
        done.set()

    with pytest.raises(KeyboardInterrupt), starting_breaks_off("waits", KeyboardInterrupt):
        worker.hand_over(first)
    assert begun.wait(10)
    worker.hand_over(second)
    assert not done.wait(0.2)
    go_on.set()
    assert done.wait(10)
    assert told == ["first", "second"]


def test_a_job_that_gets_no_thread_is_not_done() -> None:
    """The error says so, and the job does not come up with the next one."""
    worker, done = Worker("writes"), threading.Event()
    told: list[str] = []
    with pytest.raises(RuntimeError, match="from outside"), starting_breaks_off("makes", RuntimeError):
        worker.hand_over(lambda: told.append("refused"))
    worker.hand_over(done.set)
    assert done.wait(10)
    assert told == []
