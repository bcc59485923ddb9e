"""Folders for engines, and what stands behind their services."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: Ray's sockets lie in it, whose paths may have 107 characters."""
    path = Path(tempfile.mkdtemp(prefix="svc-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
