"""Runs over real messages, killed again and again, come to what one uninterrupted run does."""

from __future__ import annotations

import csv
import itertools
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import lines, started, svc
from tests.e2e.serving import WAIT_S

pytestmark = [pytest.mark.data, pytest.mark.slow]

ROWS, KILLS = 400, 20
POLL_S = 0.002  # seconds between two looks at the output
CHANGING = {"id", "latency_ms", "cost_usd"}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    folder = Path(os.environ["SVC_TEST_DATA"])
    with (folder / "banking77-train.csv").open(newline="", encoding="utf-8") as file:
        rows = list(itertools.islice(csv.DictReader(file), 0, 10_000, 10_000 // ROWS))
    intents = dict.fromkeys(row["category"] for row in rows[:150])
    about = {"type": "choice", "instructions": "What is it about?", "options": {}}
    about["options"] = dict.fromkeys(list(intents)[:12], "")
    (tmp_path / "q.json").write_text(json.dumps({"about": about}))
    text = "".join(f"{json.dumps(row['text'])}\n" for row in rows)
    (tmp_path / "in.jsonl").write_text(text)
    return ["map", "--demo", "-q", tmp_path / "q.json", tmp_path / "in.jsonl", "-o"]


def run_until(arguments: list[str | Path], output: Path, size: int) -> None:
    """Kill a run once its output has `size` bytes, and cut a little off, as if inside a write."""
    process = started(*arguments, output)
    end = time.monotonic() + WAIT_S
    while process.poll() is None and (not output.exists() or output.stat().st_size < size):
        assert time.monotonic() < end
        time.sleep(POLL_S)
    process.kill()
    process.communicate()
    if output.exists():
        os.truncate(output, max(0, output.stat().st_size - random.randrange(100)))


def decisions(output: Path) -> list[dict[str, Any]]:
    return [{key: line[key] for key in line.keys() - CHANGING} for line in lines(output)]


def test_killed_at_random_points_it_comes_to_the_same(
    arguments: list[str | Path], tmp_path: Path
) -> None:
    whole, pieces = tmp_path / "whole.jsonl", tmp_path / "pieces.jsonl"
    assert svc(*arguments, whole).returncode == 0
    for size in sorted(random.sample(range(whole.stat().st_size), KILLS)):
        run_until(arguments, pieces, size)
    assert svc(*arguments, pieces).returncode == 0
    assert decisions(pieces) == decisions(whole)
    assert len({line["id"] for line in lines(pieces)}) == len(decisions(whole))
