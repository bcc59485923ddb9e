"""Threads where the system allows no more of them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading

import pytest

from svc.threads import Threads

# What the limit counts are the threads of a user, and it does not bind root.
NOBODY_ELSE = 54_321
MOST = 5

IN_A_PROCESS_OF_ITS_OWN = f"""
import os, resource, threading
from svc.threads import Threads

resource.setrlimit(resource.RLIMIT_NPROC, ({MOST}, {MOST}))
os.setgid({NOBODY_ELSE})
os.setuid({NOBODY_ELSE})
for begun in (1, 20):
    pool = Threads(20, begun=begun)
    ended = [pool.submit(threading.get_native_id) for _ in range(200)]
    print(len({{one.result(timeout=60) for one in ended}}))
    pool.shutdown()
"""


def test_threads_are_there_from_the_start() -> None:
    before = threading.active_count()
    pool = Threads(20, "made", begun=10)
    assert threading.active_count() == before + 10
    together = threading.Barrier(20)
    assert sorted(pool.map(lambda _: together.wait(60), range(20))) == list(range(20))
    pool.shutdown()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who has no threads yet")
def test_work_waits_for_the_threads_that_there_are_where_no_further_one_is_allowed() -> None:
    command = [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert all(1 <= int(count) < MOST for count in ran.stdout.split())
    assert "work waits for the 4" in ran.stderr
    assert ran.stderr.count("work waits") == 2
    assert resource.getrlimit(resource.RLIMIT_NPROC)[0] != MOST
