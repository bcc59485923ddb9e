"""Turns marshmallow's nested messages into one line for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from svc.phrases import quoted

# How many errors of a request are listed.
ERRORS_SHOWN = 5
_OWN_WORDS = {
    "Missing data for required field.": "is required",
    "Field may not be null.": "must not be null",
}


def describe(messages: Any) -> str:
    """Every message with its place: the question and the field that it is about."""
    return listed((_place(path), message) for path, message in walk(messages))


def listed(errors: Iterable[tuple[str, str]]) -> str:
    """The first of some places with their messages, and how many more there are."""
    remaining = iter(errors)
    shown = islice(remaining, ERRORS_SHOWN)
    lines = [f"{place}: {message}" if place else message for place, message in shown]
    more = sum(1 for _ in remaining)
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def walk(messages: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every message with the way to its place."""
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            # Below `questions` this may be a question key of the caller.
            about_all = key == "_schema" and path != ("questions",)
            yield from walk(inner, path if about_all else (*path, str(key)))
    elif isinstance(messages, list):
        for inner in messages:
            yield from walk(inner, path)
    else:
        yield path, _OWN_WORDS.get(str(messages), str(messages))


def _place(path: tuple[str, ...]) -> str:
    if len(path) > 1 and path[0] == "questions":
        return " ".join([f"question {quoted(path[1])}", *map(_name, path[2:])])
    return ".".join(map(_name, path))


def _name(part: str) -> str:
    plain = part.isidentifier() or part.isdecimal()
    return part if plain and len(part) <= 40 else quoted(part)
