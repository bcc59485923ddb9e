"""Threads where the system allows no more of them."""

from __future__ import annotations

from tests.limited import ONLY_ROOT, errors_of

MOST = 5

SCRIPT = f"""
import threading
from svc.threads import Threads
from tests.limited import limit_to

limit_to({MOST})
pool = Threads(20, "test")
# Three more than the first one come up beside this thread.
together = threading.Barrier({MOST} - 1)
for _ in range(2):
    ended = [pool.submit(together.wait, 60) for _ in range(5 * ({MOST} - 1))]
    assert all(one.result(timeout=60) < {MOST} - 1 for one in ended)
"""


@ONLY_ROOT
def test_work_waits_for_the_threads_that_there_are_where_no_further_one_is_allowed() -> None:
    assert errors_of(SCRIPT).count("work waits for the 4 that there are") == 1
