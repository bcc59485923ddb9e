"""Reads a prompt for the demonstration model, which ignores what it does not understand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count, islice

# The most questions that are read from one prompt.
MOST_QUESTIONS = 100

# The most lines that are written in one reply.
MOST_LINES = 2_500

_MARK = r"input-(?:[0-9a-f]{32}|[0-9a-f]{8})"
_OPENING = re.compile(rf"<({_MARK})>\n")
_CLOSING = re.compile(rf"\n</({_MARK})>\Z")

# From svc-1.3.0 on, this ends a prompt.
_CUE = re.compile(r"\n\n(?:Answers?|JSON):\Z")

_LINE = re.compile(
    r"^Line \d+: question (\d+)(?:, option ([A-Z]+))?, (?:one of )?(.+)$", re.MULTILINE
)
_CUED_LINE = re.compile(
    r"^only (?:one letter: )?(.+?) for (?:question (\d+))?(?:, )?(?:option ([A-Z]+))?$",
    re.MULTILINE,
)
_CUED_ALONE = re.compile(
    r"^(?:Does option ([A-Z]+) apply\? )?Answer with only (?:one letter: )?(.+?)\.$", re.MULTILINE
)

# This begins the description of the reply.
_REPLY = re.compile(r"\n(?:Reply with|Answer with|Does option) ")

_MEMBER = re.compile(r'^"(q(\d+))": (.+)$', re.MULTILINE)
_OPTION = re.compile(r"([A-Z]{1,3})\. (.*)")
_EARLIER = "Earlier answers:\n"
_EXAMPLE = re.compile(r"^Example input: (.*)\nExample answer: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptQuestion:
    """One question: its instructions, the options' texts from the top, and solved examples."""

    instructions: str
    options: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WantedLine:
    """A wanted line of a reply: one of `labels`, for a question or for one option of it."""

    question: int
    option: int | None
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The questions by number, the lines of earlier answers, and the wanted form of reply.

    Each of the `members` of a JSON reply is a name, its question's number, and its form in words.
    """

    questions: dict[int, PromptQuestion]
    earlier: str
    lines: tuple[WantedLine, ...]
    members: tuple[tuple[str, int, str], ...]


def read_prompt(text: str) -> tuple[str, Sheet]:
    """The text that the answers depend on (the input and earlier answers), and the questions."""
    text, earlier = _CUE.sub("", text.strip()), ""
    if text.startswith(_EARLIER):
        earlier, _, text = text.removeprefix(_EARLIER).partition("\n\n")
    state, rest, guided = _split(text)
    sheet = _read_sheet(rest, guided)
    return "\n".join(filter(None, (_plain(state), earlier or sheet.earlier))), sheet


def letters() -> Iterator[str]:
    """A to Z, then AA, AB and so on."""
    for index in count():
        yield _letter(index)


def _letter(index: int) -> str:
    first, last = divmod(index, 26)
    return (_letter(first - 1) if first else "") + chr(ord("A") + last)


def _split(text: str) -> tuple[str, str, bool]:
    """The input, the rest, and whether the template has a line of guidance for each question."""
    if opening := _OPENING.match(text):
        state, _, rest = text[opening.end() - 1 :].partition(f"\n</{opening[1]}>")
        return state[1:], rest, True
    if closing := _CLOSING.search(text):
        rest, _, state = text[: closing.start()].partition(f"<{closing[1]}>\n")
        rest = rest.removesuffix("\n\nInput:\n")
        return state, rest, rest.startswith("Questions:")
    if text.startswith("Input:\n"):
        state, _, rest = text[len("Input:\n") :].rpartition("\n\nQuestions:\n")
    else:
        rest, _, state = text.partition("\n\nInput:\n")
    return state, rest, False


def _plain(state: str) -> str:
    """A JSON state as `key: value` lines, any other as it is."""
    if not state.startswith(("{", "[", '"')):
        return state
    try:
        return "\n".join(_lines("", json.loads(state)))
    except (ValueError, RecursionError):
        return state


def _lines(key: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from chain.from_iterable(_lines(str(name), item) for name, item in value.items())
    elif isinstance(value, list):
        yield from chain.from_iterable(_lines(key, item) for item in value)
    elif value is not None:
        yield f"{key.replace('_', ' ')}: {value}" if key else str(value)


# Many calls have the same questions.
@lru_cache(maxsize=64)
def _read_sheet(text: str, guided: bool) -> Sheet:
    body, reply = _parts(f"\n\n{text}")
    reply, _, earlier = reply.partition(f"\n\n{_EARLIER}")
    lines = (
        WantedLine(int(number[:9]), _index(option), tuple(re.split(r", | or ", labels)))
        for number, option, labels in islice(_wanted(reply), MOST_LINES)
    )
    members = (
        (name, int(number[:9]), form)
        for name, number, form in _MEMBER.findall(reply)[:MOST_QUESTIONS]
    )
    blocks = islice(_blocks(body), MOST_QUESTIONS)
    questions = {number: _read_question(block, guided) for number, block in enumerate(blocks, 1)}
    return Sheet(questions, earlier.strip(), tuple(lines), tuple(members))


def _parts(text: str) -> tuple[str, str]:
    """The questions, and the last block, which describes the form of the reply."""
    starts = [match.start() for match in _REPLY.finditer(text)]
    return (text[: starts[-1]], text[starts[-1] :]) if starts else (text, "")


def _wanted(reply: str) -> Iterator[tuple[str, str, str]]:
    """Number, option and labels of each wanted line, in the words of any config."""
    yield from _LINE.findall(reply)
    yield from (
        (number or "1", option, labels) for labels, number, option in _CUED_LINE.findall(reply)
    )
    yield from (("1", option, labels) for option, labels in _CUED_ALONE.findall(reply))


def _index(label: str) -> int | None:
    """The position of a letter; None for an empty text."""
    position = 0
    for letter in label[:3]:
        position = position * 26 + ord(letter) - ord("A") + 1
    return position - 1 if label else None


def _blocks(body: str) -> Iterator[str]:
    """The text of each question, by its number and in order."""
    alone = body.startswith("\n\nQuestion: ")
    if alone:
        yield body.strip().partition(": ")[2]
    start = -1 if alone else body.find("\n\nQuestion 1: ")
    for number in count(1):
        if start < 0:
            return
        following = body.find(f"\n\nQuestion {number + 1}: ", start)
        end = following if following >= 0 else len(body)
        yield body[start:end].strip().partition(": ")[2]
        start = following


def _read_question(block: str, guided: bool) -> PromptQuestion:
    examples = tuple(_EXAMPLE.findall(block))
    lines = _EXAMPLE.sub("", block).strip().split("\n")
    first, options = _options(lines)
    if not options and guided and len(lines) > 1:
        # The guidance is not part of the question.
        first = len(lines) - 1
    return PromptQuestion(" ".join(lines[:first]), options, examples)


def _options(lines: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The last run of lettered lines, and the number of lines before it."""
    first, options, labels = len(lines), list[str](), letters()
    expected = next(labels)
    for number, line in enumerate(lines):
        option = _OPTION.fullmatch(line)
        if option and option[1] == "A":
            first, options, labels = number, [], letters()
            expected = next(labels)
        if option and option[1] == expected:
            options.append(option[2])
            expected = next(labels)
    return first, tuple(options)
