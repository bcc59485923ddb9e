"""What many decisions will take, as a program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Forecast:
    """What it takes to decide many rows, at most.

    `fields` holds everything that the service said: what was looked at, and each model by itself.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    @property
    def rows(self) -> int:
        """How many of the rows can be asked about, as far as the sample tells."""
        return int(self.fields["asked"])

    @property
    def calls(self) -> int:
        """The calls of all models together."""
        return int(self.fields["calls"])

    @property
    def minutes(self) -> float | None:
        """How long they take at the rates of the providers; None where none has a rate."""
        return _amount(self.fields["minutes"])

    @property
    def cost_usd(self) -> float | None:
        """Dollars of all models together; None where a price is not known."""
        return _amount(self.fields["cost_usd"])

    def __repr__(self) -> str:
        minutes = "no rate" if self.minutes is None else f"{self.minutes:,.1f} minutes"
        cost = "no price" if self.cost_usd is None else f"${self.cost_usd:,.2f}"
        return f"Forecast({self.rows:,} rows, {self.calls:,} calls, {minutes}, {cost})"


def _amount(value: Any) -> float | None:
    return None if value is None else float(value)
