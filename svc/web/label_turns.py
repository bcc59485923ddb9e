"""The turns in which labels are stored."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

from svc.costly import CostlyWork
from svc.deadline import Deadline
from svc.sharing import NamedLocks
from svc.web.decorators import RESTS_OF_STORED, USUAL_S

# One label costs too little for others to notice. After more, whose decisions may be long, a key
# waits twice as long again.
FEW_LABELS = 1
_PAUSE = 2.0


class LabelTurns:
    """A key has many labels stored by one worker at a time.

    All others wait for each transaction, and would wait for one of each worker.
    """

    def __init__(self, locks: NamedLocks) -> None:
        """`locks` are those of all workers."""
        self._locks = locks
        self._storing = CostlyWork(FEW_LABELS, pause=_PAUSE, rests=RESTS_OF_STORED)
        # To read a long decision takes 50 ms, and to fit a first calibrator up to 200.
        self._labelling = CostlyWork(small=0, unnoticed_s=USUAL_S, rests=RESTS_OF_STORED)

    def of_one(
        self, key_id: str | None, deadline: Deadline
    ) -> contextlib.AbstractContextManager[None]:
        """Inside the block a single label may be. Raises `Timeout` at the deadline."""
        return self._labelling.turn(key_id, 1, deadline)

    @contextlib.contextmanager
    def of_many(self, key_id: str | None, labels: int, deadline: Deadline) -> Iterator[None]:
        """Inside the block so many labels may be stored; a single one waits for nothing here.

        Raises `Timeout` at the deadline.
        """
        if labels <= FEW_LABELS:
            yield
            return
        name = hashlib.sha256(f"labels of {key_id}".encode()).digest()
        # Other workers wait through the key's pause, too, which the turn begins with.
        with self._locks.hold(name, deadline), self._storing.turn(key_id, labels, deadline):
            yield
