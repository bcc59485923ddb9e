"""Messages of a command on standard error."""

from __future__ import annotations

import contextlib

import click


def notice(text: str) -> None:
    """Print a line; where nobody reads it, the command goes on all the same."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
