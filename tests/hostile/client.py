"""A hostile client with a model of its own, in a process of its own.

    python -m tests.hostile.client

So who measures is not held up by it. It writes the URL of its model, reads a line of JSON with the
server's `url`, its `key` and the name of a `load`, and sends that load on `CALLERS` connections
until its standard input ends. Then it writes how often it was answered with which status, as JSON.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import requests

from tests.e2e.serving import ROOT
from tests.hostile.loads import LOADS, SLOW_S, Load, Request
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, reply_to

CALLERS = 20

# The pause after an answer that says that the caller asks too much, in seconds.
REFUSED_PAUSE_S = 0.3


class Client:
    """The process of a hostile client, from the side of who starts it; a context manager."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.client"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self.provider_url = self._from.readline().strip()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()

    def begin(self, url: str, key: str, load: str) -> None:
        """Have it send a load to a server."""
        self._to.write(json.dumps({"url": url, "key": key, "load": load}) + "\n")
        self._to.flush()

    def end(self) -> Mapping[str, int]:
        """Have it stop; how often it was answered with which status."""
        self._to.close()
        answered: dict[str, int] = json.loads(self._from.readline() or "{}")
        return answered


def _reply(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    if "questions" in body:
        answer = {"type": "predicate", "probability": 0.5}
        answers = [answer] * len(body["questions"])
        return Reply({"model": "m", "answers": answers, "usage": {}})
    return Reply(reply_to(PREFERS_CATS, body))


def _send(url: str, key: str, load: Load, numbers: itertools.count[int], got: Counter[str]) -> None:
    """One caller; refused ones come back soon."""
    pause, authorization = threading.Event(), {"Authorization": f"Bearer {key}"}
    with requests.Session() as session:
        while True:
            request = load(next(numbers))
            headers = {**dict(request.headers), **(authorization if request.known else {})}
            with contextlib.suppress(requests.RequestException):
                status = _status(session, url, request, headers)
                got[str(status)] += 1
                if status == requests.codes.too_many_requests:
                    pause.wait(REFUSED_PAUSE_S)


def _status(
    session: requests.Session, url: str, request: Request, headers: Mapping[str, str]
) -> int:
    method = "POST" if request.body else "GET"
    typed = {"Content-Type": "application/json", **headers}
    whole = session.request(
        method, url + request.path, data=request.body, headers=typed, timeout=2 * SLOW_S
    )
    return whole.status_code


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Send what standard input says until that ends; all threads end with the process."""
    with ScriptedProvider(_reply) as provider:
        _say(provider.url)
        told = json.loads(sys.stdin.readline())
        numbers, got = itertools.count(), Counter[str]()
        arguments = (told["url"], told["key"], LOADS[told["load"]], numbers, got)
        for _ in range(CALLERS):
            threading.Thread(target=_send, args=arguments, daemon=True).start()
        sys.stdin.read()
        _say(json.dumps(got))
        os._exit(0)


if __name__ == "__main__":
    main()
