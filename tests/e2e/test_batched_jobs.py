"""Jobs in batches of a provider on a really started server, whose runner is killed at any time."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.batching import BatchDouble
from tests.bulk.test_batched_jobs import NOUL, said, steady
from tests.e2e.serving import Server
from tests.e2e.test_jobs import (
    assert_each_row_once,
    done,
    job,
    kill_keeper,
    kill_runner,
    results,
    submitted,
)
from tests.store.holding import until

pytestmark = pytest.mark.slow

ROWS, KILLS = 600, 8


def test_killed_at_random_points_nothing_is_lost_and_nothing_paid_twice(db: Path) -> None:
    with BatchDouble(said, takes_s=2.0) as double:
        double.expiring = dict.fromkeys(range(2), 0.3)
        settings = {
            "SVC_PROVIDER_OWN_URL": double.url,
            "SVC_PROVIDER_OWN_BATCH": "1",
            "SVC_MODEL": "@own/m",
            "SVC_BATCH_POLL_S": "0.1",
            "SVC_MASTER_KEY": "for jobs",
            "SVC_CACHE_SIZE": "0",
        }
        given = {"questions": NOUL, "debias": True}
        kills = 0
        with Server(db, **settings) as server:
            job_id = submitted(server, ROWS, batch="provider", **given)
            while job(server, job_id)["status"] != "done" and kills < KILLS:
                time.sleep(random.uniform(0.2, 4.0))
                kills += random.choice([kill_runner, kill_runner, kill_keeper])(server)
                if random.random() < 0.5:
                    double.lost_creations.add(double.creations)
                    double.lost_uploads.add(double.uploads)
            found = done(server, job_id, 240.0)
            lines = results(server, job_id)
            until(lambda: not list(Path(f"{db}.spool").glob("book_*")))
            assert_each_row_once(db, lines, ROWS)
            batched = dict(double.carried_out)
            directly = submitted(server, ROWS, **given)
            done(server, directly, 240.0)
            assert steady(results(server, directly)) == steady(lines)
            assert server.stop() == 0
    assert kills > 2 and (found["answered"], found["failed"]) == (ROWS, 0)
    assert set(batched.values()) == {1}
    # Where it was killed before it had learnt how the model is asked, it asked about another row.
    assert 2 * (ROWS - kills - 1) <= len(batched) <= 2 * (ROWS - 1)
