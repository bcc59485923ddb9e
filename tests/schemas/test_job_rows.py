"""Rows of a job that came as JSON values are written for many together, and as one by one."""

from __future__ import annotations

import pytest
from marshmallow import ValidationError

from svc.jsontext import Literal, dumps
from svc.schemas.job_rows import checked
from tests.fuzz.inputs import nested


def test_each_of_many_rows_is_written_as_it_would_be_alone() -> None:
    rows = [{"id": str(n), "state": ["é", n, {"x": Literal(f"{n}e400")}]} for n in range(2_501)]
    assert checked(rows).texts == [dumps(row) for row in rows]


def test_of_rows_that_are_written_together_the_one_nested_too_deeply_is_named() -> None:
    rows = [{"id": "a", "state": 1}, {"id": "b", "state": nested(100_000)}, {"id": "c"}]
    with pytest.raises(ValidationError) as refused:
        checked(rows)
    assert refused.value.messages == {
        "2": ["is nested too deeply"],
        "3": {"state": ["is required"]},
    }
