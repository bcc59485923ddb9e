"""A really started server: `svc serve` in a process of its own, asked over HTTP."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import requests

from svc.server.keeper import HOOKS
from svc.server.keeper import NAME as KEEPER
from svc.store import ids

ROOT = Path(__file__).parents[2]
WAIT_S = 30.0  # seconds for a start or a stop, on a busy machine
LOOK_S = 0.02  # seconds between two looks at what has ended
SERVE = (sys.executable, "-m", "svc.cli.main", "serve")
_LISTENING = re.compile(r"listening on (http://\S+)")


def environment(**settings: str) -> dict[str, str]:
    """This process's environment without settings and keys of the user's, and with `settings`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SVC_", "GUNICORN_", "OTEL_")) and not name.endswith("_API_KEY")
    }
    return {**kept, "PYTHONUNBUFFERED": "1", **settings}


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """`svc serve` to its end, for starts that are refused."""
    return subprocess.run(
        [*SERVE, *arguments],
        cwd=ROOT,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


class Server:
    """A context manager: the server answers inside the block, and is gone after it."""

    url: str

    def __init__(self, db: Path, *arguments: str, **settings: str) -> None:
        """`arguments` of `svc serve`, and `settings`: the variables it is started with."""
        self._command = [*SERVE, "--addr", "127.0.0.1:0", "--db", str(db), *arguments]
        self._environment = environment(**settings)
        self._lines: list[str] = []
        self._listening = threading.Event()

    def __enter__(self) -> Self:
        self._start()
        self._listening.wait(WAIT_S)
        try:
            self.get("/health").raise_for_status()
        except (AttributeError, requests.RequestException):
            self.kill()
            raise AssertionError(f"the server did not start:\n{self.log}") from None
        return self

    def _start(self, *pass_fds: int) -> None:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self._reader = threading.Thread(target=self._read, name="server log")
        self._reader.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def workers(self) -> set[int]:
        """The processes that answer requests."""
        return self._children - {self.keeper}

    @property
    def keeper(self) -> int | None:
        """The process that has another one run jobs; None where it has ended."""
        return next((pid for pid in self._children if _name(pid) == KEEPER), None)

    @property
    def runner(self) -> int | None:
        """The process that runs jobs, None while there is none."""
        return self.beside(KEEPER)

    @property
    def hooks_process(self) -> int | None:
        """The process that tells hooks what happens, None while there is none."""
        return self.beside(HOOKS)

    def beside(self, name: str) -> int | None:
        """The process of that name which the keeper has started, None while there is none."""
        children = set() if self.keeper is None else _children(self.keeper)
        return next((pid for pid in children if _name(pid) == name), None)

    @property
    def _children(self) -> set[int]:
        return _children(self._process.pid)

    @property
    def ready_workers(self) -> set[int]:
        """Those whose application is built: from then on they ignore Ctrl-C."""
        return {pid for pid in self.workers if _ignores_interrupts(pid)}

    @property
    def runs(self) -> bool:
        """Whether its first process has not ended."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything it has written to its standard output and error."""
        return "".join(self._lines)

    def post(self, body: Any, path: str = "/v1/decide", timeout: float = 60) -> requests.Response:
        """Post JSON over a connection of its own."""
        return requests.post(self.url + path, json=body, timeout=timeout)

    def get(self, path: str) -> requests.Response:
        return requests.get(self.url + path, timeout=WAIT_S)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to its first process; SIGINT to all, as Ctrl-C in a terminal does."""
        if number == signal.SIGINT:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def wait(self, timeout: float = WAIT_S) -> int:
        """Wait for its end; the exit code."""
        code = self._process.wait(timeout)
        self._reader.join(WAIT_S)
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop and wait; the exit code."""
        self.send(number)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL to all of its processes at once; they cannot clean up."""
        with contextlib.suppress(ProcessLookupError):  # ended already
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()

    def kill_master(self, within_s: float) -> float:
        """SIGKILL to its first process alone; the seconds until all is gone and the port free.

        Raises `AssertionError` where that takes longer than `within_s`.
        """
        workers, place = self.workers, urlsplit(self.url)
        self.send(signal.SIGKILL)
        began = time.monotonic()
        while any(map(_is_alive, workers)):
            assert time.monotonic() < began + within_s, "a worker goes on without its master"
            time.sleep(LOOK_S)
        # The files of a process with many threads are closed when the last of them has ended.
        while not _is_free(place.hostname, place.port):
            assert time.monotonic() < began + within_s, "the port is still taken"
            time.sleep(LOOK_S)
        took_s = time.monotonic() - began
        self.wait()
        return took_s

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self._lines.append(line.decode(errors="replace"))
                if match := _LISTENING.search(self._lines[-1]):
                    self.url = match[1]
                    self._listening.set()
        self._listening.set()


def _children(pid: int) -> set[int]:
    try:
        return {int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except (FileNotFoundError, ProcessLookupError):
        return set()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _is_free(host: str | None, port: int | None) -> bool:
    """Whether somebody else could listen there."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def _is_alive(pid: int) -> bool:
    """Whether there is such a process that has not ended; one without parents stays a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def _ignores_interrupts(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    (ignored,) = re.findall(r"^SigIgn:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(int(ignored, 16) >> (signal.SIGINT - 1) & 1)


class GunicornServer(Server):
    """The same by `gunicorn wsgi:app`, on a socket that is opened here."""

    def __init__(self, db: Path, **settings: str) -> None:
        super().__init__(db, SVC_DB=str(db), **settings)
        self._command = [sys.executable, "-m", "gunicorn", "wsgi:app"]

    def _start(self, *pass_fds: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._command += ["--bind", f"fd://{listener.fileno()}"]
            super()._start(listener.fileno())
        self._listening.set()


def stored(db: Path) -> dict[str, str]:
    """The decisions in a database file, oldest first: the JSON of the answers by decision id."""
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT id, answers FROM decisions ORDER BY seq").fetchall()
    return {ids.text(decision_id): answers for decision_id, answers in rows}
