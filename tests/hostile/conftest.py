from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def measured(frozen_heap: None) -> None:
    """Most of these tests measure time."""
