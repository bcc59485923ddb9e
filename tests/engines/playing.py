"""How the programs of `programs.py` begin and end; they have nothing of the server at hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Found = dict[str, Any]


def play(scenarios: dict[str, Callable[..., Found]]) -> None:
    """Play the scenario that the command line names."""
    name, result, given = sys.argv[1:]
    Path(result).write_text(json.dumps(scenarios[name](**json.loads(given))))
