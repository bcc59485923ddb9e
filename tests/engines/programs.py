"""Programs that run on Ray or Spark, in the environment of `requirements.txt` beside this.

A test starts one with a scenario's name and its arguments as JSON, and reads what it found as JSON.
`SVC_ENGINES_PYTHON` names the interpreter.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import requests

from tests.cli.processes import svc
from tests.docs.pages import ENGINES, blocks
from tests.e2e.serving import ROOT, WAIT_S, environment
from tests.engines.playing import Found

PYTHON = "SVC_ENGINES_PYTHON"
RUN_S = 500.0  # seconds for a program: engines take ten of them to start


@functools.cache
def missing(engine: str) -> str:
    """What an engine's tests lack, and cannot run without; empty where they can run."""
    python = os.environ.get(PYTHON, "")
    if not python or not Path(python).exists():
        return f"{PYTHON} names no interpreter"
    look = f"import sys, importlib.util; sys.exit(importlib.util.find_spec({engine!r}) is None)"
    if subprocess.run([python, "-c", look], check=False).returncode:
        return f"{python} has no {engine}"
    if engine == "pyspark" and shutil.which("java") is None:
        return "there is no java (Debian: openjdk-17-jre-headless)"
    return ""


class Program:
    """A scenario in a process of its own, whose engine's files lie in a folder of its own."""

    def __init__(self, engine: str, scenario: str, folder: Path, **given: Any) -> None:
        self._result = folder / "result.json"
        self._words = folder / "output.txt"
        module = f"tests.engines.on_{engine}"
        command = [os.environ[PYTHON], "-m", module, scenario, str(self._result), json.dumps(given)]
        with self._words.open("wb") as words:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                # Left alone, Ray's workers give way to all else on the machine.
                env={**environment(), "PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0"},
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def words(self) -> str:
        """Everything that it and its engine have printed."""
        return self._words.read_text(errors="replace")

    def found(self) -> Found:
        """What it found, once it has ended well."""
        try:
            code = self._process.wait(RUN_S)
        finally:
            # Also what its engine has left behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        assert code == 0, self.words[-5_000:]
        found: Found = json.loads(self._result.read_text())
        return found


def example(module: str, url: str) -> str:
    """The program on the page of many rows that uses the module, asking the service at `url`."""
    found = [one.text for one in blocks(ROOT / "docs/bulk.md") if one.language == ENGINES]
    (text,) = [text for text in found if f"from {module} import" in text]
    return text.replace("http://127.0.0.1:7777", url)


def forecast_of_map(folder: Path, url: str, count: int, missing: int) -> str:
    """What `svc map --dry-run` says of the rows of the scenario `forecasts`."""
    questions, table = folder / "questions.json", folder / "rows.jsonl"
    questions.write_text(
        json.dumps({"cats": {"type": "noul", "instructions": "Is it about cats?"}})
    )
    rows = ({"id": str(n), "text": "word " * (n % 97)} for n in range(count) if n != missing)
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    given = ("--column", "text", "--ref-column", "id", "-q", questions, "-o", folder / "out", table)
    ended = svc("map", "--dry-run", "--url", url, *given)
    assert ended.returncode == 0, ended.stderr
    return str(ended.stdout)


def refusals(url: str, key: str) -> int:
    """How many requests the service at `url` has refused because of a limit."""
    headers = {"Authorization": f"Bearer {key}"}
    said = requests.get(f"{url}/metrics", headers=headers, timeout=WAIT_S).text
    found = re.search(r'^svc_http_responses_total\{status="429"\} (\S+)$', said, re.MULTILINE)
    return int(float(found[1])) if found else 0
