"""Which names a project may have: two that look alike would be two namespaces.

Also which texts callers may give that have to be seen to be told apart.
"""

from __future__ import annotations

import re
import unicodedata

from svc.limits import PROJECT_CHARS

_WIDE_BLANK = "\u3000"

# Letters, marks and symbols that nothing is drawn for: fillers, joiners and selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001107f\U00016fe4\U0001da9b-\U0001daaf\U000e0100-\U000e01ef]"
)

# Scripts whose letters look like each other's.
_ALIKE = ("LATIN", "GREEK", "CYRILLIC")
_WORD = re.compile(r"\w+")


_NO_UNSEEN = "must have no control characters, and no others that are invisible or unassigned"


class UnsoundName(ValueError):
    """A name that may not be given; its text says why, to follow the field's name."""


def visible_text(text: str, most: int) -> str:
    """The text as it is, of 1 to `most` characters that can be seen. Raises `UnsoundName`."""
    if is_visible(text, most):
        return text
    if not 1 <= len(text) <= most:
        raise UnsoundName(f"must have 1 to {most} characters")
    if text != text.strip():
        raise UnsoundName("must not begin or end with a blank")
    raise UnsoundName(_NO_UNSEEN)


def is_visible(text: str, most: int) -> bool:
    """Whether a text has 1 to `most` characters that can be seen, and no blank at its ends."""
    if not 1 <= len(text) <= most or text != text.strip():
        return False
    return text.isprintable() if text.isascii() else not _has_unseen(text)


def project_name(text: str) -> str:
    """The name in Unicode's normal form C, in which it is stored. Raises `UnsoundName`."""
    name = normal_form(text)
    if len(name) > PROJECT_CHARS:
        raise UnsoundName(f"must have at most {PROJECT_CHARS} characters and no control characters")
    if name.isascii() and name.isprintable():
        return name
    if _has_unseen(name):
        raise UnsoundName(_NO_UNSEEN)
    if any(len(_scripts(word)) > 1 for word in _WORD.findall(name)):
        raise UnsoundName(
            "must not mix Latin, Greek and Cyrillic letters in one word, since they look alike"
        )
    return name


def normal_form(text: str) -> str:
    """The name in Unicode's normal form C, which is one for letters that are drawn alike.

    A text that is too long for a name stays as it is: to put its marks in order would take time
    that grows with the square of their number.
    """
    return text if len(text) > PROJECT_CHARS else unicodedata.normalize("NFC", text)


def _has_unseen(text: str) -> bool:
    """Whether characters of it cannot be seen, or stand for a blank and are no usual one.

    What Python calls printable are all that are neither `Other` nor `Separator` in Unicode, and the
    space; a wide blank of East Asian texts is as usual.
    """
    if _BLANK.search(text) is not None:
        return True
    return not (text.isprintable() or text.replace(_WIDE_BLANK, " ").isprintable())


def _scripts(word: str) -> set[str]:
    """The scripts of a word's letters, as far as they can be taken for one another."""
    names = [unicodedata.name(character, "") for character in word]
    return {script for script in _ALIKE for name in names if script in name.split()[:2]}
