"""A reader who follows a page: a shell, an interpreter, and a server that runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.docs.pages import PRINTED, ROOT, Block
from tests.e2e.serving import WAIT_S, Server, environment

ADDRESS = "127.0.0.1:7777"
LIMIT_S = 4 * WAIT_S
_MARK = "-- ended with "
# Each block is a file that the shell reads, so that nothing of the page is on its standard input.
_LOOP = f"""while IFS= read -r -u 3 file; do source "$file"; printf '\\n{_MARK}%d\\n' $?; done"""
# What a page calls by these names is what was printed last of the kind.
_LAST = {
    "dec_…": re.compile(r"\bdec_[0-9A-Z]{26}\b"),
    "job_…": re.compile(r"\bjob_[0-9a-f]{24}\b"),
    "key_…": re.compile(r"\bkey_[0-9a-z]{8,}\b"),
    "hook_…": re.compile(r"\bhook_[0-9a-f]{12}\b"),
    "whsec_…": re.compile(r"\bwhsec_[\w+/]{43}="),
    "svc_…": re.compile(r"\bsvc_[\w-]{40,}"),
}
# What differs from run to run, in text and in JSON.
_PASSING = (
    *((pattern, name) for name, pattern in _LAST.items()),
    (re.compile(r"[\d.]+ m?s\b"), "N ms"),
    (re.compile(r"[\d.,]+/(?:s|min)\b"), "N/s"),
    (re.compile(r'("latency_ms":)\s*[\d.]+'), r"\1 12.3"),
    (re.compile(r'("since":)\s*\d+'), r"\1 0"),
    (re.compile(r"\b20\d\d-W\d\d"), "2026-W47"),
    (re.compile(r"\b20\d\d-\d\d-\d\d( \d\d:\d\d)?"), "2026-11-22"),
)


class Session:
    """A context manager around one page: files, commands and programs in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = Server(folder / "svc.db", "--demo", SVC_MASTER_KEY="for jobs")
        self._last: dict[str, str] = {}
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._shell = Shell(self._folder)
        for name in ("evals", "deploy"):
            (self._folder / name).symlink_to(ROOT / name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shell.close()
        self._server.kill()

    def follow(self, block: Block, below: Block | None) -> None:
        """Do what a block says, and compare what comes of it with what stands there."""
        if block.file is not None:
            (self._folder / block.file).write_text(self._own(block.text), "utf-8")
        elif block.language == "bash":
            # A command that fails ends the shell.
            _, output = self._run(f"set -e -o pipefail\n{block.text}")
            _compare(block, output, below)
        elif block.language == "console":
            self._converse(block)
        elif block.language == "python":
            _compare(block, self._interpret(block), below)

    def _converse(self, block: Block) -> None:
        """Run each command of a session in a terminal; one that shows no output must succeed."""
        for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            status, output = self._run(f"set +e\n{command}")
            if expected.strip():
                assert settled(output) == settled(expected), f"{block.place}: {command}\n{output}"
            else:
                assert status == 0, f"{block.place}: {command}\n{output}"

    def _run(self, text: str) -> tuple[int, str]:
        status, output = self._shell.run(self._own(text))
        for name, pattern in _LAST.items():
            if found := pattern.findall(output):
                self._last[name] = found[-1]
        return status, output.replace(self._address, ADDRESS)

    def _interpret(self, block: Block) -> str:
        printed, here = io.StringIO(), Path.cwd()
        program = compile(self._own(block.text), block.place, "exec")
        os.chdir(self._folder)
        try:
            with contextlib.redirect_stdout(printed):
                exec(program, self._names)
        finally:
            os.chdir(here)
        return printed.getvalue()

    @property
    def _address(self) -> str:
        return self._server.url.removeprefix("http://")

    def _own(self, text: str) -> str:
        for name, value in {ADDRESS: self._address, **self._last}.items():
            text = text.replace(name, value)
        return text


class Shell:
    """One bash that runs block after block, so that variables and functions stay."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        programs = folder / ".programs"
        programs.mkdir()
        # The server of the page runs already.
        svc = f'[ "$1" = serve ] && exit 0\nexec {sys.executable} -m svc.cli.main "$@"'
        _program(programs / "svc", svc)
        _program(programs / "python3", f'exec {sys.executable} "$@"')
        reading, writing = os.pipe()
        path = f"{programs}:{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash", "-c", _LOOP.replace("-u 3", f"-u {reading}")],
            cwd=folder,
            env={**environment(), "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=(reading,),
            start_new_session=True,
        )
        os.close(reading)
        self._files = open(writing, "w", encoding="utf-8")  # noqa: SIM115

    def run(self, text: str) -> tuple[int, str]:
        """The status and the output of a script, both streams in one."""
        self._count += 1
        file = self._folder / ".programs" / f"block-{self._count}"
        file.write_text(text, "utf-8")
        print(file, file=self._files, flush=True)
        late = threading.Timer(LIMIT_S, self._kill)
        late.start()
        output = ""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_MARK):
                late.cancel()
                return int(line.removeprefix(_MARK)), output.removesuffix("\n")
            output += line
        late.cancel()
        raise AssertionError(f"the shell ended:\n{output}")

    def close(self) -> None:
        self._files.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait(WAIT_S)

    def _kill(self) -> None:
        """End the shell and whatever it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)


def _compare(block: Block, output: str, below: Block | None) -> None:
    """Hold what was printed against the block right below, if there is one."""
    if below is None or below.above.strip() or below.language not in PRINTED:
        assert '{"error"' not in output, f"{block.place}:\n{output}"
    elif below.language == "json":
        assert plain(json.loads(output)) == plain(json.loads(below.text)), f"{below.place}"
    else:
        assert settled(output) == settled(below.text), f"{below.place}:\n{output}"


def settled(text: str) -> list[str]:
    """The lines of a text with what differs from run to run, and what that does to columns."""
    for pattern, with_what in _PASSING:
        text = pattern.sub(with_what, text)
    lines = [re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def plain(value: Any) -> Any:
    """A JSON value with what differs from run to run settled."""
    return json.loads("".join(settled(json.dumps(value, ensure_ascii=False))))
