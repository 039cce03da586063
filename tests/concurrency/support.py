"""What the tests of concurrency share: ill-behaved providers, a count of living tasks, and scripts run anew."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from textwrap import dedent

import anyio

FAR = 60.0
"""Seconds that nobody waits for: who does has failed."""

PATIENCE = 10.0
"""Seconds after which a test that still waits has failed; a loaded machine needs far less."""


def living_tasks() -> int:
    """How many tasks the running event loop has."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        import trio

        return trio.lowlevel.current_statistics().tasks_living


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that is about to be true."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - some of what is waited for tells nobody
            await anyio.sleep(0.001)


async def cling(released: anyio.Event) -> None:
    """Not go when cancelled, by whatever means, but only when released; or when the test has failed anyway."""
    end = anyio.current_time() + 2 * PATIENCE
    while not released.is_set() and anyio.current_time() < end:
        try:
            with anyio.CancelScope(shield=True, deadline=end):
                await released.wait()
        except anyio.get_cancelled_exc_class():
            pass


class Hanging:
    """A provider that never answers, and notes when it is asked and when it is cancelled."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.cancelled = False

    async def __call__(self) -> str:
        self.asked.set()
        try:
            await anyio.sleep(FAR)
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            raise
        return "never"


class Clinging:
    """A provider that does not go when it is cancelled, until it is released; then it does what it was given."""

    def __init__(self, then: Callable[[], Awaitable[str]] | None = None) -> None:
        self.asked = anyio.Event()
        self.released = anyio.Event()
        self.then = then

    async def __call__(self) -> str:
        self.asked.set()
        await cling(self.released)
        return "late" if self.then is None else await self.then()


def in_threads(*jobs: Callable[[], object]) -> None:
    """Run jobs at once, each in a thread of its own; the first error of any of them is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], object]) -> None:
        start.wait()
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE * 3)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def started(script: str) -> subprocess.Popen[str]:
    """A new Python that runs a script; warnings are errors, and it can be interrupted whatever our own parent says."""
    opening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", opening + dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def run_script(script: str) -> tuple[int, str, str]:
    """Run a script in a new Python to its end: exit code, output, errors. It must come to an end by itself."""
    process = started(script)
    try:
        output, errors = process.communicate(timeout=FAR / 2)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(f"the process does not end: {output!r} {errors!r}") from None
    return process.returncode, output, errors
