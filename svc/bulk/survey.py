"""What a table's rows will take: each part of it is looked at where it lies, and a service asked.

What is known of a part is a text, so that engines carry it from their workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from svc.bulk.columns import BadRow
from svc.bulk.rows import Asking, read_row
from svc.bulk.sampling import drawn, sample
from svc.client import Client, Forecast


def surveyed(asked: Asking, columns: Mapping[str, Sequence[Any]]) -> str:
    """How many rows of a part can be sent, and some of them, by the columns of `Asking.read`."""
    rows = []
    for row in zip(*(columns[name] for name in asked.read), strict=True):
        try:
            _, state = read_row(asked, row)
        except BadRow:
            # It costs nothing: its failure is a value.
            continue
        # As a text, by which a number is the same in every file.
        rows.append((str(row[0]), state))
    return json.dumps([len(rows), drawn(rows)])


def forecast_of(asked: Asking, parts: Iterable[str]) -> Forecast:
    """What the first of the services says about the rows of all parts. Raises `ServiceError`."""
    rows, found = 0, list[tuple[str, Any]]()
    for part in parts:
        count, some = json.loads(part)
        rows += count
        found = drawn([*found, *some])
    with Client(asked.urls[0], asked.api_keys[0].reveal(), asked.project) as client:
        return client.forecast(sample(found), asked.questions, rows=rows, **asked.options)
