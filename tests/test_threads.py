"""Threads where the system allows no more of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# What the limit counts are the threads of a user, and it does not bind root.
NOBODY_ELSE = 54_321
MOST = 5

IN_A_PROCESS_OF_ITS_OWN = f"""
import os, resource, threading
from svc.threads import Threads

resource.setrlimit(resource.RLIMIT_NPROC, ({MOST}, {MOST}))
os.setgid({NOBODY_ELSE})
os.setuid({NOBODY_ELSE})
pool = Threads(20, "test")
# Three more than the first one come up beside this thread.
together = threading.Barrier({MOST} - 1)
for _ in range(2):
    ended = [pool.submit(together.wait, 60) for _ in range(5 * ({MOST} - 1))]
    assert all(one.result(timeout=60) < {MOST} - 1 for one in ended)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who has no threads yet")
def test_work_waits_for_the_threads_that_there_are_where_no_further_one_is_allowed() -> None:
    command = [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("work waits for the 4 that there are") == 1
