"""What the Batch APIs of providers call things: one class a protocol.

A batch is a file of calls, one JSON object a line, that the provider carries out within a day and
at a lower price. Sources: the clients that the providers publish, openai 3.54 (which groq 1.7
agrees with) and mistralai 3.7, November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from svc import limits
from svc.jsontext import JsonObject

# What every call of a batch asks, and how long the provider may take for it.
ENDPOINT = "/v1/chat/completions"
WINDOW_HOURS = 24

# The name of a batch in its metadata, by which it is found again.
NAME = "svc"

_PAGE = 100

# An id becomes part of a path, and of lines of the log.
_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,199}")


class State(Enum):
    """How far a batch is.

    What has `ended` may lack results, as it may have expired. Of what has `failed` nothing was
    carried out.
    """

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch as its provider shows it.

    `done` are the calls that have a result. `files` are the ids of its results. `codes` say why it
    failed, in the provider's words.
    """

    id: str
    state: State
    name: str = ""
    done: int = 0
    files: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


class BatchProtocol(Protocol):
    """How one kind of Batch API is spoken; its `path` follows the base URL."""

    path: str

    def line(self, custom_id: str, body: bytes) -> bytes:
        """The line of a file for one call, without its line break."""

    def creation(self, file_id: str, name: str, model: str) -> JsonObject:
        """The body that creates a batch."""

    def read(self, payload: Any) -> RemoteBatch:
        """The batch in a reply. Raises `ValueError` where there is none."""

    def page(self, payload: Any, number: int) -> str:
        """The query for the page after the given one, which has this number; empty for none."""

    def first_page(self) -> str:
        """The query for the first page of batches."""


class OpenAIBatches:
    """`/batches`."""

    path = "/batches"
    _states: Mapping[str, State] = {
        "completed": State.ENDED,
        "expired": State.ENDED,
        "failed": State.FAILED,
        "cancelled": State.CANCELLED,
    }

    def line(self, custom_id: str, body: bytes) -> bytes:
        head = f'{{"custom_id":"{custom_id}","method":"POST","url":"{ENDPOINT}","body":'
        return b"%s%s}" % (head.encode(), body)

    def creation(self, file_id: str, name: str, model: str) -> JsonObject:
        return {
            "input_file_id": file_id,
            "endpoint": ENDPOINT,
            "completion_window": f"{WINDOW_HOURS}h",
            "metadata": {NAME: name},
        }

    def read(self, payload: Any) -> RemoteBatch:
        batch_id, counts = _id(payload), _object(payload, "request_counts")
        errors = _object(payload, "errors").get("data")
        return RemoteBatch(
            batch_id,
            self._states.get(_text(payload, "status"), State.RUNNING),
            _text(_object(payload, "metadata"), NAME),
            _count(counts, "completed") + _count(counts, "failed"),
            _ids(payload, "output_file_id", "error_file_id"),
            _codes(errors, "code"),
        )

    def first_page(self) -> str:
        return f"?limit={_PAGE}"

    def page(self, payload: Any, number: int) -> str:
        listed = payload.get("data") or [{}]
        last = found_id(listed[-1])
        return f"?limit={_PAGE}&after={last}" if payload.get("has_more") and last else ""


class MistralBatches:
    """`/batch/jobs`, where the batch and not the call names the model."""

    path = "/batch/jobs"
    _states: Mapping[str, State] = {
        "SUCCESS": State.ENDED,
        "TIMEOUT_EXCEEDED": State.ENDED,
        "FAILED": State.FAILED,
        "CANCELLED": State.CANCELLED,
    }

    def line(self, custom_id: str, body: bytes) -> bytes:
        return b'{"custom_id":"%s","body":%s}' % (custom_id.encode(), body)

    def creation(self, file_id: str, name: str, model: str) -> JsonObject:
        return {
            "input_files": [file_id],
            "endpoint": ENDPOINT,
            "model": model,
            "timeout_hours": WINDOW_HOURS,
            "metadata": {NAME: name},
        }

    def read(self, payload: Any) -> RemoteBatch:
        batch_id = _id(payload)
        return RemoteBatch(
            batch_id,
            self._states.get(_text(payload, "status"), State.RUNNING),
            _text(_object(payload, "metadata"), NAME),
            _count(payload, "completed_requests"),
            _ids(payload, "output_file", "error_file"),
            _codes(payload.get("errors"), "message"),
        )

    def first_page(self) -> str:
        return f"?page_size={_PAGE}"

    def page(self, payload: Any, number: int) -> str:
        full = len(payload.get("data") or ()) == _PAGE
        return f"?page_size={_PAGE}&page={number + 1}" if full else ""


BATCH_PROTOCOLS: Mapping[str, BatchProtocol] = {
    "openai": OpenAIBatches(),
    "mistral": MistralBatches(),
}


def found_id(payload: Any) -> str | None:
    """The id of what a reply shows, None where it has none that can be used."""
    found = payload.get("id") if isinstance(payload, dict) else None
    return found if isinstance(found, str) and _ID.fullmatch(found) else None


def _id(payload: Any) -> str:
    found = found_id(payload)
    if found is None:
        raise ValueError("no batch in the reply")
    return found


def _object(payload: Any, name: str) -> Mapping[str, Any]:
    found = payload.get(name)
    return found if isinstance(found, dict) else {}


def _text(payload: Mapping[str, Any], name: str) -> str:
    found = payload.get(name)
    return found if isinstance(found, str) else ""


def _ids(payload: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    found = tuple(text for name in names if (text := _text(payload, name)))
    if not all(map(_ID.fullmatch, found)):
        # Without its results the calls would be paid a second time.
        raise ValueError("a file in the reply has an id that cannot be used")
    return found


def _count(payload: Mapping[str, Any], name: str) -> int:
    """How many calls it says, of which a batch has only so many."""
    found = payload.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        return 0
    return min(max(0, found), limits.BATCH_LINES)


def _codes(errors: Any, name: str) -> tuple[str, ...]:
    listed = errors if isinstance(errors, list) else []
    return _texts_of([one for one in listed if isinstance(one, dict)], name)


def _texts_of(listed: list[JsonObject], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for one in listed if (text := _text(one, name))))
