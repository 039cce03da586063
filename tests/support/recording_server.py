"""A model server in a thread: it records every request and answers by script, well or badly.

    with RecordingServer(said("It is late."), failing(429, headers={"retry-after": "2"})) as server:
        adapter = OpenAIAdapter(base_url=server.url, api_key="…")
        ...
    assert server.requests[0].body == adapter.body(request)

Each answer of the script serves one request; a request beyond the script gets ``otherwise``. It speaks plain HTTP/1.1 by
hand, so that it can also cut an answer off, keep silent, or send rubbish. The answers here are those of chat
completions; `tests.support.anthropic_events` has those of Anthropic's messages.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Lock, Thread
from typing import Any, Literal

PATIENCE = 30.0
"""Seconds after which whoever waits gives up."""


@dataclass(frozen=True)
class Request:
    """One request, as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What the server does with one request."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[bytes | Event, ...] = ()  # sent one by one; an event is waited for
    end: Literal["whole", "cut", "silent"] = "whole"  # cut: in the middle; silent: until the client hangs up


# What a server of chat completions says


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One event of a stream."""
    choice = {"index": 0, "delta": dict(delta or {}), "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    } | more


def text(piece: str) -> dict[str, Any]:
    return chunk({"content": piece})


def call(index: int, arguments: str = "", *, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    """A piece of a tool call: the first one with its id and name."""
    function: dict[str, Any] = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    piece: dict[str, Any] = {"index": index, "function": function}
    if id is not None:
        piece |= {"id": id, "type": "function"}
    return chunk({"tool_calls": [piece]})


def usage(given: int = 12, made: int = 3, cached: int | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    if cached is not None:
        told["prompt_tokens_details"] = {"cached_tokens": cached, "audio_tokens": 0}
    return chunk(choices=[], usage=told)


def encoded(event: Mapping[str, Any] | str | bytes | Event) -> bytes | Event:
    """An event as it goes over the wire; bytes go as they are."""
    if isinstance(event, bytes | Event):
        return event
    return f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()


def streaming(
    *events: Mapping[str, Any] | str | bytes | Event,
    done: bool = True,
    end: Literal["whole", "cut", "silent"] = "whole",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An answer that comes as a stream of events."""
    pieces = [encoded(event) for event in (*events, *(("[DONE]",) if done else ()))]
    return Answer(200, {"content-type": "text/event-stream; charset=utf-8", **(headers or {})}, tuple(pieces), end)


def said(words: str, finish: str = "stop") -> Answer:
    """A whole answer, with its usage."""
    return streaming(chunk({"role": "assistant", "content": ""}), text(words), chunk(finish=finish), usage())


def failing(
    status: int,
    message: str = "It did not work.",
    *,
    code: str | None = None,
    type: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An answer with a failure, as the format has it."""
    told = json.dumps({"error": {"message": message, "type": type, "param": None, "code": code}}).encode()
    return Answer(status, {"content-type": "application/json", **(headers or {})}, (told,))


class RecordingServer:
    """See the module.

    Args:
        script: the answers.
        otherwise: what answers requests beyond the script; by default a failure with status 500.

    Attributes:
        requests: those that came, in their order.
        hung_up: how many clients hung up on an answer that was not whole.
    """

    def __init__(self, *script: Answer, otherwise: Answer | None = None) -> None:
        self.requests: list[Request] = []
        self.hung_up = 0
        self._script = list(script)
        self._otherwise = otherwise or failing(500, "the script has ended")
        self._open = 0
        self._changed = Condition(Lock())
        self.closing = Event()
        self._server = _Listener(self)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """What to give as ``base_url`` to those who add the rest of a path to that of a version."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """What to give as ``base_url`` to those who add the whole path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        with self._changed:
            return self._open

    def answer(self, *answers: Answer) -> None:
        """Add to the script."""
        with self._changed:
            self._script += answers

    def wait_for(self, fact: Callable[[], bool], what: str) -> None:
        """Wait until something is so; it is looked at whenever something happens here."""
        limit = time.monotonic() + PATIENCE
        with self._changed:
            while not fact():
                if not self._changed.wait(limit - time.monotonic()):
                    raise AssertionError(f"not within {PATIENCE:g} s: {what}")

    def wait_for_requests(self, count: int) -> None:
        self.wait_for(lambda: len(self.requests) >= count, f"{count} requests (there were {len(self.requests)})")

    def wait_for_hang_up(self, count: int = 1) -> None:
        self.wait_for(lambda: self.hung_up >= count, f"{count} clients hung up")

    def wait_for_no_connection(self) -> None:
        self.wait_for(lambda: self._open == 0, "no connection is open")

    def __enter__(self) -> RecordingServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # For the handlers

    def note(self, *, connections: int = 0, hung_up: int = 0) -> None:
        """That something has happened."""
        with self._changed:
            self._open += connections
            self.hung_up += hung_up
            self._changed.notify_all()

    def arrived(self, request: Request) -> Answer:
        """Keep a request, and give the answer to it."""
        with self._changed:
            place = len(self.requests)
            self.requests.append(request)
            self._changed.notify_all()
            return self._script[place] if place < len(self._script) else self._otherwise


class _Listener(ThreadingHTTPServer):
    """The socket, and the server that it works for."""

    daemon_threads = True

    def __init__(self, recording: RecordingServer) -> None:
        self.recording = recording
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self.server.recording.note(connections=1)

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.server.recording.note(connections=-1)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # hung up between two requests
            self.close_connection = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.recording.arrived(Request("POST", self.path, headers, body))
        try:
            self._give(answer)
        except OSError:
            self.close_connection = True
            self.server.recording.note(hung_up=1)

    def _give(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in answer.pieces:
            self._send(piece)
        if answer.end == "whole":
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True
        if answer.end == "silent":
            self._wait(Event())

    def _send(self, piece: bytes | Event) -> None:
        if isinstance(piece, Event):
            self._wait(piece)
        elif piece:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _wait(self, event: Event) -> None:
        """Wait for an event; if the client hangs up before, that is an `OSError`."""
        self.connection.settimeout(0.02)
        while not event.is_set() and not self.server.recording.closing.is_set():
            try:
                if not self.connection.recv(1):
                    raise ConnectionResetError
            except TimeoutError:
                continue
        self.connection.settimeout(None)

    def log_message(self, format: str, *args: object) -> None:
        pass
