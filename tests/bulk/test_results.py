"""Results of a batch are read without pauses only as far as ordinary ones are so long."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from svc.bulk.results import downloaded
from svc.providers import BatchClient

LINE = json.dumps({"custom_id": "a" * 32, "response": {"status_code": 200, "body": {}}}).encode()


class Files:
    """A provider whose file of results came in so many bytes; notes what each line may take."""

    def __init__(self, lines: int, came: int) -> None:
        self._lines, self._came = lines, came
        self.usual_s: list[float] = []

    def download(self, file_id: str, calls: int, came: Callable[[int], object]) -> Iterator[bytes]:
        came(self._came)
        yield (LINE + b"\n") * self._lines

    def read_slowly(self, read: Callable[[], Any], usual_s: float) -> Any:
        self.usual_s.append(usual_s)
        return read()


def usual(lines: int, came: int) -> float:
    """The seconds that all lines may take without pauses; all of them are read."""
    files = Files(lines, came)
    assert len(list(downloaded(cast(BatchClient, files), "f", lines, "b"))) == lines
    return sum(files.usual_s)


def test_results_that_are_packed_well_are_read_without_pauses() -> None:
    size = 100 * len(LINE)
    assert usual(100, came=size) == pytest.approx(size * 1e-7)
    assert usual(100, came=size // 20 + 1) == pytest.approx(size * 1e-7, rel=0.01)


def test_of_results_that_come_in_hardly_any_bytes_most_have_pauses() -> None:
    size = 100 * len(LINE)
    assert usual(100, came=size // 1_000) == pytest.approx(size / 1_000 * 20 * 1e-7, rel=0.1)
