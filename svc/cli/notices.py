"""What a command says beside its work: lines on standard error, and its exit status.

There are also the statuses 0, and 2 for wrong usage, which is click's own.
"""

from __future__ import annotations

import contextlib

import click

# Something failed, or not everything was answered.
FAILED = 1
# After Ctrl-C: by custom 128 and the signal's number.
INTERRUPTED = 130


def notice(text: str) -> None:
    """A line, unless nobody takes it: the work is done all the same."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
