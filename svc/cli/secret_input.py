"""Secrets that commands read from standard input: arguments are seen by every local user."""

from __future__ import annotations

import sys

import click

# The longest that is taken.
SECRET_CHARS = 4_096


def read_secret(name: str) -> str:
    """What is typed on a terminal without being shown, or the content of a pipe, stripped.

    The text is empty where there is none, has U+FFFD for what is not ASCII, and is longer than
    `SECRET_CHARS` where more was written.
    """
    if sys.stdin is None:
        # The starting process closed it.
        return ""
    if sys.stdin.isatty():
        return str(click.prompt(name, hide_input=True, err=True)).strip()
    # The longest, and the line break that it may end with.
    return sys.stdin.buffer.read(SECRET_CHARS + 2).decode("ascii", "replace").strip()
