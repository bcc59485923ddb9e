"""Runs in batches of a provider, killed again and again: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.batching import BatchDouble
from tests.cli.processes import lines, started
from tests.cli.test_map_batches import Run, said, steady

pytestmark = pytest.mark.slow

ROWS, KILLS = 1_500, 20


def test_killed_at_random_points_nothing_is_lost_and_nothing_paid_twice(tmp_path: Path) -> None:
    with BatchDouble(said, takes_s=1.0) as double:
        run = Run(tmp_path, double)
        run.write([f"Parcel {number} is late." for number in range(ROWS)])
        double.expiring = dict.fromkeys(range(2), 0.3)
        kills = 0
        while kills < KILLS:
            process = started(*run.arguments("--provider-batch"), **run.settings)
            time.sleep(random.uniform(0.3, 1.2))
            if process.poll() is not None:
                process.communicate()
                break
            process.kill()
            process.communicate()
            kills += 1
            if random.random() < 0.5:
                double.lost_creations.add(double.creations)
                double.lost_uploads.add(double.uploads)
        ended = run.map()
        assert ended.exit_code == 0, ended.stderr
        assert kills >= 5
        assert set(double.carried_out.values()) == {1} and len(double.carried_out) == 2 * ROWS
        assert steady(lines(run.output)) == steady(run.directly())
        assert not run.book.exists()
