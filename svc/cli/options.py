"""How several options are given to a command at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def with_options(options: Sequence[Callable[[Any], Any]], command: Any) -> Any:
    """The command with these options, which its help shows in their order."""
    for option in reversed(options):
        command = option(command)
    return command
