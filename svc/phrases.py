"""Names and system errors, in the form in which messages show them."""

from __future__ import annotations

from collections.abc import Sequence

# How many names of a list a message shows.
NAMES = 20


def quoted(name: str, limit: int = 60) -> str:
    """A caller's name for something, quoted and cut to `limit` characters of one line."""
    cut = name if len(name) <= limit else name[: limit - 1] + "…"
    return '"' + "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut) + '"'


def listed(names: Sequence[str]) -> str:
    """The first of some names, each of them quoted."""
    first = [quoted(name) for name in names[:NAMES]]
    return ", ".join(first) + (", …" if len(names) > NAMES else "")


def reason(error: OSError) -> str:
    """The system's reason for an error, in lower case like the project's own messages."""
    return (error.strerror or type(error).__name__).lower()
