"""Messages of a command on standard error, and its exit status.

There are also the statuses 0, and 2 for wrong usage, which is click's own.
"""

from __future__ import annotations

import contextlib
import os

import click

from svc.phrases import printable

# Something failed, or not everything was answered.
FAILED = 1
# The usual status after Ctrl-C, which is 128 plus the signal's number.
INTERRUPTED = 130


def coloured() -> bool | None:
    """False where the user wants no colours; None leaves them to whether there is a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def notice(text: str) -> None:
    """Print a line without control characters, also where nobody reads it any more.

    They could come from a file, and would tell the terminal what to do.
    """
    with contextlib.suppress(OSError):
        click.echo(printable(text), err=True)
