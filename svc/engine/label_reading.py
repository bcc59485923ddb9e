"""Reads the probabilities of labels from the tokens of a reply, at the place of each answer.

The label of a line is the first token that reads as one after what models put before it: a number,
`Line 1:`, `Answer:`, a dash, a bracket, a quote, emphasis. What follows must not make it a word of
prose: `A. billing` is a label, `A customer` is none. A block of thought before it is not read.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from svc import limits
from svc.providers import Completion, Token, without_thought
from svc.questions import LabelLine, Unreadable

# How much probability a first position without a label must put on labels to count as an answer.
LEAST_MASS = 0.05

# How much of that may be on labels that are words of prose as well.
MOST_ON_WORDS = 0.95

# How far over 1 rounding may push the sum of the probabilities at one position.
MASS_SLACK = 0.01

# Marks of tokenizers, and parts of a character as some servers write them.
_SPECIAL = re.compile(
    r"<[|\uff5c][^|\uff5c<>]*[|\uff5c]>|</?s>|<(?:eos|bos|end_of_turn|start_of_turn)>"
    r"|bytes:(?:\\x[0-9a-f]{2})+"
)
_OTHER = re.compile(r"[^A-Za-z0-9]+")
# Marks that tokenizers write for a space and for a new line. The one that is taken out is the last,
# as what is around it could become another mark.
_MARKS = {"\u2581": " ", "\u0120": " ", "\u010a": "\n", "<0x0A>": "\n", "\r": ""}
# Each character can be read in one way only, so that no line takes long to refuse.
_BEFORE = re.compile(
    r"""
    (?:[\s>\#*_`"'\u2018\u201c(\[{\u2022\u2013\u2014=:-]    # marks that open something
    | (?:the\ |my\ )?(?:final\ |best\ |correct\ )?(?:answer|label|option|choice|reply)s?
      (?:\ to\ question\ \d{1,3})?(?:\ is)?\b
    | (?:line|question|q)\ ?\d{1,3}\ ?[:.)=-]                # the number of a line
    | \d{1,3}\ ?[:.)](?!\d)
    )*
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What may stand behind a label: nothing, marks that close it, a dash between spaces, or words in
# brackets up to the end.
_AFTER = r"""
    (?= \s*$ | \s*["'\u2019\u201d`*)\]}.:;!_]++(?!\w) | [.:)](?!\w\.)\w
    | \s*,(?!\s*(?:{labels})\b) | \s+[-\u2013\u2014=<|] | \s+\([^()]*\)\s*$
    | \s+for\ question\b
    )
"""
# Labels with which sentences begin that are no answers.
_WORDS = frozenset({"a", "i"})

# Beginnings of sentences that are no answers, though their first word is a label.
_IDIOM = re.compile(
    r"\W*(?:no\s+(?:doubt|problem|wonder|idea|question)\b|no\.\s?(?:of\b|\d)|n/a\b|i,)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\W*(?:line|question|q)?\s?(\d{1,3})\s?[:.)=-]", re.IGNORECASE)

# How many characters of a line are looked at, and how many a token may have that is a label.
_LINE_CHARS = 200

# A reply with more characters is no list of labels, thought included.
_REPLY_CHARS = 65_536

# Nor is one that tokens spell with more, which may have marks of a tokenizer.
_SPELLED_CHARS = limits.REPLY_TEXT_CHARS

_TOO_LONG = "the reply is far longer than labels, and thought about them, are"

# A reply to all questions has fewer lines with text, thought excluded.
_REPLY_LINES = 4_000

_TOKEN_CHARS = 32

_EDGES = " \t\r\n\"'`*_([{.,:;)]}\u2018\u2019\u201c\u201d"


@dataclass(frozen=True, slots=True)
class _TextLine:
    """A line of a reply with text, and where in the whole reply it begins."""

    text: str
    at: int


def read_lines(tokens: Sequence[Token], wanted: Sequence[Sequence[str]]) -> list[LabelLine]:
    """The labels of a reply with one label a line; `wanted` are the labels of each line.

    Raises `Unreadable` when the lines with a label are not as many, or hold other labels.
    """
    if simple := _one_token_lines(tokens, wanted):
        return simple
    text = _TokenText(tokens)
    every = tuple(dict.fromkeys(label for labels in wanted for label in labels))
    found = (line for line in text.lines() if _label_at(line.text, every) is not None)
    # A lying model may write thousands more, each of which takes time to look at.
    label_lines = list(itertools.islice(found, len(wanted) + 1))
    if len(label_lines) > len(wanted):
        raise Unreadable(f"the reply has more than {len(wanted)} label lines")
    if len(label_lines) < len(wanted):
        raise Unreadable(f"the reply has {len(label_lines)} label lines instead of {len(wanted)}")
    for position, line in enumerate(label_lines, 1):
        number = _NUMBER.match(line.text)
        if number and int(number[1]) != position:
            raise Unreadable("the reply's lines are numbered in another order")
    rows = zip(label_lines, wanted, strict=True)
    return [_on_line(text, line, tuple(labels)) for line, labels in rows]


def read_single(tokens: Sequence[Token], labels: Sequence[str]) -> LabelLine:
    """The label of a reply to one question.

    Where the reply shows no label, but talks or lists them all, the probabilities at its first
    position count if enough of them falls on labels: a weak model often only just prefers another
    word to a label. Raises `Unreadable` where even that is no answer.
    """
    if simple := _one_token_lines(tokens, [labels]):
        return simple[0]
    text, valid = _TokenText(tokens), tuple(labels)
    lines = text.lines()
    if not lines:
        raise Unreadable("the reply holds no text but thought")
    if _label_at(lines[0].text, valid) is not None:
        return _on_line(text, lines[0], valid)
    if len(lines[0].text.split()) == 1 and len(lines) > 1 and lines[0].text.startswith("```"):
        return _on_line(text, lines[1], valid)
    if _is_prose_of_a_label(lines[0].text, valid):
        raise Unreadable("what looks like a label is the beginning of prose")
    line = _distribution(text.token_at(lines[0].at), valid)
    if line.mass is None or line.mass < LEAST_MASS:
        raise Unreadable("hardly any probability falls on a label")
    by_place = line.probabilities.items()
    words = math.fsum(p for place, p in by_place if valid[place].casefold() in _WORDS)
    if words > MOST_ON_WORDS * line.mass:
        raise Unreadable("what looks like a label may be a word of prose")
    return line


def answer_tokens(completion: Completion) -> Sequence[Token]:
    """The tokens of a completion's text alone: some servers list those of its thought before them.

    Raises `Unreadable` when the tokens are not those of the text.
    """
    tokens = completion.tokens or ()
    text, spelled = completion.text, "".join([token.text for token in tokens])
    if spelled.strip() == text.strip():
        return tokens
    if len(spelled) > _SPELLED_CHARS:
        raise Unreadable(_TOO_LONG)
    wanted = _letters(text)
    left = len(wanted)
    for start in range(len(tokens) - 1, -1, -1):
        part = _letters(tokens[start].text)
        if part != wanted[max(0, left - len(part)) : left]:
            break
        left -= len(part)
        if left == 0:
            return tokens[start:]
    raise Unreadable("the log-probabilities are not those of the reply's text")


class _TokenText:
    """The text of a reply's tokens, and which token stands at a place of it."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        """Raises `Unreadable` where the text is longer than any reply of labels."""
        self._tokens = tokens
        self._ends: list[int] = []
        parts: list[str] = []
        if sum(len(token.text) for token in tokens) > _SPELLED_CHARS:
            raise Unreadable(_TOO_LONG)
        end = 0
        for token in tokens:
            part = _plain(token.text)
            end += len(part)
            parts.append(part)
            self._ends.append(end)
        if end > _REPLY_CHARS:
            raise Unreadable(_TOO_LONG)
        self._text = "".join(parts)

    def lines(self) -> list[_TextLine]:
        """The lines with text, behind any thought. Raises `Unreadable` where they are too many."""
        rest = without_thought(self._text)
        at = len(self._text) - len(rest)
        lines = []
        for line in rest.split("\n"):
            blank = len(line) - len(line.lstrip())
            if line.strip():
                lines.append(_TextLine(line.strip()[:_LINE_CHARS], at + blank))
            if len(lines) > _REPLY_LINES:
                raise Unreadable("the reply has more lines than labels, and words about them, take")
            at += len(line) + 1
        return lines

    def token_at(self, place: int) -> Token:
        """The token whose text stands at a place."""
        return self._tokens[bisect_right(self._ends, place)]


def _one_token_lines(
    tokens: Sequence[Token], wanted: Sequence[Sequence[str]]
) -> list[LabelLine] | None:
    """The labels of a reply that is nothing but labels of one token and new lines."""
    written = [token for token in tokens if token.text.strip(" \r\n")]
    if len(written) != len(wanted) or len(tokens) > 2 * len(wanted):
        return None
    rows = list(zip(written, wanted, strict=True))
    if any(token.text.strip(" ") not in labels for token, labels in rows):
        return None
    breaks = tokens[1::2]
    if any(token.text != "\n" for token in breaks):
        return None
    return [_distribution(token, labels) for token, labels in rows]


def _on_line(text: _TokenText, line: _TextLine, labels: tuple[str, ...]) -> LabelLine:
    place = _label_at(line.text, labels)
    if place is None:
        raise Unreadable("a line of the reply is none of its labels")
    return _distribution(text.token_at(line.at + place), labels)


def _label_at(line: str, labels: tuple[str, ...]) -> int | None:
    """Where on the line its label begins.

    It is looked for in one place: what stands before it may be many marks.
    """
    before = _BEFORE.match(line)
    at = before.end() if before else 0
    match = _pattern(labels).match(line, at)
    if match is None or _lists_labels(line, at, labels):
        return None
    place = match.start("label")
    return None if _IDIOM.match(line, place) else place


@lru_cache(maxsize=1_024)
def _pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    either = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    after = _AFTER.replace("{labels}", either)
    return re.compile(f"(?P<label>{either}){after}", re.VERBOSE | re.IGNORECASE)


def _is_prose_of_a_label(line: str, labels: tuple[str, ...]) -> bool:
    """Whether the line begins with a label's letters as part of a word, or as an article."""
    if _IDIOM.match(line):
        return True
    single = [re.escape(label) for label in labels if len(label) == 1]
    longer = [re.escape(label) for label in labels if len(label) > 1]
    article = rf"(?:{'|'.join(single)})(?:\s+\w|\w|['\u2019]\w)" if single else None
    word = rf"(?:{'|'.join(longer)})\w" if longer else None
    either = "|".join(filter(None, (article, word)))
    return re.match(either, line, re.IGNORECASE) is not None


def _lists_labels(line: str, at: int, labels: tuple[str, ...]) -> bool:
    """Whether the line is, from there on, an echo of the choice: `A, B or C`, `A. B. C.`."""
    match = _list_pattern(labels).match(line, at)
    if match is None:
        return False
    if match["all"] is None:
        return match["first"].casefold() != match["second"].casefold()
    listed = set(re.findall(r"\w+", match["all"].casefold()))
    # Two labels are no list: `A. B` may be label A with an option that is called B.
    return len(listed & _positions(labels).keys()) > 2


@lru_cache(maxsize=1_024)
def _list_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    either = f"(?:{'|'.join(map(re.escape, sorted(labels, key=len, reverse=True)))})"
    joined = r"\s*(?:[,/|&+](?:\s*(?:or|and)\b)?|\b(?:or|and)\b)\s*"
    adjacent = rf"(?P<first>{either}){joined}(?P<second>{either})\b"
    entire = rf"(?P<all>{either}(?:[\s.):;-]+{either})+)[\s.):;]*$"
    return re.compile(f"(?:{adjacent}|{entire})", re.VERBOSE | re.IGNORECASE)


def _distribution(token: Token, labels: Sequence[str]) -> LabelLine:
    """Sum the probabilities at one position over the tokens that read as the same label."""
    # Two tokens may have one text, as "true" with and without a space before it may, and then have
    # probabilities of their own; one that is listed twice counts once.
    alternatives = list(dict.fromkeys(token.alternatives))
    if all(text != token.text[: limits.ALTERNATIVE_CHARS] for text, _ in alternatives):
        alternatives.append((token.text, token.logprob))
    probabilities = [math.exp(min(logprob, 0.0)) for _, logprob in alternatives]
    total = sum(probabilities)
    if total > 1 + MASS_SLACK:
        raise Unreadable("the alternatives' probabilities sum to more than 1")
    position = _positions(tuple(labels))
    in_parts = _label_of(token.text[:_TOKEN_CHARS]) not in position
    by_label: dict[int, float] = {}
    for (text, _), probability in zip(alternatives, probabilities, strict=True):
        label = _label_of(text) if len(text) <= _TOKEN_CHARS else ""
        index = position.get(label)
        if index is None and in_parts:
            index = _begun(label, position)
        if index is not None:
            by_label[index] = by_label.get(index, 0.0) + probability
    left = max(0.0, 1.0 - total) / max(1, len(labels) - len(by_label))
    # The alternatives are the most probable tokens: none that is missing is more probable.
    return LabelLine(by_label, min(left, *probabilities), min(1.0, math.fsum(by_label.values())))


@lru_cache(maxsize=1_024)
def _positions(labels: tuple[str, ...]) -> Mapping[str, int]:
    return {label.casefold(): index for index, label in enumerate(labels)}


def _begun(text: str, position: Mapping[str, int]) -> int | None:
    """The one label of several letters that a token begins, as `y` begins `yes`."""
    begun = [index for label, index in position.items() if text and label.startswith(text)]
    return begun[0] if len(begun) == 1 and len(next(iter(position))) > 1 else None


# Every reply lists the same few hundred tokens.
@lru_cache(maxsize=4_096)
def _label_of(text: str) -> str:
    return _plain(text).strip(_EDGES).casefold()


def _letters(text: str) -> str:
    """The plain letters and digits of a text, which every way of writing tokens leaves alone."""
    return _OTHER.sub("", _plain(text))


def _plain(text: str) -> str:
    """A token's text without marks of the tokenizer."""
    if text.isascii() and "<" not in text and "\r" not in text:
        return text
    text = _SPECIAL.sub("", text)
    for mark, plain in _MARKS.items():
        text = text.replace(mark, plain)
    return text
