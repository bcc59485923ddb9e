"""`make demo`: a server with the demonstration model, one sample decision, and what to try next."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import IO, Any

from svc.assets import folder
from svc.settings import Settings

# The time for the server to print its address, and again to answer there.
START_S = 30.0
# The time for an answer, a little more than the deadline of a request.
ANSWER_S = 130.0
# The time for the server to end, a little more than its own limit for that.
END_S = 40.0
# The pause between two attempts to reach the server.
POLL_S = 0.05
NEXT = {
    "state": "My parcel has not arrived.",
    "questions": {"late": {"type": "noul", "instructions": "Is the parcel late?"}},
}

# The server is on this machine, so that no proxy of the environment is used.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class TourError(Exception):
    """The server did not start or did not answer."""


def main() -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="svc-demo-") as directory:
        server = start(f"{directory}/svc.db")
        try:
            assert server.stdout is not None
            url = wait(server.stdout)
            show(url)
            return server.wait()
        except KeyboardInterrupt:
            print("\nstopping")
            return 0
        except (TourError, OSError) as error:
            print(f"make demo: {error}", file=sys.stderr)
            return 1
        finally:
            end(server)


def start(database: str) -> subprocess.Popen[str]:
    """`svc serve --demo` on the usual port, or on a free one where that is taken.

    It has its own session, so that Ctrl-C reaches only this process, which then ends the server.
    """
    command = [sys.executable, "-m", "svc.cli.main", "serve", "--demo"]
    command += ["--addr", f"{Settings().host}:{_port()}", "--db", database]
    environment = {"SVC_LOG_LEVEL": "warning", **os.environ, "SVC_MODEL": ""}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def _port() -> int:
    usual = Settings()
    try:
        socket.create_server((usual.host, usual.port)).close()
    except OSError:
        print(f"port {usual.port} is in use; taking a free one", flush=True)
        return 0
    return usual.port


def wait(output: IO[str]) -> str:
    """The base URL that the server prints, once it answers there. Raises `TourError`."""
    ready, _, _ = select.select([output], [], [], START_S)
    url = output.readline().strip().removeprefix("listening on ") if ready else ""
    deadline = time.monotonic() + START_S
    while url and time.monotonic() < deadline:
        try:
            _fetch(f"{url}/health")
        except OSError:
            time.sleep(POLL_S)
        else:
            return url
    raise TourError("the server did not start")


def show(url: str) -> None:
    """Send the sample to the server at `url`, and print request and answer."""
    sample = json.loads((folder("templates") / "demo_request.json").read_text("utf-8"))
    print(f"\nPOST {url}/v1/decide\n{_pretty(sample)}\n", flush=True)
    answer = _fetch(f"{url}/v1/decide", json.dumps(sample).encode())
    print(f"The answer:\n{_pretty(answer)}\n")
    print(f"Serving on {url} until Ctrl-C, with a model that only compares words. Try next:\n")
    print(f"  curl -s {url}/v1/decide -d '{json.dumps(NEXT)}'\n", flush=True)


def _fetch(url: str, body: bytes | None = None) -> Any:
    """The JSON at `url`; `OSError` for anything but 200."""
    with _opener.open(url, body, ANSWER_S) as response:
        return json.load(response)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def end(server: subprocess.Popen[str]) -> None:
    """Stop the server and wait for its end, for which it has a limit of its own."""
    # A further Ctrl-C must not interrupt the stop that is under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server.terminate()
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
