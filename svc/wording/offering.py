"""Faults of options: what they are called, how they are described, and whether one always fits."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from svc.wording.text import Gist, gist, plain, shown, spaced, words
from svc.wording.wording import Spot, Wording

# A description of this many words and more, and so many times the usual length, is unequal.
_LONG = 18
_TIMES = 4

# A text that refers to an option by a longer name is not understood.
NAME_CHARS = 100
_CODE = re.compile(
    r"[a-z]|[A-Z]{2,5}|[A-Za-z]{0,4}[-_ ]?\d+[A-Za-z]?|[bcdfghjklmnpqrstvwxz]{2,5}", re.ASCII
)
_REFERRING = re.compile(
    r"\b(?:like|unlike|except|except for|excluding|other than|instead of|besides|see|same as"
    r"|falls? under|belongs? (?:to|in)|not as) (?:the |an? )?"
)
_QUOTED = re.compile(r"(?=['\"`]([^'\"`]*)['\"`])")
_WORD_END = re.compile(r"(?<=\w)(?!\w)")
_TOKEN = re.compile(r"[^\s'\"`,;:()]+")
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
    before: list[tuple[str, Gist]] = []
    # The places of the options that have a word, among those that deny and count alike: so the
    # price is that of what options have in common, not that of all pairs.
    places: dict[tuple[object, ...], list[int]] = {}
    for key, text in wording.options.items():
        mine = gist(text or spaced(key))
        shared = [places.setdefault((word, *mine[1:]), []) for word in mine.content]
        found = Counter(chain.from_iterable(shared)).items()
        # One word in common is enough for those alone that have no other.
        for place, common in sorted(one for one in found if one[1] > 1 or len(shared) == 1):
            other, theirs = before[place]
            if mine.overlaps(theirs, common):
                yield Spot(f"options.{key}", f"{shown(key)} and {shown(other)} overlap")
                break
        for same in shared:
            same.append(len(before))
        before.append((key, mine))


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
    by_name: dict[str, str] = {}
    for key in wording.options:
        for name in filter(None, (plain(key), spaced(key))):
            by_name.setdefault(name, key)
    longest = max(map(len, by_name), default=0)
    for key, text in wording.options.items():
        named = {by_name[name] for name in _referred(plain(text), longest) if name in by_name}
        for other in wording.options:
            if other in named and other != key:
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


def _referred(text: str, longest: int) -> Iterator[str]:
    """What in a text may send the reader to an option: its very key, in quotes, or as `not x`.

    The name of an option has at most `longest` characters. Longer ones than anybody refers to are
    not looked for, since all beginnings of what follows are tried.
    """
    longest = min(longest, NAME_CHARS)
    yield from (token.rstrip(".!?") for token in _TOKEN.findall(text) if "_" in token)
    yield from _QUOTED.findall(text)
    for found in _REFERRING.finditer(text):
        rest = text[found.end() : found.end() + longest + 1]
        yield from (rest[: end.start()] for end in _WORD_END.finditer(rest))


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
