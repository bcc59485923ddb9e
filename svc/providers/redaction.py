"""Which of a provider's words may stand in the server's log.

Providers echo prompts, keys and images in their errors, so the log gets a short message with
every run of it that stands in what was sent taken out, and codes only where they look like codes.

Looking for a message in what was sent takes longer the more that is, and the stranger. So it takes
a process some part of a processor at most, and of what the replies to a request may take; where
that is used up, nothing of a message is logged or believed.
"""

from __future__ import annotations

import contextlib
import html
import math
import re
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html.entities import html5
from itertools import chain
from typing import Any, Protocol

from svc.phrases import printable

MESSAGE_CHARS = 300

# A shorter run inside a word is not taken for an echo; a whole word always is.
RUN_CHARS = 4

# What was sent in one call is looked through, whatever others take, where it has at most so many
# letters.
LETTERS_ALWAYS = 4_000

# For longer calls a process takes so much of each second of a processor, and so many seconds at
# once. To look for a message takes the last one of these for each letter, and leaves one half to
# the few words on which the fate of a call may depend.
A_SECOND, AT_ONCE_S = 0.1, 0.56
LETTER_S = 1.12e-6
LEFT_BY_MESSAGES_S = AT_ONCE_S / 2

# What was sent is made plain in pieces of so many letters, since other threads wait for each step
# of a piece, and after each it is looked whether there is time for the next one. They overlap by
# more than an escape has.
PIECE_LETTERS, OVERLAP = 4_096, 256

# A letter that stands for more than so many is left as it is.
PLAIN_LETTERS = 4

# Where letters are that stand for others, such as syllables of Korean: none comes after these.
_COMPATIBLE = (range(0x80, 0xD7A4), range(0xF900, 0x2FA20))

REMOVED = "…"

# Stands for a message that was not looked through.
UNREAD = "(its message is left out, as the call was too long to look for it)"
_CODE = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_WORD = re.compile(r"[^\W_]+")

# Codes and types that many providers have, and that therefore tell nothing of a call but its fate.
_USUAL_CODES = frozenset(
    (
        *("api_error", "authentication_error", "billing_error", "content_filter"),
        *("content_policy_violation", "context_length_exceeded", "insufficient_quota"),
        *("internal_error", "invalid_api_key", "invalid_prompt", "invalid_request"),
        *("invalid_request_error", "invalid_type", "invalid_value", "missing", "model_not_found"),
        *("not_found_error", "overloaded_error", "permission_error", "rate_limit_error"),
        *("rate_limit_exceeded", "request_too_large", "requests", "server_error"),
        *("service_unavailable", "timeout_error", "tokens", "unknown_model"),
        *("unsupported_parameter", "unsupported_value"),
    )
)

# Echoes are often JSON inside JSON, and may be in upper or lower case with their escapes.
_ESCAPE = re.compile(
    r"\\{1,16}+(U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|u000[123eE][0-9a-fA-F]{4}|u[0-9a-fA-F]{4}"
    r"|U(?!00[01])[0-9a-fA-F]{4}|[nN]\{[A-Za-z0-9 +-]{1,90}\}|[nNrRtTbBfF\"'/])"
)
# Bytes of UTF-8 as Python and URLs write them, in base 16 or 8.
_BYTE = r"(?:%|\\{1,16}+[xX])([0-9a-fA-F]{2})|\\{1,16}+([0-3]?[0-7]{2})"
_BYTES = re.compile(f"(?:{_BYTE})+")
_EACH_BYTE = re.compile(_BYTE)
# Before the number of a character there may be any zeros. Python refuses thousands of digits.
_ZEROS = re.compile("(?<=&#)0++|(?<=&#[xX])0++")
_NO_CHARACTER = re.compile("&#[0-9]{100,}+")
_NAME_OF_CHARACTER = re.compile("&([A-Za-z][A-Za-z0-9]{1,31};)")
# So often escapes are taken out of a message, and out of what was sent, which the provider may have
# taken out as often before it repeats it.
_MESSAGE_TIMES, _SENT_TIMES = 4, 8

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


class Allowance:
    """How many seconds may still be taken at the moment, for all calls of a process."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.thread_time,
    ) -> None:
        """Both give seconds: those that pass, and those of a processor in this thread."""
        self._clock, self._processor = clock, processor
        self._lock = threading.Lock()
        self._whole_at = -math.inf

    @property
    def has_left(self) -> bool:
        """Whether any more may be taken."""
        return self.take(0.0)

    def take(self, seconds: float, leave_s: float = 0.0) -> bool:
        """Take so much; False, and none is taken, unless at least `leave_s` is left then."""
        with self._lock:
            after = self._after(seconds)
            if after - self._clock() > (AT_ONCE_S - leave_s) / A_SECOND:
                return False
            self._whole_at = after
            return True

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Take what is done in the block, whether it is there or not."""
        began = self._processor()
        try:
            yield
        finally:
            with self._lock:
                self._whole_at = self._after(self._processor() - began)

    def _after(self, seconds: float) -> float:
        """When all is there again, once so much is taken."""
        return max(self._whole_at, self._clock()) + seconds / A_SECOND


class Redactor:
    """Cleans the words of one reply; what was sent is put together on first use only."""

    def __init__(
        self,
        call: Sent,
        key: str | None,
        allowance: Allowance,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """`goes_on` says whether the replies to the request may take any more of a processor."""
        self._call, self._key, self._allowance = call, key, allowance
        self._goes_on = goes_on
        self._prepared, self._is_short = False, False
        self._text: str | None = None

    def message(self, words: str) -> str:
        """The words in one line of at most 300 characters; under `privacy: strict` none."""
        if self._call.deny_data_collection or not words:
            return ""
        sent = self._sent()
        if sent is None or not self._may_look(len(sent)):
            return UNREAD
        plain = _normal(_unmasked(words[: 4 * MESSAGE_CHARS]))
        line = " ".join(_ENCODED.sub(REMOVED, plain).split())
        line = printable(line[:MESSAGE_CHARS])
        # Every second piece is a known word, which stays.
        pieces = _KNOWN.split(line)
        pieces[::2] = [_cleaned(piece, sent) for piece in pieces[::2]]
        return unicodedata.normalize("NFC", "".join(pieces))[:MESSAGE_CHARS]

    def code(self, code: str) -> str:
        """A code or type, or nothing where it looks like none or may hold what was sent.

        Under `privacy: strict` it is one that many providers have, or nothing.
        """
        if code in _USUAL_CODES:
            return code
        if self._call.deny_data_collection or not _CODE.fullmatch(code):
            return ""
        sent = self._sent()
        if sent is None:
            return ""
        with self._counted():
            return code if _cleaned(code, sent) == code else ""

    def echoes(self, words: str) -> bool:
        """Whether the words may stand in what was sent, and so not be the provider's own."""
        sent = self._sent()
        return sent is None or _fold(_normal(words)) in sent

    def _sent(self) -> str | None:
        """All words that were sent, folded; None where that would take too long now."""
        if not self._prepared:
            self._prepared, self._text = True, self._folded()
        return self._text

    def _folded(self) -> str | None:
        text = " ".join((*_texts(self._call.words), self._key or ""))
        self._is_short, folded = len(text) <= LETTERS_ALWAYS, []
        for start in range(0, len(text), PIECE_LETTERS):
            if not self._goes_on() or not (self._is_short or self._allowance.has_left):
                return None
            with self._counted():
                folded.append(_folded(text[start : start + PIECE_LETTERS + OVERLAP]))
        return " ".join(folded)

    def _counted(self) -> contextlib.AbstractContextManager[None]:
        """What is done in the block counts, unless what was sent is short.

        Else those who send many short calls would leave nothing for the long ones of others.
        """
        return contextlib.nullcontext() if self._is_short else self._allowance.used()

    def _may_look(self, letters: int) -> bool:
        """Whether a message may be looked for in so many letters, with each step of escapes."""
        took = self._is_short or self._allowance.take(LETTER_S * letters, LEFT_BY_MESSAGES_S)
        return took and self._goes_on()


def _folded(piece: str) -> str:
    """A piece of what was sent, as messages are made plain, and as it is with its escapes.

    A message has no escapes any more, also where what it echoes was sent with some.
    """
    plain = (" ".join(text.split()) for text in _less_and_less_escaped(piece, _SENT_TIMES))
    return _fold(_normal(" ".join(plain)))


def _cleaned(line: str, sent: str) -> str:
    """A line without what stands in what was sent."""
    return _without_words(_without_runs(line, sent), sent)


def _without_runs(line: str, sent: str) -> str:
    folded, kept, start = _fold(line), [], 0
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


def _without_words(line: str, sent: str) -> str:
    return _WORD.sub(lambda word: REMOVED if _fold(word[0]) in sent else word[0], line)


def log_line(status: int, facts: Mapping[str, str], message: str) -> str:
    """`429 code=... type=...: message`, without what is empty."""
    named = "".join(f" {name}={value}" for name, value in facts.items() if value)
    return f"{status}{named}" + (f": {message}" if message else "")


def _unmasked(words: str) -> str:
    """The words without the escapes of JSON, Python, URLs and HTML."""
    *_, plain = _less_and_less_escaped(words, _MESSAGE_TIMES)
    return plain


def _less_and_less_escaped(text: str, times: int) -> Iterator[str]:
    """The text, and what it is each of so many times that escapes were taken out of it."""
    yield text
    for _ in range(times):
        before, text = text, _BYTES.sub(_decoded, _ESCAPE.sub(_unescaped, text))
        text = _plain_html(text)
        if text == before:
            return
        yield text


def _plain_html(text: str) -> str:
    """The text with characters in place of HTML's names and numbers of them."""
    if "&#" in text:
        text = _NO_CHARACTER.sub(REMOVED, _ZEROS.sub("", text))
    return _NAME_OF_CHARACTER.sub(_named, html.unescape(text))


def _named(reference: re.Match[str]) -> str:
    """The character of a name that is not in the case in which HTML has it."""
    return _characters_by_small_name().get(reference[1].lower(), reference[0])


@cache
def _characters_by_small_name() -> Mapping[str, str]:
    # Of names that differ by case, the small one comes last, and stays.
    return {name.lower(): html5[name] for name in sorted(html5)}


def _decoded(escapes: re.Match[str]) -> str:
    found = _EACH_BYTE.findall(escapes[0])
    return bytes(int(of_16 or of_8, 16 if of_16 else 8) for of_16, of_8 in found).decode(
        "utf-8", "replace"
    )


def _unescaped(escape: re.Match[str]) -> str:
    name = escape[1]
    if name[1:2] == "{":
        try:
            return unicodedata.lookup(name[2:-1].replace("+", " ").upper())
        except KeyError:
            # It may be a line break before a brace.
            return REMOVED if name[0] == "N" else f" {name[1:]}"
    if len(name) > 1:
        return chr(int(name[1:], 16))
    return " " if name.isalpha() else name


def _normal(text: str) -> str:
    """The text with letters as they usually are, such as not in bold; accents stand alone.

    Letter by letter: for a whole text, Python sorts accents in quadratic time, and one letter may
    stand for eighteen.
    """
    return text if text.isascii() else text.translate(_plain_letters())


@cache
def _plain_letters() -> Mapping[int, str]:
    """What stands for letters that are not as they usually are, by their code points.

    Letters whose small ones do not come back from upper case are as these come back. Letters that
    stand for many stay whole.
    """
    folded = {}
    for code in chain(*_COMPATIBLE):
        letter = chr(code)
        small = letter.lower()
        back = small.upper().lower()
        letters = unicodedata.normalize("NFKD", letter if back == small else back)
        if letters != letter and len(letters) <= PLAIN_LETTERS:
            folded[code] = letters
    return folded


def _fold(text: str) -> str:
    """Lower case with the same number of characters, which `casefold` would not keep.

    One letter alone has a longer lower case, and one has another at the end of a word.
    """
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def _texts(value: Any) -> Iterator[str]:
    """Every string inside what was sent, with the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
