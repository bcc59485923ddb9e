"""Small eval sets, and rows as they are scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svc.evals.scoring import Scored

LATE = {"type": "noul", "instructions": "Is the parcel late?"}
TEAM = {
    "type": "choice",
    "instructions": "Which team?",
    "options": {"billing": "Payments", "technical": "Errors"},
}
PEOPLE = {"type": "integer", "instructions": "How many people?", "nullable": True}


def rows(count: int, label: Any = True) -> list[dict[str, Any]]:
    return [{"state": f"Parcel {n} is late", "label": label} for n in range(count)]


def write_set(folder: Path, name: str, question: Any = LATE, rows: Any = ()) -> Path:
    """A set as people write them."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"about": "a test", "question": question, "rows": list(rows)}))
    return path


def scored(label: str, answer: str, confidence: float = 0.8, **other: Any) -> Scored:
    agrees = label == answer
    facts = {"brier": 0.1, "latency_ms": 10.0, "cost_usd": 0.5, "mode": "logprobs", **other}
    return Scored(label=label, answer=answer, agrees=agrees, confidence=confidence, **facts)
