"""Rows through Ray Data, for `engines.py`: `python -m benchmarks.ray_rows URL ROWS FOLDER`.

A third of the rows is answered by a rule, a third by the cache, and a third by a model. It prints
how many came back, how many of them failed, and how many a second from the first block to the last.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import ray

from svc.bulk.ray import decide
from svc.client import Choice

BLOCK_ROWS = 1_000
ACTORS = 2
RULE, CACHE, MODEL = "rule", "cache", "model"
TEXT = "I was charged twice for my order last week. Please refund it today."
QUESTION = Choice(
    "What is the ticket about?",
    {"billing": "Charges, refunds, invoices", "shipping": "Where an order is"},
    more={"rules": [{"if": {"kind": RULE}, "answer": "billing"}]},
)


def text(kind: str, row: object) -> str:
    """The text of a row, which all rows that the cache answers share."""
    return TEXT if kind == CACHE else f"Ticket {row}: {TEXT}"


def _rows(batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    ids = batch["id"].tolist()
    kinds = [(RULE, CACHE, MODEL)[row % 3] for row in ids]
    texts = [text(kind, row) for kind, row in zip(kinds, ids, strict=True)]
    return {"id": ids, "kind": kinds, "text": texts}


def main(url: str, rows: int, folder: str) -> None:
    ray.init(num_cpus=ACTORS, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.range(rows, override_num_blocks=max(2, rows // BLOCK_ROWS))
    decided = decide(
        dataset.map_batches(_rows),
        {"category": QUESTION},
        state=["kind", "text"],
        row_id="id",
        url=url,
        more={"debias": False},
        actors=ACTORS,
    )
    sizes, times, failed = [], [], 0
    for block in decided.iter_batches(batch_format="pyarrow", batch_size=None):
        sizes.append(len(block))
        times.append(time.perf_counter())
        failed += len(block) - block.column("error").null_count
    # The actors' start, and the rows that came with it, count for nothing.
    rate = sum(sizes[1:]) / (times[-1] - times[0])
    print(json.dumps({"came": sum(sizes), "failed": failed, "rate": rate}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
