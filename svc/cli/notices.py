"""Messages of a command on standard error, and its exit status.

There are also the statuses 0, and 2 for wrong usage, which is click's own.
"""

from __future__ import annotations

import contextlib

import click

# Something failed, or not everything was answered.
FAILED = 1
# The usual status after Ctrl-C, which is 128 plus the signal's number.
INTERRUPTED = 130


def notice(text: str) -> None:
    """Print a line; where nobody reads it, the command goes on all the same."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
