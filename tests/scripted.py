"""A scripted OpenAI-compatible provider over real sockets, which can also behave badly.

    with ScriptedProvider(lambda body, n, headers: Reply(completion("A"))) as provider:
        ...  # provider.url is the base URL, provider.requests what was asked

A handler gets the request's JSON body, the number of the call (from 0) and its headers (names in
lower case), and returns a `Reply` or one of the behaviours below. Every thread ends with the block.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]


def completion(
    text: str | None,
    tokens: Sequence[Mapping[str, float]] | None = None,
    finish_reason: str = "stop",
    **usage: Any,
) -> Json:
    """A chat completion; `tokens` holds, for each position, tokens and their probabilities.

    The first token of a position is the one that was chosen; `usage` adds or replaces its fields.
    """
    choice: Json = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish_reason,
        "logprobs": None if tokens is None else {"content": [position(p) for p in tokens]},
    }
    counts = {"prompt_tokens": 100, "completion_tokens": 10, **usage}
    return {"id": "c-1", "object": "chat.completion", "choices": [choice], "usage": counts}


def position(probabilities: Mapping[str, float]) -> Json:
    """One position of `logprobs.content`."""
    pairs = [{"token": token, "logprob": math.log(p)} for token, p in probabilities.items()]
    return {**pairs[0], "top_logprobs": pairs}


def error(message: str, **fields: Any) -> Json:
    """An error body in the usual shape; `fields` such as code, type, param."""
    return {"error": {"message": message, **fields}}


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Json


class Behaviour(Protocol):
    """What a handler returns: writes to the socket, and says whether the connection goes on."""

    def play(self, sock: socket.socket, stop: threading.Event) -> bool: ...


@dataclass(frozen=True)
class Reply:
    """A whole HTTP reply after `delay` seconds."""

    body: Json | list[Any] | str | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    close: bool = False  # close the connection afterwards without saying so before

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        stop.wait(self.delay)
        sock.sendall(self.wire())
        return not self.close

    def wire(self) -> bytes:
        """The bytes of the reply."""
        data = self.body
        if not isinstance(data, bytes):
            data = (data if isinstance(data, str) else json.dumps(data)).encode()
        fields = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        lines = [f"{name}: {value}" for name, value in {**fields, **self.headers}.items()]
        head = "\r\n".join([f"HTTP/1.1 {self.status} Scripted", *lines, "", ""])
        return head.encode("latin-1") + data


@dataclass(frozen=True)
class Drip:
    """A reply that comes a byte at a time, from its header or from its body on."""

    reply: Reply
    every: float = 0.02  # seconds
    from_header: bool = False

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        wire = self.reply.wire()
        start = 0 if self.from_header else wire.index(b"\r\n\r\n") + 4
        sock.sendall(wire[:start])
        for at in range(start, len(wire)):
            if stop.wait(self.every):
                return False
            sock.sendall(wire[at : at + 1])
        return True


@dataclass(frozen=True)
class Endless:
    """A body that never ends; without `every` it comes as fast as it is read."""

    every: float = 0.0
    chunked: bool = False

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        length = "Transfer-Encoding: chunked" if self.chunked else "Connection: close"
        sock.sendall(f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode())
        piece = b" " * (1 if self.every else 65_536)
        frame = b"%x\r\n%s\r\n" % (len(piece), piece) if self.chunked else piece
        while not stop.is_set():
            sock.sendall(frame)
            stop.wait(self.every)
        return False


@dataclass(frozen=True)
class Raw:
    """Any bytes, then the connection is closed; with `half`, only this side's half of it."""

    data: bytes = b""
    half: bool = False

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        sock.sendall(self.data)
        if self.half:
            sock.shutdown(socket.SHUT_WR)
            stop.wait()
        return False


@dataclass(frozen=True)
class Reset:
    """A connection that is reset after the first `after` bytes of a reply."""

    reply: Reply = field(default_factory=lambda: Reply(completion("A")))
    after: int = 40

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        sock.sendall(self.reply.wire()[: self.after])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


@dataclass(frozen=True)
class Silent:
    """No answer at all, while the connection stays open."""

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        stop.wait()
        return False


Handler = Callable[[Json, int, Mapping[str, str]], Behaviour]


def always(behaviour: Behaviour) -> Handler:
    """The same for every call."""
    return lambda body, n, headers: behaviour


def sequence(*behaviours: Behaviour) -> Handler:
    """One after the other; the last one goes on."""
    return lambda body, n, headers: behaviours[min(n, len(behaviours) - 1)]


def redirect(to: str, status: int = 302) -> Reply:
    """A reply that sends the client elsewhere."""
    return Reply(status=status, headers={"Location": to})


class ScriptedProvider:
    """Serves `/v1/chat/completions` by a handler and `/v1/models` from a list."""

    def __init__(
        self,
        handler: Handler,
        models: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[Request] = []  # every request, in the order of arrival
        self.connections = 0  # how many were accepted
        self._handler = handler
        self._models = Reply({"object": "list", "data": [{"id": name} for name in models]})
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._socks: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._tls = tls
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[Json]:
        """The JSON bodies of the chat completions that were asked for."""
        return [request.body for request in self.requests if request.method == "POST"]

    def __enter__(self) -> ScriptedProvider:
        self._start(self._accept)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        with self._lock:
            open_socks = [self._listener, *self._socks]
        for sock in open_socks:
            _shut(sock)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def drop_connections(self) -> None:
        """Close every connection from this side, as a provider does with idle ones."""
        with self._lock:
            socks = list(self._socks)
        for sock in socks:
            _shut(sock)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, name="scripted", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._socks.add(sock)
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        try:
            with self._secured(sock) as sock, sock.makefile("rb") as stream:
                while (request := _read(stream)) is not None:
                    if not self._behaviour(request).play(sock, self._stop):
                        return
        except OSError:  # the client, or the end of the test, closed the connection
            return
        finally:
            with self._lock:
                self._socks = {sock for sock in self._socks if sock.fileno() != -1}

    def _secured(self, sock: socket.socket) -> socket.socket:
        if self._tls is None:
            return sock
        try:
            secure = self._tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            raise
        with self._lock:
            self._socks.add(secure)
        return secure

    def _behaviour(self, request: Request) -> Behaviour:
        with self._lock:
            self.requests.append(request)
            n = next(self._numbers) if request.method == "POST" else -1
        if request.path.endswith("/models"):
            return self._models
        return self._handler(request.body, n, request.headers)


def _read(stream: Any) -> Request | None:
    """The next request of a connection, or None at its end."""
    words = stream.readline().decode("latin-1").split()
    if len(words) != 3:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    data = stream.read(length)
    if len(data) < length:
        return None  # the caller went away within its body
    return Request(words[0], words[1], headers, json.loads(data) if data else {})


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of a TLS socket too
