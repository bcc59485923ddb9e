"""The server's log: one line an event, as text or JSON, that no caller can forge or fill.

Of a request only the id, method, path and status are logged. Of an unforeseen exception only its
type and place are, because its message may quote the data that caused it.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

# The attribute of a log record that holds further fields of the line.
FIELDS = "svc"

MINUTE_S = 60.0


class Sparingly:
    """Says which of many like lines are logged: so many a minute, and the others are counted."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._ends_at = -math.inf
        self._seen = self._left_out = 0

    def take(self) -> bool:
        """Whether one more line is logged."""
        with self._lock:
            self._begin()
            self._seen += 1
            logged = self._seen <= self._most
            self._left_out += not logged
            return logged

    def left_out(self) -> int:
        """How many lines of minutes that are over were left out, each told once."""
        with self._lock:
            if not self._left_out or self._clock() < self._ends_at:
                return 0
            told, self._left_out = self._left_out, 0
            return told

    def _begin(self) -> None:
        """Begin another minute where the last one is over."""
        now = self._clock()
        if now >= self._ends_at:
            self._ends_at, self._seen = now + MINUTE_S, 0


class TextFormatter(logging.Formatter):
    """`2026-11-21T10:00:00.000Z INFO logger: message field=value`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={_quoted(str(value))}" for key, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}{fields}"
        return _one_line(line)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(
            {
                "time": _time(record),
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
                **_fields(record),
            }
        )


def configure(as_json: bool, level: str) -> None:
    """Send every logger of this process to standard error in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Its warnings quote addresses.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    # No format shows these, and without them logging is faster. The source of this is
    # https://docs.python.org/3/howto/logging.html#optimization.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = dict(getattr(record, FIELDS, {}))
    if record.exc_info and record.exc_info[0]:
        fields["exception"] = record.exc_info[0].__name__
        frames = traceback.extract_tb(record.exc_info[2])
        fields["at"] = " < ".join(
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames)
        )
    return fields


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(text: str) -> str:
    """The value, in quotes where it could be taken for further fields."""
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
