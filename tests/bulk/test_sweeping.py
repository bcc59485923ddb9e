from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from svc.bulk import sweeping
from svc.store import Database


class Endless:
    """Stands for what deletes: there is always more of the project `a`."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop, self.deleted = stop, ""

    def decisions(self, project: str, most: int) -> bool:
        self._delete(project)
        return project == "a" or self.deleted.count("b") < 3

    def job_rows(self, _project: str) -> sweeping.Step:
        return lambda most: False

    def _delete(self, project: str) -> None:
        self.deleted += project
        if self.deleted.count("b") == 3:
            self.stop.set()
        assert len(self.deleted) < 100, "b has no turn"


def test_a_project_with_much_to_delete_does_not_keep_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "LEAST_REST_S", 0.0)
    stop = threading.Event()
    endless = Endless(stop)
    with contextlib.closing(Database.open(tmp_path / "svc.db")) as database:
        sweeping._sweep(endless, database, ["a", "b"], stop)  # type: ignore[arg-type]
    assert endless.deleted == "a" * sweeping.STEPS_IN_TURN + "bbb"
