"""Which of a provider's words may stand in the server's log.

Providers echo prompts, keys and images in their errors, so the log gets a short message with
every run of it that stands in what was sent taken out, and codes only where they look like codes.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from svc.phrases import printable

MESSAGE_CHARS = 300

# A shorter run inside a word is not taken for an echo; a whole word always is.
RUN_CHARS = 4

REMOVED = "…"
_CODE = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_WORD = re.compile(r"\w+")

# Echoes are often JSON inside JSON.
_ESCAPE = re.compile(r"\\+(u[0-9a-fA-F]{4}|[nrtbf\"'/])")

# Names and values of the chat-completions API itself: they are nobody's data, and an operator
# needs them to see what a provider refuses.
_KNOWN = re.compile(
    r"(?<![\w-])(logprobs|top_logprobs|response_format|json_schema|json_object|temperature"
    r"|max_tokens|max_completion_tokens|reasoning|effort|schema|type|text|body|loc|none|low"
    r"|logits_all|top_n_tokens|messages|model)(?![\w-])"
)

# Images, and keys that are not this server's own.
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{40,}")


class Sent(Protocol):
    """The parts of a call that an error may echo."""

    @property
    def deny_data_collection(self) -> bool: ...
    @property
    def words(self) -> Any: ...


class Redactor:
    """Cleans the words of one reply; what was sent is put together on first use only."""

    def __init__(self, call: Sent, key: str | None) -> None:
        self._call = call
        self._key = key
        self._text: str | None = None

    def message(self, words: str) -> str:
        """The words in one line of at most 300 characters; under `privacy: strict` none."""
        if self._call.deny_data_collection or not words:
            return ""
        plain = _normal(html.unescape(_ESCAPE.sub(_unescaped, words[: 4 * MESSAGE_CHARS])))
        line = " ".join(_ENCODED.sub(REMOVED, plain).split())
        line = printable(line[:MESSAGE_CHARS])
        # Every second piece is a known word, which stays.
        pieces = _KNOWN.split(line)
        pieces[::2] = [self._without_words(self._without_runs(piece)) for piece in pieces[::2]]
        return "".join(pieces)[:MESSAGE_CHARS]

    def code(self, code: str) -> str:
        """A code or type, or an empty text where it looks like none or stands in what was sent."""
        if not _CODE.fullmatch(code) or code.casefold() in self._sent():
            return ""
        return code

    def echoes(self, words: str) -> bool:
        """Whether the words stand in what was sent, so that they may not be the provider's own."""
        return _fold(_normal(words)) in self._sent()

    def _without_runs(self, line: str) -> str:
        sent, folded = self._sent(), _fold(line)
        kept, start = [], 0
        while start < len(line):
            # One character of another script may be a word.
            end = start + (RUN_CHARS if line[start].isascii() else 1)
            if end > len(line) or folded[start:end] not in sent:
                kept.append(line[start])
                start += 1
                continue
            while end < len(line) and folded[start : end + 1] in sent:
                end += 1
            kept.append(REMOVED)
            start = end
        return "".join(kept)

    def _without_words(self, line: str) -> str:
        sent = self._sent()
        return _WORD.sub(lambda word: REMOVED if _fold(word[0]) in sent else word[0], line)

    def _sent(self) -> str:
        if self._text is None:
            parts = [*_texts(self._call.words), self._key or ""]
            self._text = _fold(_normal(" ".join(" ".join(parts).split())))
        return self._text


def log_line(status: int, facts: Mapping[str, str], message: str) -> str:
    """`429 code=... type=...: message`, without what is empty."""
    named = "".join(f" {name}={value}" for name, value in facts.items() if value)
    return f"{status}{named}" + (f": {message}" if message else "")


def _unescaped(escape: re.Match[str]) -> str:
    name = escape[1]
    if len(name) > 1:
        return chr(int(name[1:], 16))
    return " " if name.isalpha() else name


def _normal(text: str) -> str:
    """The text with letters as they usually are, and not full-width or in bold for example."""
    return unicodedata.normalize("NFKC", text)


def _fold(text: str) -> str:
    """Lower case with the same number of characters, which `casefold` would not keep."""
    return "".join(map(_lower, text)) if not text.isascii() else text.lower()


def _lower(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


def _texts(value: Any) -> Iterator[str]:
    """Every string inside what was sent, with the names of fields, without images given as data."""
    if isinstance(value, str):
        if not value.startswith("data:"):
            yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
