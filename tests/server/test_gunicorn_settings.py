from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from gunicorn.config import Config

from svc import limits
from svc.server import gunicorn_settings

ROOT = Path(__file__).parents[2]


def test_both_ways_of_serving_have_the_same_settings() -> None:
    known = Config().settings
    ours = {name: value for name, value in vars(gunicorn_settings).items() if name in known}
    file = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
    theirs = {name: value for name, value in file.items() if name in known}
    for settings in (ours, theirs):
        del settings["on_starting"]
    assert ours == theirs
    assert ours["threads"] == limits.REQUEST_THREADS >= 200


@pytest.mark.parametrize(("text", "workers"), [("3", 3), ("", 1), ("none", 1)])
def test_gunicorn_starts_the_workers_that_the_variable_says(
    monkeypatch: pytest.MonkeyPatch, text: str, workers: int
) -> None:
    monkeypatch.setenv("SVC_WORKERS", text)
    assert runpy.run_path(str(ROOT / "gunicorn.conf.py"))["workers"] == workers


def test_the_collector_passes_over_what_workers_share_with_their_master() -> None:
    script = (
        "import gc; from types import SimpleNamespace as Master; "
        "from svc.server import gunicorn_settings as own; "
        "own.when_ready(Master(manage_workers=0, reload=0, reexec=0)); "
        "print(gc.get_freeze_count() > len(gc.get_objects()))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
