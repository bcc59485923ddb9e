"""Names and system errors, in the form in which messages show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

# How many names of a list a message shows.
NAMES = 20


def quoted(name: str, limit: int = 60) -> str:
    """A caller's name for something, quoted and cut to `limit` characters of one line."""
    return f'"{visible(name, limit)}"'


def visible(text: str, limit: int = 200) -> str:
    """At most `limit` characters, with a sign in place of each that is not visible."""
    return printable(shortened(text, limit), "\N{REPLACEMENT CHARACTER}")


def shortened(text: str, limit: int) -> str:
    """The text, or its start and an ellipsis, in at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str, sign: str = "?") -> str:
    """The text with `sign` in place of each character that a terminal would obey or not show."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else sign for c in text)


def listed(names: Sequence[str]) -> str:
    """The first of some names, each of them quoted."""
    first = [quoted(name) for name in names[:NAMES]]
    return ", ".join(first) + (", …" if len(names) > NAMES else "")


def address(url: str) -> str:
    """The URL without what may be a secret: all before its last "@", its query and its fragment."""
    before, _, rest = url.rpartition("@")
    return ("…@" if before else "") + re.split("[?#]", rest, maxsplit=1)[0]


def reason(error: OSError) -> str:
    """The system's reason for an error, in lower case like the project's own messages."""
    unnamed = "timed out" if isinstance(error, TimeoutError) else "the system did not say why"
    return (error.strerror or unnamed).lower()
