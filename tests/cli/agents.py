"""Deployments with agents that run: by a script, or by a server that records what it is asked."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.cli.support import COMMAND, Ran, clean_environment, write
from tests.support.recording_server import RecordingServer

KEY = "sk-Zq9xK7wB-and-more"

DESK = '''
    import threading
    from pathlib import Path
    from foreword import ModelAdapters, SystemPrompt, ToolRegistry, plugin
    from foreword.testing import Reply, ScriptedModel, call_tools
    from foreword.wire.chunks import ModelFailure, Usage

    @plugin(name="desk")
    def desk(prompt: SystemPrompt, tools: ToolRegistry) -> None:
        prompt.section("desk:tone", "Be brief.", order=10)
        prompt.context("desk:hours", "Open until six.", order=10)

        @tools.register
        def lookup(order: int) -> str:
            """Look an order up."""
            print("looking", order)
            return f"{order} is late"

        @tools.register
        async def hang() -> str:
            """Block the event loop, so that nothing else happens there."""
            Path(__file__).with_name("hanging").touch()
            threading.Event().wait(60)
            return "late"

    @plugin(name="script")
    def script(models: ModelAdapters) -> None:
        busy = ModelFailure("too busy", "overloaded", 529, True, 0.001)
        models.register(ScriptedModel([
            Reply("I beg", failure=busy),
            call_tools(lookup={"order": 4711}, text="Let me see.", usage=Usage(120, 20, 100)),
            Reply("It is late.", usage=Usage(150, 5)),
        ]))
'''
TEXT = """\
foreword: 1
system_prompt: {include_harness_identity: false, persona: You are a clerk.}
plugins:
  - {id: desk, use: "desk:desk"}
  - {id: script, use: "desk:script"}
agents:
  support: {model: "%s", labels: {tenant: acme}}
"""


def shop(folder: Path, model: str = "scripted:small", more: str = "") -> Path:
    """A deployment with one agent, and its plugins beside it."""
    write(folder, DESK, "desk.py")
    file = folder / "foreword.yaml"
    file.write_text(TEXT % model + more)
    return file


def served(server: RecordingServer) -> dict[str, str]:
    """The environment in which OpenAI is a recording server."""
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}


def answers(ran: Ran) -> list[dict[str, Any]]:
    """What a command told as JSON, an object a line."""
    return [json.loads(line) for line in ran.out.splitlines()]


class Child:
    """A command in a process of its own, which can be interrupted."""

    def __init__(self, arguments: Sequence[str], folder: Path, **environment: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=clean_environment({"COLUMNS": "100", **environment}),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def answers(self, word: bytes) -> None:
        """Read stdout until a line has a word."""
        assert self._process.stdout is not None
        while word not in (line := self._process.stdout.readline()):
            assert line, "it ended without"

    def says(self, word: bytes) -> bytes:
        """Read stderr until a word has come; what was read."""
        assert self._process.stderr is not None
        told = b""
        while word not in told:
            line = self._process.stderr.readline()
            assert line, f"it ended, and said: {told!r}"
            told += line
        return told

    def ran(self) -> Ran:
        """Wait for its end."""
        out, err = self._process.communicate(timeout=60)
        return Ran(self._process.returncode, out.decode(), err.decode())
