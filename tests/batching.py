"""A double of OpenAI's Batch API over real sockets, which the official client can drive.

    with BatchDouble(always(Reply(completion("A")))) as double:
        ...  # double.url is the base URL, double.carried_out the calls by their custom ids

It behaves as the API is documented: files are uploaded as forms, and a batch of a file is
validated, carried out, finalized and completed, in `takes_s` seconds. What is not 200 stands in its
error file, as do the calls of a batch that has expired before their turn. Results come in any
order. Calls that are sent to `/chat/completions` are answered by the same handler.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.scripted import Handler, Json, Reply, error

LINES, BYTES = 50_000, 200_000_000
ENDPOINT = "/v1/chat/completions"


@dataclass
class File:
    id: str
    name: str
    purpose: str
    data: bytes

    def shown(self) -> Json:
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.data),
            "created_at": 1,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


@dataclass
class Batch:
    id: str
    file: str
    window: str
    metadata: Json
    created: float
    total: int
    errors: list[Json] = field(default_factory=list)
    cancelled: bool = False
    over: bool = False
    expired: bool = False
    done: int = 0
    failed: int = 0
    output: str | None = None
    error: str | None = None


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Lost(Exception):
    """A request that was carried out, and whose response is lost."""


class BatchDouble:
    """Serves files, batches and completions; the fields may be changed while it runs."""

    def __init__(self, handler: Handler, takes_s: float = 0.0, seed: int = 0) -> None:
        self.handler, self.takes_s = handler, takes_s
        # Of the batches with these numbers, from 0, the share of calls that expires.
        self.expiring: dict[int, float] = {}
        # The creations and uploads, by their numbers, whose response is lost.
        self.lost_creations: set[int] = set()
        self.lost_uploads: set[int] = set()
        # What is wrong with the batches that have these numbers.
        self.failing: dict[int, str] = {}
        self.key: str | None = None
        self.carried_out: Counter[str] = Counter()
        self.direct = 0
        self.files: dict[str, File] = {}
        self.batches: dict[str, Batch] = {}
        self.uploads = self.creations = 0
        # The files of calls, in the order of their batches, and how many calls each had.
        self.seen: list[bytes] = []
        self.totals: list[int] = []
        self._random = random.Random(seed)
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, method: str, path: str, body: bytes, headers: Any) -> tuple[int, Any]:
        """The status and the JSON or bytes for a request. Raises `Refused` and `Lost`."""
        parts = urlsplit(path)
        route = [part for part in parts.path.removeprefix("/v1").split("/") if part]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.key is not None and headers.get("Authorization") != f"Bearer {self.key}":
            raise Refused(401, "Incorrect API key provided")
        if route == ["models"]:
            return 200, {"object": "list", "data": []}
        if route == ["chat", "completions"]:
            return self._complete(json.loads(body))
        with self._lock:
            if route[0] == "files":
                return 200, self._files(method, route[1:], query, body, headers)
            if route[0] == "batches":
                return 200, self._batches(method, route[1:], query, body)
        raise Refused(404, f"Invalid URL ({method} {path})")

    def _complete(self, body: Json) -> tuple[int, Any]:
        with self._lock:
            self.direct += 1
        reply = self.handler(body, self.direct, {})
        assert isinstance(reply, Reply)
        return reply.status, reply.body

    def _files(
        self, method: str, route: Sequence[str], query: Json, body: bytes, headers: Any
    ) -> Any:
        if method == "POST":
            return self._uploaded(body, headers)
        if not route:
            purpose = query.get("purpose")
            listed = [one for one in self.files.values() if purpose in (None, one.purpose)]
            return {"object": "list", "data": [one.shown() for one in listed], "has_more": False}
        if route[0] not in self.files:
            raise Refused(404, f"No such File object: {route[0]}")
        if method == "DELETE":
            del self.files[route[0]]
            return {"id": route[0], "object": "file", "deleted": True}
        return self.files[route[0]].data if route[1:] else self.files[route[0]].shown()

    def _uploaded(self, body: bytes, headers: Any) -> Any:
        boundary = re.search(r"boundary=(\S+)", headers["Content-Type"])
        assert boundary is not None
        fields, name, data = {}, "", None
        for part in body.split(b"--" + boundary[1].strip('"').encode())[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            field_name = re.search(rb'[^e]name="([^"]*)"', head)
            file_name = re.search(rb'filename="([^"]*)"', head)
            assert field_name is not None
            if file_name is None:
                fields[field_name[1].decode()] = content[:-2].decode()
            else:
                name, data = file_name[1].decode(), content[:-2]
        if fields.get("purpose") != "batch" or data is None:
            raise Refused(400, "'purpose' must be batch, and 'file' a file")
        if len(data) > BYTES:
            raise Refused(413, "File is too large")
        file = self._made(name, "batch", data)
        self.uploads += 1
        if self.uploads - 1 in self.lost_uploads:
            raise Lost
        return file.shown()

    def _made(self, name: str, purpose: str, data: bytes) -> File:
        file = File(f"file-{len(self.files)}{time.monotonic_ns()}", name, purpose, data)
        self.files[file.id] = file
        return file

    def _batches(self, method: str, route: Sequence[str], query: Json, body: bytes) -> Any:
        if not route:
            return self._created(json.loads(body)) if method == "POST" else self._listed(query)
        if route[0] not in self.batches:
            raise Refused(404, f"No batch found with id '{route[0]}'")
        batch = self.batches[route[0]]
        if route[1:] == ["cancel"]:
            batch.cancelled = True
        return self._shown(batch)

    def _created(self, body: Json) -> Any:
        if body.get("completion_window") != "24h" or body.get("endpoint") != ENDPOINT:
            raise Refused(400, "Invalid 'completion_window' or 'endpoint'")
        file = self.files.get(body.get("input_file_id", ""))
        if file is None:
            raise Refused(400, "Invalid 'input_file_id'")
        metadata = body.get("metadata") or {}
        assert all(len(one) <= 64 and len(metadata[one]) <= 512 for one in metadata)
        batch = Batch(
            f"batch_{len(self.batches)}",
            file.id,
            body["completion_window"],
            metadata,
            time.monotonic(),
            file.data.count(b"\n"),
            _faults(file.data),
        )
        number = len(self.batches)
        if number in self.failing:
            batch.errors.append({"code": self.failing[number], "message": "no", "line": None})
        self.batches[batch.id] = batch
        self.seen.append(file.data)
        self.totals.append(batch.total)
        self.creations += 1
        if self.creations - 1 in self.lost_creations:
            raise Lost
        return self._shown(batch)

    def _listed(self, query: Json) -> Any:
        listed = [self._shown(one) for one in reversed(self.batches.values())]
        if "after" in query:
            ids = [one["id"] for one in listed]
            listed = listed[ids.index(query["after"]) + 1 :]
        page = listed[: int(query.get("limit", 20))]
        return {"object": "list", "data": page, "has_more": len(page) < len(listed)}

    def _shown(self, batch: Batch) -> Json:
        status = self._status(batch)
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": ENDPOINT,
            "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
            "input_file_id": batch.file,
            "completion_window": batch.window,
            "status": status,
            "output_file_id": batch.output,
            "error_file_id": batch.error,
            "created_at": 1,
            "metadata": batch.metadata,
            "request_counts": {
                "total": batch.total,
                "completed": batch.done,
                "failed": batch.failed,
            },
        }

    def _status(self, batch: Batch) -> str:
        if batch.errors:
            return "failed"
        share = (time.monotonic() - batch.created) / max(self.takes_s, 1e-9)
        if not batch.over and (share >= 1 or batch.cancelled):
            self._carry_out(batch)
        if batch.over:
            ended = "expired" if batch.expired else "completed"
            return "cancelled" if batch.cancelled else ended
        batch.done = int(batch.total * share)
        return "validating" if share < 0.2 else "in_progress" if share < 0.8 else "finalizing"

    def _carry_out(self, batch: Batch) -> None:
        """Carry out the calls, in any order, until it expires or is cancelled."""
        lines = [json.loads(line) for line in self.files[batch.file].data.splitlines()]
        self._random.shuffle(lines)
        lost = self.expiring.get(list(self.batches).index(batch.id), 0.0)
        batch.expired = lost > 0
        until = 0 if batch.cancelled else len(lines) - int(len(lines) * lost)
        good, bad = [], []
        for place, line in enumerate(lines):
            call = {"id": f"batch_req_{place}", "custom_id": line["custom_id"], "error": None}
            if place >= until:
                code = "batch_cancelled" if batch.cancelled else "batch_expired"
                told = {"code": code, "message": "This request could not be executed in time."}
                bad.append({**call, "response": None, "error": told})
                continue
            self.carried_out[line["custom_id"]] += 1
            reply = self.handler(line["body"], place, {})
            assert isinstance(reply, Reply)
            response = {"status_code": reply.status, "request_id": "r", "body": reply.body}
            (good if reply.status == 200 else bad).append({**call, "response": response})
        batch.done, batch.failed, batch.over = len(good), len(bad), True
        batch.output = self._results(good, "output")
        batch.error = self._results(bad, "error")

    def _results(self, lines: list[Json], kind: str) -> str | None:
        if not lines:
            return None
        data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        return self._made(f"{kind}.jsonl", "batch_output", data).id


def _faults(data: bytes) -> list[Json]:
    """What the validation of a file finds."""
    lines = [json.loads(line) for line in data.splitlines()]
    ids = {line["custom_id"] for line in lines}
    models = {line["body"]["model"] for line in lines}
    routes = {(line["method"], line["url"]) for line in lines}
    faults = {
        "empty_file": not lines,
        "too_many_tasks": len(lines) > LINES,
        "duplicate_custom_id": len(ids) < len(lines),
        "mismatched_model": len(models) > 1,
        "invalid_url": routes != {("POST", ENDPOINT)},
    }
    return [
        {"code": code, "message": code, "line": None} for code, is_so in faults.items() if is_so
    ]


def _handler_of(double: BatchDouble) -> type[BaseHTTPRequestHandler]:
    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two writes, and the second would wait 40 ms for the client to say that
        # the first has come.
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            # A client that was killed is gone.
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, value = double.answer(self.command, self.path, body, self.headers)
            except Refused as refused:
                status, value = refused.status, error(str(refused))
            except Lost:
                self.close_connection = True
                return
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, *_args: Any) -> None:
            """Nothing is logged."""

    return Connection
