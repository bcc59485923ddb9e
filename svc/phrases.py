"""Names, and what the system says, as our messages write them."""

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
    """What the system says is wrong, in lower case as our own messages are."""
    return (error.strerror or type(error).__name__).lower()
