"""Budgets in dollars as calls meet them: reserved before a call, settled by its cost after it."""

from __future__ import annotations

from svc.spending.purses import Purse, PurseOf, Purses, Settle, nobody_pays
from svc.spending.slices import Lack, Slices

__all__ = ["Lack", "Purse", "PurseOf", "Purses", "Settle", "Slices", "nobody_pays"]
