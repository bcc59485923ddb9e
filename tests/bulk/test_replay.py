"""Replies of a book: each call has its own, and what is missing is wanted."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import pytest

from svc.bulk.replay import TRIES, Replay
from svc.errors import Pending
from svc.records import Model

MODEL = Model("@own/m", "own", "m")


@dataclass
class Wants:
    calls: list[str] = field(default_factory=list)

    def add(self, call: str, model: Model, body: bytes) -> None:
        self.calls.append(call)


def wanted(row: int, *bodies: bytes, model: Model = MODEL) -> list[str]:
    """The ids of the calls that a row wants where nothing is known."""
    wants = Wants()
    replay = Replay([], wants.add)
    replay.begin(row)
    for body in bodies:
        with pytest.raises(Pending):
            replay.reply(model, body)
    return wants.calls


def book(*lines: tuple[str, int, bytes]) -> io.BytesIO:
    return io.BytesIO(b"".join(b"%s %d %s\n" % (c.encode(), s, body) for c, s, body in lines))


def test_a_row_wants_the_same_calls_whenever_it_is_replayed() -> None:
    assert wanted(3, b"a", b"b") == wanted(3, b"a", b"b")


def test_each_row_and_each_call_of_it_has_a_reply_of_its_own() -> None:
    other = Model("@two/m", "two", "m")
    ids = [*wanted(1, b"a", b"a", b"b"), *wanted(2, b"a"), *wanted(1, b"a", model=other)]
    assert len(set(ids)) == 5


def test_replies_are_found_in_any_of_the_files() -> None:
    first, second = wanted(1, b"a", b"b")
    files = [book((second, 200, b'{"n": 2}')), book((first, 400, b'{"n": "a b"}'))]
    replay = Replay(files, Wants().add)
    replay.begin(1)
    replies = [replay.reply(MODEL, body) for body in (b"a", b"b")]
    assert [(one.status, one.body.strip()) for one in replies] == [
        (400, b'{"n": "a b"}'),
        (200, b'{"n": 2}'),
    ]


@pytest.mark.parametrize("status", [0, 408, 409, 425, 429, 500, 502, 503, 599])
def test_what_may_succeed_later_is_wanted_again_so_many_times(status: int) -> None:
    (call,) = wanted(1, b"a")
    for tries in range(1, TRIES):
        wants = Wants()
        replay = Replay([book((call, status, b"{}")) for _ in range(tries)], wants.add)
        replay.begin(1)
        with pytest.raises(Pending):
            replay.reply(MODEL, b"a")
        assert wants.calls == [call]
    replay = Replay([book((call, status, b"{}")) for _ in range(TRIES)], Wants().add)
    replay.begin(1)
    assert replay.reply(MODEL, b"a").status == (status or 503)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 422, 501])
def test_what_would_come_again_counts_at_once(status: int) -> None:
    (call,) = wanted(1, b"a")
    replay = Replay([book((call, status, b"{}"))], Wants().add)
    replay.begin(1)
    assert replay.reply(MODEL, b"a").status == status
