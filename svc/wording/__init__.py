"""Faults of wording, found in questions as they stand: no model is asked.

`faults.py` is the table of all of them. Those that are about words know English ones; faults of
options, levels, bounds, thresholds, examples and conditions are found in any language.
"""

from __future__ import annotations

from svc.wording.faults import FAULTS
from svc.wording.lint import Finding, lint

__all__ = ["FAULTS", "Finding", "lint"]
