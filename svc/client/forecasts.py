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
        self._rows, self._calls = int(fields["asked"]), int(fields["calls"])
        self._minutes, self._cost_usd = _amount(fields["minutes"]), _amount(fields["cost_usd"])

    @property
    def rows(self) -> int:
        """How many of the rows can be asked about, as far as the sample tells."""
        return self._rows

    @property
    def calls(self) -> int:
        """The calls of all models together."""
        return self._calls

    @property
    def minutes(self) -> float | None:
        """How long they take at the rates of the providers; None where none has a rate."""
        return self._minutes

    @property
    def cost_usd(self) -> float | None:
        """Dollars of all models together; None where a price is not known."""
        return self._cost_usd

    def __repr__(self) -> str:
        minutes = "no rate" if self.minutes is None else f"{self.minutes:,.1f} minutes"
        cost = "no price" if self.cost_usd is None else f"${self.cost_usd:,.2f}"
        return f"Forecast({self.rows:,} rows, {self.calls:,} calls, {minutes}, {cost})"


def _amount(value: Any) -> float | None:
    return None if value is None else float(value)
