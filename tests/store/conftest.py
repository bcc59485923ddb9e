from pathlib import Path

import pytest

from svc.store.database import Database
from tests.store.copies import copied


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "svc.db"


@pytest.fixture
def database(path: Path):
    opened = Database.open(copied(path))
    yield opened
    opened.close()
