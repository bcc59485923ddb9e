"""The table of `svc challenger list`."""

from __future__ import annotations

from typing import Any

from svc import jsontext
from svc.cli.tables import dollars, moment, percent, table
from svc.jsontext import JsonObject
from svc.records import Challenger
from svc.store import NANO, BudgetState, ChallengerRecord

_HEAD = ("project", "question", "challenger", "state", "since", "share", "cap", "spent", "left out")
# The places of the columns that hold words.
_TEXT = {0, 1, 2, 3, 4, 6}

# A challenger and its budget, if it has one.
Listed = tuple[ChallengerRecord, BudgetState | None]


def shown(found: list[Listed]) -> list[str]:
    """The lines of the table."""
    return table(_HEAD, [_row(*one) for one in found], _TEXT)


def named(challenger: Challenger) -> str:
    """A challenger in words."""
    model = challenger.model or "the same model"
    return model if challenger.wording is None else f"{model} in another wording"


def as_json(record: ChallengerRecord, cap: BudgetState | None) -> JsonObject:
    """A challenger as JSON."""
    challenger = record.challenger
    return {
        "id": challenger.id,
        "project": challenger.project,
        "question": challenger.key,
        "model": challenger.model,
        "wording": None if challenger.wording is None else _parsed(challenger.wording),
        "share": challenger.share,
        "state": record.state,
        "created_at": record.created_at,
        "promoted_at": record.promoted_at,
        "dropped": record.dropped,
        "refused": record.refused,
        "limit_usd": None if cap is None else cap.budget.limit / NANO,
        "per": None if cap is None else cap.budget.per,
        "spent_usd": None if cap is None else cap.spent / NANO,
    }


def _parsed(text: str) -> Any:
    return jsontext.loads(text.encode())


def _row(record: ChallengerRecord, cap: BudgetState | None) -> tuple[str, ...]:
    challenger = record.challenger
    return (
        challenger.project,
        challenger.key,
        named(challenger),
        record.state,
        moment(record.promoted_at or record.created_at),
        percent(challenger.share),
        "-" if cap is None else f"{dollars(cap.budget.limit / NANO)} a {cap.budget.per}",
        "-" if cap is None else dollars(cap.spent / NANO),
        str(record.dropped + record.refused),
    )
