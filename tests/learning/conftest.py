from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(tmp_path / "svc.db")
    yield opened
    opened.close()
