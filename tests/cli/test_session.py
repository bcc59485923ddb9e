"""The README's session from an eval set to production, as it stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import SVC
from tests.e2e.serving import ROOT, WAIT_S, Server, environment
from tests.readme import README

STEP = re.compile(r"```console\n\$ ([^\n]+)\n(?!\$ )(.+?)```", re.S)  # a command and its output
PASSING = (  # what differs from run to run, and what the widths of columns make of it
    (re.compile(r"\d+ ms"), "N ms"),
    (re.compile(r'dec_[^"]+'), "dec_"),
    (re.compile(r'("latency_ms":)[\d.]+'), r"\1N"),
    (re.compile(r"[ \t]+"), " "),
)


def settled(text: str) -> list[str]:
    for pattern, with_what in PASSING:
        text = pattern.sub(with_what, text)
    return [line.strip() for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("session")
    shutil.copytree(ROOT / "evals", made / "evals")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with Server(folder / "svc.db", "--demo") as running:
        yield running


def run(command: str, folder: Path) -> str:
    """What a shell in the folder prints, both outputs in one."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=4 * WAIT_S,
        check=True,
    )
    return done.stdout


def test_the_session_goes_as_it_stands_there(folder: Path, server: Server) -> None:
    steps = STEP.findall(README.read_text("utf-8"))
    assert [command.split()[0:2] for command, _ in steps] == [
        ["svc", "probe"],
        ["svc", "bench"],
        ["svc", "tune"],
        ["python3", "-c"],
    ]
    for command, output in steps:
        own = re.sub(r"^svc ", f"{' '.join(SVC)} ", command)
        own = own.replace("python3 ", f"{sys.executable} ").replace(
            "http://127.0.0.1:7777", server.url
        )
        assert settled(run(own, folder)) == settled(output)
