"""Who sends a request: a task, or a thread. When they do something else, they no longer wait for its answer."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from foreword.prompt.asking import running_loop

__all__ = ["Caller"]


class Caller:
    """The task, else the thread, that is running now."""

    __slots__ = ("_task", "_thread")

    def __init__(self) -> None:
        self._thread = threading.current_thread()
        task = _task()
        self._task: weakref.ref[Any] | None = None if task is None else weakref.ref(task)

    def is_over(self, now: Caller) -> bool:
        """Whether this one can be waiting for nothing any more, given who is running now."""
        if self._task is None:
            return self._thread is now._thread or not self._thread.is_alive()
        task = self._task()
        return task is None or (now._task is not None and now._task() is task) or _is_done(task)


def _task() -> Any:
    match running_loop():
        case "asyncio":
            import asyncio

            return asyncio.current_task()
        case "trio":
            import trio

            return trio.lowlevel.current_task()
        case _:
            return None


def _is_done(task: Any) -> bool:
    done = getattr(task, "done", None)  # trio's tasks do not tell, but go when they are done
    return bool(done is not None and done())
