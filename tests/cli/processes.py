"""Commands as a user runs them: `svc` in a process of its own."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from svc.cli.main import main
from tests.cli import warm
from tests.e2e.serving import ROOT, WAIT_S, environment
from tests.scripted import Reply, completion

SVC = (sys.executable, "-m", "svc.cli.main")
YES = Reply(completion("yes", [{"yes": 0.9, "no": 0.1}]))  # to one noul question
MODEL = "@own/m"
NOUL = {"late": {"type": "noul", "instructions": "Is the parcel late?"}}


def started(*arguments: str | Path, **settings: str) -> subprocess.Popen[bytes]:
    """`svc` as it runs, its outputs in pipes; a process group of its own."""
    return subprocess.Popen(
        [*SVC, *map(str, arguments)],
        cwd=ROOT,
        env=environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def svc(
    *arguments: str | Path, stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """`svc` to its end."""
    ended = subprocess.run(
        [*warm.command(), *map(str, arguments)],
        cwd=ROOT,
        env=environment(**settings),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    return ended


def inside(*arguments: str | Path, stdin: str = "", **settings: str) -> Result:
    """`svc` to its end in this process, for what needs no process of its own."""
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("SVC_")}
    runner = CliRunner(env={**clean, **settings})
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in ending}
    root = logging.getLogger()
    logged, level = root.handlers[:], root.level
    try:
        ended = runner.invoke(main, list(map(str, arguments)), input=stdin, prog_name="svc")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        root.handlers[:] = logged
        root.setLevel(level)
    assert "svc itself failed" not in ended.stderr, ended.stderr
    return ended


def shell(script: str, *arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """A shell script to its end, in which "$@" is `svc` with these arguments."""
    ended = subprocess.run(
        ["bash", "-c", script, "bash", *SVC, *map(str, arguments)],
        cwd=ROOT,
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    return ended


def lines(path: Path) -> list[Any]:
    """The values of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
