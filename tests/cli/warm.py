"""Runs `svc` in forks of a process that has loaded its modules: these take 0.6 s of a start's 0.7.

`command` replaces `python -m svc.cli.main`. It starts a small process that sends its arguments,
environment, folder and standard streams over a socket to the process with the modules. A fork of
that one takes them over, runs `svc`, and its exit status becomes that of the small process.

It is for commands that run to their end. A test that sends signals, closes a stream, or sets a
variable that Python itself reads has to start `svc` without it.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAIN = "svc.cli.main"
# The small process. It runs without site-packages, whose start takes longer than all the rest.
HAND_OVER = r"""
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect(sys.argv[1])
    socket.send_fds(there, [b"."], [0, 1, 2])
    order = [sys.argv[2:], dict(os.environ), os.getcwd()]
    there.sendall(json.dumps(order).encode() + b"\n")
    status = int(there.recv(16) or 70)
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def command() -> tuple[str, ...]:
    """What to start instead of `svc`; its arguments follow."""
    return sys.executable, "-I", "-S", "-c", HAND_OVER, _socket_path()


@cache
def _socket_path() -> str:
    """Start the process that has the modules; where it listens. It ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    path = f"{folder.name}/socket"
    started = [sys.executable, "-m", "tests.cli.warm", path]
    process = subprocess.Popen(
        started, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    assert process.stdin is not None and process.stdout is not None
    # It closes its output once it listens.
    process.stdout.read()

    def end() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return path


def wait_for_orders(path: str) -> list[str]:
    """Serve until standard input is closed. Returns in forks alone: the arguments of their `svc`.

    A connection has a child, which waits for a child of its own that becomes `svc`.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        os.close(1)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            _reap()
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    return _serve(connection)
    _reap()
    os._exit(0)


def _reap() -> None:
    """Leave no ended child as a zombie; its processor time then counts as this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(connection: socket.socket) -> list[str]:
    """Fork, and return the arguments there; the parent sends the child's exit status, and exits.

    The child is killed where the small process ends before it.
    """
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as stream:
        arguments, environment, folder = json.loads(stream.readline())
    child = os.fork()
    if child == 0:
        connection.close()
        _take_over(files, environment, folder)
        return list(arguments)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    if ended not in select.select([connection, ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _take_over(files: list[int], environment: dict[str, str], folder: str) -> None:
    """Use the streams, the environment and the folder of the small process."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # Unbuffered, as with PYTHONUNBUFFERED.
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), write_through=True)
    errors = io.FileIO(2, "wb", closefd=False)
    sys.stderr = io.TextIOWrapper(errors, errors="backslashreplace", write_through=True)


def main() -> None:
    package = import_module("svc.cli")
    for module in pkgutil.iter_modules(package.__path__, "svc.cli."):
        if module.name != MAIN:
            import_module(module.name)
    gc.freeze()
    arguments = wait_for_orders(sys.argv[1])
    sys.argv = [MAIN, *arguments]
    runpy.run_module(MAIN, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
