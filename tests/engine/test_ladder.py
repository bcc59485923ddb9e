"""Which ways of asking are tried, and what is remembered of how they went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import cast

import pytest

from svc.engine.ladder import Climb, moves_on, ways
from svc.errors import RateLimited
from svc.providers.failures import (
    BadReply,
    CallTimedOut,
    Cut,
    FormatRefused,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
    Unanswerable,
    Unread,
)
from svc.providers.traits import MISSES, UNKNOWN, Reason, Rung, TraitMemory, Traits, Way
from svc.terms import Mode

LINES, SINGLE, SCHEMA, OBJECT, WORDS = Way.LINES, Way.SINGLE, Way.SCHEMA, Way.OBJECT, Way.WORDS
JSON = [SCHEMA, OBJECT, WORDS]
M = "@p/m"
NONE_WORKED = 1 << 2  # the bit of what follows the label ways


@pytest.fixture
def memory() -> Iterator[TraitMemory]:
    with closing(TraitMemory(slots=8)) as made:
        yield made


def tried(
    mode: str, labels: int = 3, verbal_only: bool = False, traits: Traits = UNKNOWN
) -> list[Way]:
    return ways(traits, mode, labels=labels, verbal_only=verbal_only)


def at(labels: int = 0, json: int = 0, due: bool = False) -> Traits:
    """A model that stands on these rungs; `due` says that their tops are tried again now."""
    asks = 24 if due else 0
    return Traits(labels=Rung(labels, asks=asks), json=Rung(json, asks=asks))


def test_an_unknown_model_is_asked_down_both_ladders() -> None:
    assert tried(Mode.AUTO) == [LINES, SINGLE, *JSON]
    assert tried(Mode.LOGPROBS) == [LINES, SINGLE]
    assert tried(Mode.VERBAL) == JSON
    assert tried(Mode.AUTO, verbal_only=True) == JSON


def test_one_label_is_asked_for_in_one_way() -> None:
    assert tried(Mode.AUTO, labels=1) == [SINGLE, *JSON]
    assert tried(Mode.LOGPROBS, labels=1) == [SINGLE]
    assert tried(Mode.VERBAL, labels=1) == JSON


def test_what_is_remembered_is_where_the_asking_begins() -> None:
    assert tried(Mode.AUTO, traits=at(labels=1)) == [SINGLE, *JSON]
    assert tried(Mode.AUTO, traits=at(labels=2)) == JSON
    assert tried(Mode.AUTO, traits=at(labels=2, json=1)) == [OBJECT, WORDS]
    assert tried(Mode.VERBAL, traits=at(json=2)) == [WORDS]
    assert tried(Mode.AUTO, traits=at(json=2)) == [LINES, SINGLE, WORDS]


def test_a_mode_with_one_ladder_is_asked_down_all_of_it_where_nothing_is_left() -> None:
    assert tried(Mode.LOGPROBS, traits=at(labels=2)) == [LINES, SINGLE]
    assert tried(Mode.VERBAL, traits=at(json=3)) == JSON
    assert tried(Mode.AUTO, traits=at(labels=2, json=3)) == JSON
    assert tried(Mode.LOGPROBS, labels=1, traits=at(labels=2)) == [SINGLE]


def test_now_and_then_the_top_is_tried_again() -> None:
    assert tried(Mode.AUTO, traits=at(labels=2, json=1, due=True)) == [LINES, SINGLE, *JSON]
    assert tried(Mode.AUTO, labels=1, traits=at(labels=2, due=True)) == [SINGLE, *JSON]
    assert tried(Mode.VERBAL, traits=at(json=2, due=True)) == JSON


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (NoLogprobs(), True),
        (FormatRefused(), True),
        (BadReply(), True),
        (Cut(), True),
        (Refused(), False),
        (KeyRefused(), False),
        (NoCredit(), False),
        (Unanswerable("x"), False),
        (Gone(), False),
        (Throttled(), False),
        (ServerTrouble(), False),
        (CallTimedOut(), False),
        (RateLimited("x", 1), False),
    ],
)
def test_another_way_is_tried_only_where_it_may_help(
    failure: ProviderError, expected: bool
) -> None:
    assert moves_on(failure) is expected


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        ([NoLogprobs()], Reason.NO_PROBABILITIES),
        ([FormatRefused()], Reason.REFUSED),
        ([BadReply()], Reason.UNREADABLE),
        ([Cut()], Reason.CUT),
        ([Refused(), Cut()], Reason.CUT),
        ([NoLogprobs(), BadReply()], Reason.NO_PROBABILITIES),
    ],
)
def test_the_reason_is_that_of_a_failure_that_another_way_may_avoid(
    failures: list[ProviderError], reason: Reason, memory: TraitMemory
) -> None:
    climb = Climb(memory.of(M))
    climb.note_failure(SINGLE, failures)
    climb.settle(memory, M, SCHEMA)
    assert memory.of(M).labels == Rung(2, reason, proven=NONE_WORKED)


def test_a_success_at_the_top_is_remembered_as_proof_alone(memory: TraitMemory) -> None:
    Climb(memory.of(M)).settle(memory, M, LINES)
    assert memory.of(M) == Traits(labels=Rung(proven=1 << 0))


def test_every_ladder_is_remembered_on_its_own(memory: TraitMemory) -> None:
    climb = Climb(memory.of(M))
    for way in (LINES, SINGLE, SCHEMA):
        climb.note_failure(way, [BadReply()])
    climb.settle(memory, M, OBJECT)
    assert memory.of(M).labels == Rung(2, Reason.UNREADABLE, proven=NONE_WORKED)
    assert memory.of(M).json == Rung(1, Reason.UNREADABLE, proven=1 << 1)
    assert memory.of("@p/other") == UNKNOWN


def test_a_failure_below_a_way_that_was_skipped_blames_that_way_too(memory: TraitMemory) -> None:
    """The one label of a request is asked for in the lower way; nothing above it is left then."""
    climb = Climb(memory.of(M))
    climb.note_failure(SINGLE, [NoLogprobs()])
    climb.settle(memory, M, SCHEMA)
    assert memory.of(M).labels.index == 2


def test_asks_in_mode_verbal_count_towards_the_next_try_of_the_label_ways(
    memory: TraitMemory,
) -> None:
    memory.change(M, lambda _: at(labels=2, json=1))
    Climb(memory.of(M)).settle(memory, M, OBJECT)
    assert memory.of(M).labels.asks == 1
    assert memory.of(M).json.asks == 1


def test_asks_for_labels_do_not_count_for_the_json_ways(memory: TraitMemory) -> None:
    memory.change(M, lambda _: at(labels=1, json=1))
    Climb(memory.of(M)).settle(memory, M, SINGLE)
    assert memory.of(M).labels.asks == 1
    assert memory.of(M).json.asks == 0


def test_a_reply_that_was_not_read_teaches_nothing_where_a_way_below_works(
    memory: TraitMemory,
) -> None:
    climb = Climb(memory.of(M))
    climb.note_failure(LINES, [Unread(), Unread()])
    climb.settle(memory, M, SINGLE)
    assert memory.of(M).labels == Rung(proven=1 << 1)
    climb = Climb(memory.of(M))
    climb.note_failure(LINES, [Unread()])
    climb.settle(memory, M, SCHEMA)
    assert memory.of(M).labels == Rung(proven=1 << 1)


def test_an_unread_reply_above_one_that_failed_is_no_more_than_a_failure(
    memory: TraitMemory,
) -> None:
    """A way that worked before may fail a few times; one that never has is not tried for ever."""
    proven = replace(UNKNOWN, labels=Rung(proven=1 << 0))
    for known, after in ((proven, Rung(misses=1, proven=NONE_WORKED | 1)), (UNKNOWN, None)):
        memory.change(M, lambda _, known=known: known)  # type: ignore[misc]
        climb = Climb(memory.of(M))
        climb.note_failure(LINES, [Unread()])
        climb.note_failure(SINGLE, [BadReply()])
        climb.settle(memory, M, SCHEMA)
        if after:
            assert memory.of(M).labels.misses == 1 and memory.of(M).labels.index == 0
        else:
            assert memory.of(M).labels.index == 2


def test_an_unread_reply_below_one_that_failed_is_no_failure(memory: TraitMemory) -> None:
    climb = Climb(memory.of(M))
    climb.note_failure(LINES, [BadReply()])
    climb.note_failure(SINGLE, [Unread()])
    climb.settle(memory, M, SCHEMA)
    assert memory.of(M).labels.index == 1


def test_the_top_that_is_tried_again_and_not_read_is_put_off(memory: TraitMemory) -> None:
    memory.change(M, lambda _: at(labels=1, due=True))
    assert memory.of(M).labels.due
    climb = Climb(memory.of(M))
    climb.note_failure(LINES, [Unread()])
    climb.settle(memory, M, SINGLE)
    found = memory.of(M).labels
    assert not found.due and found.index == 1 and found.patience == 2 * Rung().patience


# --- requests of one label between those of several ---


def asked(
    memory: TraitMemory, worked: Way, *failed: Way, failure: ProviderError | None = None
) -> None:
    """One ask in which some ways failed before one worked."""
    climb = Climb(memory.of(M))
    for way in failed:
        climb.note_failure(way, [failure or BadReply()])
    climb.settle(memory, M, worked)


def test_a_lower_way_that_worked_without_a_failure_is_remembered_as_proof_alone(
    memory: TraitMemory,
) -> None:
    asked(memory, SINGLE)
    assert memory.of(M).labels == Rung(proven=1 << 1)
    asked(memory, LINES)
    assert memory.of(M).labels == Rung(proven=1 << 0 | 1 << 1)
    asked(memory, SINGLE)
    assert memory.of(M).labels == Rung(proven=1 << 0 | 1 << 1)


def test_a_way_that_never_worked_is_given_up_at_once_however_often_another_did(
    memory: TraitMemory,
) -> None:
    for _ in range(5):
        asked(memory, SINGLE)
    asked(memory, SINGLE, LINES)
    assert memory.of(M).labels == Rung(1, Reason.UNREADABLE, proven=1 << 1)


def test_a_way_that_worked_once_is_given_up_after_three_misses_in_a_row(
    memory: TraitMemory,
) -> None:
    asked(memory, LINES)
    for misses in range(1, MISSES):
        asked(memory, SINGLE, LINES)
        assert (memory.of(M).labels.index, memory.of(M).labels.misses) == (0, misses)
    asked(memory, SINGLE, LINES)
    assert memory.of(M).labels == Rung(1, Reason.UNREADABLE, proven=1 << 0 | 1 << 1)


def test_a_success_in_between_begins_the_misses_anew(memory: TraitMemory) -> None:
    asked(memory, LINES)
    for _ in range(3 * MISSES):
        asked(memory, SINGLE, LINES)
        asked(memory, LINES)
    assert memory.of(M).labels.index == 0
    assert memory.of(M).labels.misses == 0


def test_requests_of_one_label_neither_clear_misses_nor_add_to_them(memory: TraitMemory) -> None:
    asked(memory, LINES)
    asked(memory, SINGLE, LINES)
    asked(memory, SINGLE)
    assert memory.of(M).labels.misses == 1


def test_one_label_that_fails_does_not_unseat_lines_that_have_worked(memory: TraitMemory) -> None:
    asked(memory, SINGLE)
    asked(memory, LINES)
    asked(memory, SCHEMA, SINGLE)
    assert (memory.of(M).labels.index, memory.of(M).labels.misses) == (0, 1)


def test_an_upper_way_that_works_again_is_taken_up(memory: TraitMemory) -> None:
    memory.change(M, lambda _: replace(UNKNOWN, labels=Rung(2, Reason.CUT, proven=NONE_WORKED)))
    asked(memory, SINGLE)
    assert memory.of(M).labels == Rung(1, proven=NONE_WORKED | 1 << 1)
    asked(memory, LINES)
    assert memory.of(M).labels == Rung(0, proven=NONE_WORKED | 1 << 1 | 1 << 0)


@pytest.mark.parametrize(
    ("rung", "settled"),
    [
        (Rung(), False),
        (Rung(proven=1 << 0), True),
        (Rung(proven=1 << 1), False),
        (Rung(proven=1 << 0, misses=1), False),
        (Rung(1, proven=1 << 0), False),
    ],
)
def test_an_ask_changes_nothing_where_the_top_is_known_to_work(rung: Rung, settled: bool) -> None:
    assert rung.settled(0) is settled


def test_nothing_is_written_for_an_ask_that_teaches_nothing() -> None:
    class ReadOnly:
        def change(self, *_: object) -> None:
            raise AssertionError("written")

    known = Traits(labels=Rung(proven=1 << 0), json=Rung(proven=1 << 0))
    Climb(known).settle(cast(TraitMemory, ReadOnly()), M, LINES)
    Climb(known).settle(cast(TraitMemory, ReadOnly()), M, SCHEMA)


def test_what_other_asks_taught_meanwhile_is_kept(memory: TraitMemory) -> None:
    climb = Climb(memory.of(M))
    memory.learn(M, Traits(top_logprobs=5))
    asked(memory, OBJECT, SCHEMA)
    climb.settle(memory, M, LINES)
    found = memory.of(M)
    assert (found.top_logprobs, found.json.index, found.labels) == (5, 1, Rung(proven=1))
