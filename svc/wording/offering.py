"""Faults of options: what they are called, how they are described, and whether one always fits."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from itertools import islice

from svc.wording.text import gist, plain, shown, spaced, words
from svc.wording.wording import Spot, Wording

# A description of this many words and more, and so many times the usual length, is unequal.
_LONG = 18
_TIMES = 4
_CODE = re.compile(
    r"[a-z]|[A-Z]{2,5}|[A-Za-z]{0,4}[-_ ]?\d+[A-Za-z]?|[bcdfghjklmnpqrstvwxz]{2,5}", re.ASCII
)
_REFERRING = (
    r"(?:like|unlike|except|except for|excluding|other than|instead of|besides|see|same as"
    r"|falls? under|belongs? (?:to|in)|not as) (?:the |an? )?"
)
_OTHER = frozenset(
    (
        "other",
        "others",
        "none",
        "misc",
        "miscellaneous",
        "something else",
        "anything else",
        "everything else",
        "none of the above",
        "none of these",
        "not listed",
        "not applicable",
        "no match",
        "rest",
    )
)
_YES_NO = ({"yes", "no"}, {"true", "false"})
_OPPOSED = ("un", "in", "im", "ir", "dis", "non", "not ", "no ", "non ")


def overlapping(wording: Wording) -> Iterator[Spot]:
    """An option that says the same as one before it, or is a part of another one."""
    gists = {key: gist(text or spaced(key)) for key, text in wording.options.items()}
    for place, (key, mine) in enumerate(gists.items()):
        for other, theirs in islice(gists.items(), place):
            if mine.near(theirs) or mine.within(theirs) or theirs.within(mine):
                yield Spot(f"options.{key}", f"{shown(key)} and {shown(other)} overlap")
                break


def unequal(wording: Wording) -> Iterator[Spot]:
    """One description that is far longer than the others."""
    lengths = {key: len(words(text)) for key, text in wording.options.items() if text.strip()}
    if len(lengths) < 2:
        return
    longest = max(lengths, key=lengths.__getitem__)
    usual = statistics.median(length for key, length in lengths.items() if key != longest)
    if lengths[longest] >= max(_LONG, _TIMES * usual):
        what = f"{shown(longest)} has {lengths[longest]} words, the others about {usual:.0f}"
        yield Spot(f"options.{longest}", what)


def half_described(wording: Wording) -> Iterator[Spot]:
    """Options without a description among options that have one."""
    bare = [key for key, text in wording.options.items() if not text.strip()]
    if bare and 2 * len(bare) <= len(wording.options):
        yield Spot(f"options.{bare[0]}", f"{shown(bare[0])} has no description, others have one")


def coded(wording: Wording) -> Iterator[Spot]:
    """A key that is a code or an abbreviation, with no description that tells what it means."""
    for key, text in wording.options.items():
        if not text.strip() and _CODE.fullmatch(key):
            yield Spot(f"options.{key}", f"{shown(key)} is a code without a description")


def names_another(wording: Wording) -> Iterator[Spot]:
    """A description that can only be understood together with another option."""
    for key, text in wording.options.items():
        for other in wording.options:
            if other != key and _refers(plain(text), other):
                yield Spot(f"options.{key}", f"{shown(key)} is described by {shown(other)}")
                break


def no_escape(wording: Wording) -> Iterator[Spot]:
    """Options of which one has to fit, and nothing says that one always does."""
    open_ended = wording.exclusive and not wording.escapes and not _other(wording)
    if open_ended and not _asked_when_sure(wording) and not _complete(wording):
        yield Spot("escape", "it is false, and none of the options is for what fits no other")


def two_escapes(wording: Wording) -> Iterator[Spot]:
    """An option of the caller's own for the rest beside `none_of_these`."""
    if wording.escapes:
        for key in _other(wording):
            yield Spot(f"options.{key}", f'{shown(key)} stands beside "none_of_these"')


def choice_of_yes_no(wording: Wording) -> Iterator[Spot]:
    """A choice whose options are yes and no."""
    if wording.exclusive and {plain(key) for key in wording.options} in _YES_NO:
        yield Spot("options", "they are yes and no")


def _refers(text: str, other: str) -> bool:
    """Whether a text sends the reader to an option: by its very key, in quotes, or as `not x`."""
    key = plain(other)
    if "_" in key and key in text:
        return True
    said = [re.escape(name) for name in {key, spaced(other)} if name and name in text]
    names = "|".join(said)
    pattern = rf"['\"`](?:{names})['\"`]|\b{_REFERRING}(?:{names})\b"
    return bool(said) and re.search(pattern, text) is not None


def _other(wording: Wording) -> list[str]:
    """The options that are for what fits no other."""
    return [
        key for key in wording.options if spaced(key) in _OTHER or spaced(key).startswith("other ")
    ]


def _asked_when_sure(wording: Wording) -> bool:
    """Whether an earlier answer has ruled out that none fits."""
    return any(condition.question is not None for condition in wording.question.when)


def _complete(wording: Wording) -> bool:
    """Whether one option denies another, so that one of both always holds."""
    names = {spaced(key) for key in wording.options}
    return any(prefix + name in names for name in names for prefix in _OPPOSED)
