"""The examples of docs/command-line.md are run in their order, and print what stands under them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.serving import ROOT, WAIT_S, Server, environment

PAGE = ROOT / "docs" / "command-line.md"
EXAMPLE = re.compile(r"```bash\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.S)
_PASSING = re.compile(r"dec_\w+|\d+ s, [\d.]+/(?:s|min)|[\d.]+ ms")


def test_the_examples_print_what_stands_under_them(tmp_path: Path) -> None:
    binaries = Path(sys.executable).parent
    with Server(tmp_path / "svc.db", "--demo") as server:
        settings = {"PATH": f"{binaries}:{os.environ['PATH']}", "COLUMNS": "100"}
        for command, printed in EXAMPLE.findall(PAGE.read_text("utf-8")):
            ended = subprocess.run(
                ["bash", "-c", command.replace("http://127.0.0.1:7777", server.url)],
                cwd=tmp_path,
                env=environment(**settings),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=WAIT_S,
            )
            assert _settled(ended.stdout) == _settled(printed), command


def _settled(printed: str) -> str:
    """What is printed without ids and durations, which differ from run to run."""
    return _PASSING.sub("…", printed)
