from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.demo import DemoServer


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where the server's database goes."""
    return tmp_path / "svc.db"


@pytest.fixture(scope="package")
def demo() -> Iterator[DemoServer]:
    """The demonstration model."""
    with DemoServer() as server:
        yield server
