"""The HTTP of a provider's Batch API: files of calls go there, and files of results come back."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from svc import limits
from svc.providers.batch_protocols import BATCH_PROTOCOLS, RemoteBatch, found_id
from svc.providers.catalog import BatchTerms, Provider
from svc.providers.client import UNTOLD_CALL, refusal
from svc.providers.failures import BadReply, CallTimedOut, Overlong, ProviderError, Resting
from svc.providers.redaction import REMOVED, Allowance, Redactor
from svc.providers.replies import Reply, parsed
from svc.providers.streams import CHUNK_BYTES, Streams

# The seconds that a whole exchange may take, also with a server that sends a byte now and then: one
# of a few words, and one of a file.
EXCHANGE_S, FILE_S = 120.0, 3_600.0

# More pages of a list, and more batches on them, are not read: whoever has more cannot find one
# again.
PAGES, LISTED = 1_000, 100_000

# All pages of a list together may take so many times as long as one exchange.
_LIST_EXCHANGES = 12

# The longest list, in bytes: of files not everybody has pages.
_LIST_BYTES = 8 * 1024 * 1024

# At most so many files with one name are found: an upload is hardly repeated as often.
_SAME_NAMED = 8

# A reply fills ten times its bytes while it is read, and many jobs look after batches at once. So
# one is read after the other, as are the lines of results, and after some that took over so many
# seconds of a processor comes a pause of so many times what they took, in which replies of other
# providers are read.
_READING = threading.Lock()
_TURNS: dict[str, threading.Lock] = {}
_SHORT_S, REST = 0.02, 9

# What paths are made of besides ids; they begin with nothing.
_WORDS = frozenset(("", "files", "content", "batches", "batch", "jobs", "cancel"))

_log = logging.getLogger(__name__)


ResultT = TypeVar("ResultT")


def _unnoted(_: int) -> None:
    """Nobody counts what comes."""


class _Page(NamedTuple):
    """Of a page of batches: how many it lists, the one that is looked for, the next one's query."""

    listed: int
    found: RemoteBatch | None
    next: str


class BatchClient:
    """The Batch API of one provider; all methods raise a `ProviderError`."""

    def __init__(
        self,
        provider: Provider,
        now: Callable[[], float] = time.time,
        exchange_s: float = EXCHANGE_S,
        sleep: Callable[[float], None] = time.sleep,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        """`now` is in seconds since the epoch; an exchange without a file has `exchange_s`.

        `worked` is how many seconds of a processor this thread has taken.
        """
        self.terms = provider.batch or BatchTerms()
        self.protocol = BATCH_PROTOCOLS[self.terms.protocol]
        self._name, self._now = provider.name, now
        self._exchange_s, self._sleep, self._worked = exchange_s, sleep, worked
        # The time of a processor that was taken since the last pause.
        self._unrested_s = 0.0
        self._redactor = Redactor(UNTOLD_CALL, provider.key, Allowance())
        self._streams = Streams(provider.url, provider.key, provider.local)

    def upload(self, name: str, size: int, pieces: Iterable[bytes]) -> str:
        """Upload a file of calls under this name; its id. The `pieces` have `size` bytes."""
        form = _Form(name, size, pieces)
        headers = {"Content-Type": form.content_type}
        found = self._asked(found_id, "POST", "/files", form, headers)
        if found is None:
            raise BadReply("no file in the reply")
        return found

    def files_named(self, name: str) -> list[str]:
        """The ids of uploaded files with this name, of a few of them at most."""
        read = partial(_files_named, name)
        return self._asked(read, "GET", "/files?purpose=batch", most=_LIST_BYTES)

    def create(self, file_id: str, name: str, model: str) -> RemoteBatch:
        """Create a batch of a file's calls to one model."""
        body = json.dumps(self.protocol.creation(file_id, name, model)).encode()
        return self._batch("POST", "", body)

    def find(self, name: str) -> RemoteBatch | None:
        """The batch that was created under this name, None where there is none."""
        query, left = self.protocol.first_page(), LISTED
        ends_at = time.monotonic() + _LIST_EXCHANGES * self._exchange_s
        for number in range(PAGES):
            if time.monotonic() > ends_at:
                raise CallTimedOut("the pages of the list of batches take too long")
            read = partial(self._page, name, number)
            page = self._asked(read, "GET", self.protocol.path + query, most=_LIST_BYTES)
            left -= page.listed
            if left < 0:
                raise BadReply(f"the list has over {LISTED:,} batches")
            if page.found is not None or not page.next:
                return page.found
            query = page.next
        raise BadReply(f"the list of batches has over {PAGES:,} pages")

    def look(self, batch_id: str) -> RemoteBatch:
        """The batch as it is now."""
        return self._batch("GET", f"/{batch_id}")

    def cancel(self, batch_id: str) -> None:
        """Ask the provider to carry out no more of a batch."""
        self._asked(_nothing, "POST", f"{self.protocol.path}/{batch_id}/cancel", b"")

    def download(
        self, file_id: str, calls: int, came: Callable[[int], object] = _unnoted
    ) -> Iterator[bytes]:
        """The bytes of a file of results of so many calls at most, piece by piece.

        `came` is told how many bytes have come for them, which are fewer where they came packed.
        Raises `Overlong` where there are more than so many calls can have.
        """
        size, most = 0, max(limits.BATCH_OUTPUT_BYTES, calls * limits.BATCH_REPLY_BYTES)
        # Each line takes time, even an empty one.
        lines, most_lines = 0, limits.BATCH_OUTPUT_LINES + calls * limits.BATCH_REPLY_LINES
        for chunk in self._pieces("GET", f"/files/{file_id}/content", seconds=FILE_S, came=came):
            size += len(chunk)
            lines += chunk.count(b"\n")
            if size > most or lines > most_lines:
                raise Overlong("the file of results is too long")
            yield chunk

    def delete(self, file_id: str) -> None:
        """Delete a file at the provider."""
        self._asked(_nothing, "DELETE", f"/files/{file_id}")

    def close(self) -> None:
        """End what is under way, and close the connections."""
        self._streams.close()

    def _batch(self, method: str, path: str, body: bytes | None = None) -> RemoteBatch:
        try:
            return self._asked(self.protocol.read, method, self.protocol.path + path, body)
        except ValueError as error:
            raise BadReply(str(error)) from None

    def _page(self, name: str, number: int, payload: Any) -> _Page:
        """What the page with this number says."""
        listed = _listed(payload)
        batches = self._read(listed) if len(listed) <= LISTED else ()
        found = next((batch for batch in batches if batch.name == name), None)
        return _Page(len(listed), found, self.protocol.page(payload, number))

    def _read(self, listed: list[Any]) -> Iterator[RemoteBatch]:
        for one in listed:
            try:
                yield self.protocol.read(one)
            except ValueError:
                continue

    def _asked(
        self,
        read: Callable[[Any], ResultT],
        method: str,
        path: str,
        body: bytes | _Form | None = None,
        headers: Mapping[str, str] | None = None,
        most: int = limits.REPLY_BYTES,
    ) -> ResultT:
        """What `read` makes of the JSON of a reply, which has at most so many bytes."""
        data, seconds = bytearray(), FILE_S if isinstance(body, _Form) else self._exchange_s
        for piece in self._pieces(method, path, body, headers, seconds):
            data += piece
            if len(data) > most:
                raise BadReply("the reply is too long")
        return self.read_slowly(lambda: read(parsed(bytes(data or b"null"))))

    def read_slowly(self, read: Callable[[], ResultT], usual_s: float = 0.0) -> ResultT:
        """What `read` makes of something that the provider sent, in turns and with pauses.

        What it takes of a processor beyond the `usual_s` seconds is followed by pauses.
        """
        with _TURNS.setdefault(self._name, threading.Lock()):
            began = self._worked()
            try:
                with _READING:
                    return read()
            finally:
                self._unrested_s += max(0.0, self._worked() - began - usual_s)
                if self._unrested_s > _SHORT_S:
                    rest_s, self._unrested_s = REST * self._unrested_s, 0.0
                    self._sleep(rest_s)

    def _pieces(
        self,
        method: str,
        path: str,
        body: bytes | _Form | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = EXCHANGE_S,
        came: Callable[[int], object] = _unnoted,
    ) -> Iterator[bytes]:
        """The body of a reply that is no error; all of it comes within so many `seconds`."""
        given = headers or {"Content-Type": "application/json"}
        try:
            yield from self._streams.pieces(method, path, body, given, seconds, self._refusal, came)
        except Resting:
            # What made it rest has its line in the log already.
            raise
        except ProviderError as error:
            kind, shown = type(error).__name__, _shown(path)
            _log.warning("batches of %s: %s %s: %s: %s", self._name, method, shown, kind, error)
            raise

    def _refusal(self, reply: Reply) -> ProviderError:
        return refusal(reply, self._redactor, self._now())


def _shown(path: str) -> str:
    """A path for the log, without the ids: a provider may put into them what it was sent."""
    words = path.partition("?")[0].split("/")
    return "/".join(word if word in _WORDS else REMOVED for word in words)


def _nothing(payload: Any) -> None:
    """What a reply says of which only the status counts."""


def _files_named(name: str, payload: Any) -> list[str]:
    """The ids of the files with this name in a list, where it is one."""
    listed = payload.get("data") if isinstance(payload, dict) else None
    named = (
        found_id(one)
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and one.get("filename") == name
    )
    return list(islice(filter(None, named), _SAME_NAMED))


def _listed(payload: Any) -> list[Any]:
    listed = (payload.get("data") or []) if isinstance(payload, dict) else None
    if not isinstance(listed, list):
        raise BadReply("no list of batches in the reply")
    return listed


class _Form:
    """A file as a form that is sent piece by piece (RFC 7578)."""

    def __init__(self, name: str, size: int, pieces: Iterable[bytes]) -> None:
        boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._size, self._pieces = size, pieces
        self._head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        ).encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()

    def __len__(self) -> int:
        return len(self._head) + self._size + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        """Raises `OSError` and what reading the pieces raises."""
        waiting = bytearray(self._head)
        for piece in self._pieces:
            waiting += piece
            if len(waiting) >= CHUNK_BYTES:
                yield bytes(waiting)
                waiting.clear()
        yield bytes(waiting)
        yield self._tail
