"""Processes of `svc` that begin with its modules loaded: loading takes 0.6 s of a start's 0.7.

`command` is what to start in place of `python -m svc.cli.main`: a small process that hands its
arguments, environment and files to one that has the modules, where a child takes them over and is
`svc` from its first line to its exit status. It stands for what runs to its end; what gets signals,
does without a stream, or sets a variable that Python itself reads is started as it is.
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
# Run without the packages of the environment, which take longer than all the rest.
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
    """Stands for `svc`, before its arguments."""
    return sys.executable, "-I", "-S", "-c", HAND_OVER, _place()


@cache
def _place() -> str:
    """Where the process listens that has the modules; it ends with this one."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    place = f"{folder.name}/socket"
    started = [sys.executable, "-m", "tests.cli.warm", place]
    process = subprocess.Popen(
        started, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.read()

    def end() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return place


def wait_for_orders(place: str) -> list[str]:
    """In a child of a child of this process: the arguments with which it is to be `svc`."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        os.close(1)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            _take_up_ended()
            there, _ = listener.accept()
            with there:
                if os.fork() == 0:
                    listener.close()
                    return _child_of(there)
    _take_up_ended()
    os._exit(0)


def _take_up_ended() -> None:
    """Leave no child behind as a zombie; its processor time counts as this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _child_of(there: socket.socket) -> list[str]:
    """In the child of this process; this one waits for its end, or for that of who asked."""
    _, files, _, _ = socket.recv_fds(there, 1, 3)
    with there.makefile("rb") as stream:
        arguments, environment, folder = json.loads(stream.readline())
    child = os.fork()
    if child == 0:
        there.close()
        _become(files, environment, folder)
        return list(arguments)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(child)
    if ended not in select.select([there, ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        there.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(files: list[int], environment: dict[str, str], folder: str) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # As they are where PYTHONUNBUFFERED is set.
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
