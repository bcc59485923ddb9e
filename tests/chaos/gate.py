"""A gate for requests that must not be under way at some moments."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Gate:
    """Lets requests through unless it is shut; who shuts it waits for those under way."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way, self._is_shut = 0, False

    @contextlib.contextmanager
    def passing(self) -> Iterator[bool]:
        """For a request: whether it may be made in the block."""
        with self._changed:
            may = not self._is_shut
            self._under_way += may
        try:
            yield may
        finally:
            with self._changed:
                self._under_way -= may
                self._changed.notify_all()

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        """No request is under way in the block."""
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: not self._under_way)
        try:
            yield
        finally:
            with self._changed:
                self._is_shut = False
