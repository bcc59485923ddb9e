"""What is learnt about models: how it is kept, shared and given up again."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from svc.providers.traits import (
    FIELDS,
    FIRST_RETRY,
    FORGET_S,
    LAST_RETRY,
    MISSES,
    NO_CORRECTIONS,
    TOP,
    UNKNOWN,
    Corrections,
    Reason,
    Rung,
    TraitMemory,
    Traits,
)

FULL = Traits(
    refused=frozenset(FIELDS),
    top_logprobs=20,
    most_tokens=9_999_999,
    least_tokens=4_096,
    thinks=True,
    labels=Rung(2, Reason.NO_PROBABILITIES, 2, 0b101, LAST_RETRY, LAST_RETRY),
    json=Rung(3, Reason.CUT, 1, 0b1110, 7, 50),
    learnt_at=1_000.0,
)
UNREADABLE = Reason.UNREADABLE


class Clock:
    """Every look at it takes `step` seconds."""

    def __init__(self, step: float = 1.0) -> None:
        self.now, self.step = 1_000.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def without(*fields: str) -> Traits:
    return Traits(refused=frozenset(fields))


# --- what is kept ---


def test_nothing_is_known_at_first() -> None:
    assert TraitMemory(slots=4).of("m") == UNKNOWN == Traits()


def test_refusals_add_up_per_model() -> None:
    memory = TraitMemory(slots=64)
    memory.learn("@p/m", without("temperature"))
    memory.learn("@p/m", without("reasoning"))
    memory.learn("@p/m", without("reasoning"))
    assert memory.of("@p/m").refused == {"temperature", "reasoning"}
    assert memory.of("@q/m") == memory.of("m") == UNKNOWN


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_kept_apart_from_the_others(field: str) -> None:
    memory = TraitMemory(slots=4)
    memory.learn("m", without(field))
    assert memory.of("m").refused == {field}


def test_all_that_can_be_known_comes_back_as_it_was() -> None:
    memory = TraitMemory(slots=4, clock=Clock(step=0.0))
    memory.change("m", lambda _: FULL)
    assert memory.of("m") == FULL
    memory.change("m", lambda traits: replace(traits, thinks=False))
    assert memory.of("m") == replace(FULL, thinks=False)
    memory.change("m", lambda _: UNKNOWN)
    assert memory.of("m") == UNKNOWN


def test_a_change_is_made_from_what_is_known_by_then() -> None:
    memory = TraitMemory(slots=4)
    memory.change("m", lambda traits: replace(traits, top_logprobs=5))
    memory.change("m", lambda traits: replace(traits, most_tokens=2 * traits.top_logprobs))
    assert memory.of("m") == Traits(top_logprobs=5, most_tokens=10)


def test_few_slots_forget_the_models_written_longest_ago() -> None:
    memory = TraitMemory(slots=2, clock=Clock())
    for model in ("a", "b"):
        memory.learn(model, without("temperature"))
    memory.learn("a", without("reasoning"))
    memory.learn("c", without("temperature"))
    assert [bool(memory.of(model).refused) for model in ("a", "b", "c")] == [True, False, True]
    assert memory.of("a").refused == {"temperature", "reasoning"}


def test_where_a_record_stands_is_different_in_each_memory() -> None:
    """Else callers could choose names whose records take the places of others."""
    memories = [TraitMemory(slots=1_000, clock=Clock()) for _ in range(5)]
    for memory in memories:
        memory.learn("m", without("temperature"))
    assert len({bytes(memory._memory) for memory in memories}) == 5


def test_a_change_that_changes_nothing_is_not_written() -> None:
    memory = TraitMemory(slots=2, clock=Clock())
    for model in ("a", "b", "a"):
        memory.change(model, lambda _: without("temperature"))
    memory.change("c", lambda _: without("temperature"))
    assert [bool(memory.of(model).refused) for model in ("a", "b", "c")] == [False, True, True]


def test_a_lesson_learnt_again_is_as_good_as_new() -> None:
    memory = TraitMemory(slots=2, clock=Clock())
    for model in ("a", "b", "a"):
        memory.learn(model, without("temperature"))
    memory.learn("c", without("temperature"))
    assert [bool(memory.of(model).refused) for model in ("a", "b", "c")] == [True, False, True]


def test_as_many_models_as_there_are_slots_are_mostly_kept_and_never_mixed_up() -> None:
    memory = TraitMemory(slots=512, clock=Clock())
    for number in range(512):
        limit = 100 + number
        memory.change(f"m{number}", lambda traits, n=limit: replace(traits, most_tokens=n))
    kept = [memory.of(f"m{number}").most_tokens for number in range(512)]
    assert all(found in (0, 100 + number) for number, found in enumerate(kept))
    assert sum(map(bool, kept)) > 400


@pytest.mark.parametrize("model", ["", "x" * 300, "@p/\ud7ff\u00e9", "@p/a b"])
def test_any_id_is_taken(model: str) -> None:
    memory = TraitMemory(slots=4)
    memory.learn(model, without("thinking"))
    assert memory.of(model).refused == {"thinking"}


def test_lessons_of_many_threads_are_all_kept() -> None:
    memory = TraitMemory(slots=16)

    def learn() -> None:
        for _ in range(200):
            memory.change("m", lambda traits: replace(traits, most_tokens=traits.most_tokens + 1))

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.of("m").most_tokens == 800


# --- corrections ---


def test_a_correction_adds_refused_fields_and_its_bounds_win() -> None:
    old = Traits(frozenset({"temperature"}), 20, 8_000, 16, True, FULL.labels, FULL.json, 7.0)
    correction = Traits(frozenset({"reasoning"}), 5, 4_000, 64)
    merged = Traits(
        frozenset({"temperature", "reasoning"}), 5, 4_000, 64, True, FULL.labels, FULL.json, 7.0
    )
    assert old.corrected(correction) == merged


@pytest.mark.parametrize("old", [UNKNOWN, FULL])
def test_a_correction_of_nothing_changes_nothing(old: Traits) -> None:
    assert old.corrected(UNKNOWN) == old


def test_a_correction_teaches_nothing_of_thought_and_of_ladders() -> None:
    found = UNKNOWN.corrected(FULL)
    assert found == replace(FULL, thinks=False, labels=TOP, json=TOP, learnt_at=0.0)


def test_only_lasting_corrections_are_kept_apart_for_the_memory() -> None:
    first = NO_CORRECTIONS.plus(without("temperature"), lasting=True)
    second = first.plus(Traits(most_tokens=50), lasting=False)
    third = second.plus(Traits(frozenset({"reasoning"}), top_logprobs=5), lasting=True)
    assert Corrections(UNKNOWN, UNKNOWN) == NO_CORRECTIONS
    assert first == Corrections(without("temperature"), without("temperature"))
    assert (second.all, second.lasting) == (
        Traits(frozenset({"temperature"}), most_tokens=50),
        without("temperature"),
    )
    both = frozenset({"temperature", "reasoning"})
    assert (third.all, third.lasting) == (
        Traits(both, top_logprobs=5, most_tokens=50),
        Traits(both, top_logprobs=5),
    )


# --- what is forgotten ---


def test_what_was_learnt_says_when_it_was() -> None:
    clock = Clock(step=0.0)
    memory = TraitMemory(slots=4, clock=clock)
    memory.learn("m", Traits(top_logprobs=5))
    assert memory.of("m") == Traits(top_logprobs=5, learnt_at=1_000.0)
    clock.now += 10.0
    memory.needs_room("m")
    assert memory.of("m") == Traits(top_logprobs=5, thinks=True, learnt_at=1_010.0)


def test_refusals_bounds_and_thought_are_forgotten_after_an_hour_and_rungs_are_not() -> None:
    clock = Clock(step=0.0)
    memory = TraitMemory(slots=4, clock=clock)
    memory.change("m", lambda _: replace(UNKNOWN, labels=FULL.labels, json=FULL.json))
    memory.learn("m", FULL)
    memory.needs_room("m")
    clock.now += FORGET_S
    assert memory.of("m") == FULL
    clock.now += 1.0
    assert memory.of("m") == Traits(labels=FULL.labels, json=FULL.json)
    assert FORGET_S == 3_600


def test_rungs_alone_are_never_forgotten() -> None:
    clock = Clock(step=0.0)
    memory = TraitMemory(slots=4, clock=clock)
    memory.change("m", lambda _: Traits(labels=FULL.labels))
    clock.now += 1_000 * FORGET_S
    assert memory.of("m") == Traits(labels=FULL.labels)


@pytest.mark.parametrize("lesson", ["learn", "needs_room"])
def test_the_hour_begins_anew_with_each_lesson(lesson: str) -> None:
    clock = Clock(step=0.0)
    memory = TraitMemory(slots=4, clock=clock)
    memory.learn("m", without("temperature"))
    clock.now += FORGET_S - 1.0
    if lesson == "learn":
        memory.learn("m", without("reasoning"))
    else:
        memory.needs_room("m")
    clock.now += FORGET_S - 1.0
    assert "temperature" in memory.of("m").refused
    clock.now += 2.0
    assert memory.of("m") == UNKNOWN


def test_a_step_of_a_ladder_does_not_lengthen_the_hour() -> None:
    clock = Clock(step=0.0)
    memory = TraitMemory(slots=4, clock=clock)
    memory.learn("m", without("temperature"))
    clock.now += FORGET_S
    memory.change("m", lambda traits: replace(traits, labels=FULL.labels))
    assert memory.of("m").refused
    clock.now += 1.0
    assert memory.of("m") == Traits(labels=FULL.labels)


def test_what_was_forgotten_does_not_come_back_with_a_new_lesson() -> None:
    clock = Clock(step=0.0)
    memory = TraitMemory(slots=4, clock=clock)
    memory.learn("m", without("temperature"))
    memory.needs_room("m")
    clock.now += FORGET_S + 1.0
    memory.learn("m", without("reasoning"))
    assert memory.of("m") == replace(without("reasoning"), learnt_at=clock.now)


# --- several processes ---


def run(script: str) -> str:
    """What a script prints that has `os`, `replace`, `refuse` and a small `memory`."""
    opening = """
import os, signal
from dataclasses import replace
from svc.providers.traits import TraitMemory, Traits

memory = TraitMemory(slots=16)

def refuse(model, field):
    memory.learn(model, Traits(refused=frozenset({field})))

def forked(run):
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    return child
"""
    found = subprocess.run(
        [sys.executable, "-c", opening + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return found.stdout


def test_a_process_knows_what_those_before_and_after_it_learnt() -> None:
    told = run("""
refuse("@p/m", "temperature")
to_child, from_parent = os.pipe()
to_parent, from_child = os.pipe()

def child():
    os.write(from_child, ",".join(memory.of("@p/m").refused).encode() + b" ")
    refuse("@p/m", "reasoning")
    refuse("@p/n", "thinking")
    os.write(from_child, b"!")
    os.read(to_child, 1)
    os.write(from_child, str(memory.of("@p/n").top_logprobs).encode())

number = forked(child)
seen = b""
while not seen.endswith(b"!"):
    seen += os.read(to_parent, 100)
print(seen.decode())
print(sorted(memory.of("@p/m").refused), sorted(memory.of("@p/n").refused))
memory.change("@p/n", lambda traits: replace(traits, top_logprobs=5))
os.write(from_parent, b"x")
os.waitpid(number, 0)
print(os.read(to_parent, 100).decode())
""")
    assert told.splitlines() == ["temperature !", "['reasoning', 'temperature'] ['thinking']", "5"]


def test_lessons_of_many_processes_are_all_kept() -> None:
    told = run("""
def learn():
    for _ in range(250):
        memory.change("m", lambda traits: replace(traits, most_tokens=traits.most_tokens + 1))

for child in [forked(learn) for _ in range(4)]:
    os.waitpid(child, 0)
print(memory.of("m").most_tokens)
""")
    assert told == "1000\n"


def test_a_process_that_is_killed_while_it_learns_blocks_nobody() -> None:
    told = run("""
def fatal(traits):
    os.kill(os.getpid(), signal.SIGKILL)

os.waitpid(forked(lambda: memory.change("m", fatal)), 0)
refuse("m", "temperature")
print(*memory.of("m").refused)
""")
    assert told == "temperature\n"


# --- one ladder ---


def after(rung: Rung, *asks: tuple[Sequence[int], int]) -> Rung:
    """The rung after asks of `(ways that failed, way that worked)`."""
    for failed, worked in asks:
        rung = rung.after(failed, worked, UNREADABLE)
    return rung


WORKED_AT_TOP: tuple[Sequence[int], int] = ((), 0)
FELL: tuple[Sequence[int], int] = ((0,), 1)


def test_the_top_is_never_due() -> None:
    assert not TOP.due
    assert not after(TOP, *[WORKED_AT_TOP] * 1_000).due


def test_a_way_that_never_worked_is_given_up_at_its_first_failure() -> None:
    assert after(TOP, FELL) == Rung(1, UNREADABLE, proven=0b10)


def test_a_way_that_worked_before_is_given_up_after_three_failures_in_a_row() -> None:
    proven = after(TOP, WORKED_AT_TOP)
    assert [after(proven, *[FELL] * n).index for n in range(1, MISSES + 1)] == [0, 0, 1]
    assert after(proven, *[FELL] * MISSES) == Rung(1, UNREADABLE, proven=0b11)


def test_a_success_in_between_forgives_the_failures() -> None:
    rung = after(TOP, WORKED_AT_TOP, FELL, FELL, WORKED_AT_TOP, FELL, FELL)
    assert (rung.index, rung.misses) == (0, 2)


LOWER: tuple[Sequence[int], int] = ((), 1)  # one label was asked for, so the top was not tried


def test_a_way_that_was_not_tried_is_not_blamed() -> None:
    assert after(TOP, *[LOWER] * 10) == Rung(0, proven=0b10)


def test_a_lower_way_that_worked_unasked_proves_itself_alone() -> None:
    missed = after(TOP, WORKED_AT_TOP, FELL, FELL)
    assert after(missed, LOWER) == replace(missed, proven=0b11)
    waiting = Rung(1, UNREADABLE, 1, 0b10, 7, 50)
    assert after(waiting, ((), 2)) == replace(waiting, proven=0b110)


def test_successes_of_a_lower_way_do_not_keep_a_top_that_never_worked() -> None:
    assert after(TOP, LOWER, LOWER, FELL) == Rung(1, UNREADABLE, proven=0b10)


def test_successes_of_a_lower_way_neither_forgive_nor_count_the_failures_of_the_top() -> None:
    rung = after(TOP, WORKED_AT_TOP, FELL, LOWER, FELL, LOWER)
    assert (rung.index, rung.misses) == (0, 2)
    assert after(rung, FELL).index == 1


def test_a_way_is_proven_for_ever_once_it_worked() -> None:
    rung = after(TOP, WORKED_AT_TOP, *[FELL] * MISSES, *[((0, 1), 2)] * MISSES)
    assert (rung.index, rung.proven) == (2, 0b111)
    assert after(rung, WORKED_AT_TOP) == Rung(0, proven=0b111)


@pytest.mark.parametrize(
    ("proven", "failed", "index"),
    [
        (0b000, (0,), 1),
        (0b010, (0,), 1),
        (0b001, (0,), 0),
        (0b100, (0, 1), 2),
        (0b001, (0, 1), 0),
        (0b010, (0, 1), 0),
    ],
)
def test_ways_are_given_up_at_once_unless_one_that_failed_has_worked_before(
    proven: int, failed: Sequence[int], index: int
) -> None:
    asked = (failed, len(failed))
    found = after(Rung(proven=proven), asked)
    assert (found.index, found.misses) == (index, int(index == 0))
    assert after(Rung(proven=proven), *[asked] * MISSES).index == len(failed)


def test_an_ask_in_which_a_proven_way_worked_below_a_top_in_use_settles_it() -> None:
    both = after(TOP, WORKED_AT_TOP, LOWER)
    assert both.settled(0) and both.settled(1)
    assert not both.settled(2)
    assert not TOP.settled(0) and not TOP.settled(1)
    assert not after(TOP, WORKED_AT_TOP).settled(1)


def test_a_rung_with_misses_or_below_the_top_is_never_settled() -> None:
    assert not any(Rung(misses=1, proven=0b11).settled(way) for way in (0, 1))
    assert not any(Rung(1, UNREADABLE, proven=0b11).settled(way) for way in (0, 1))


@pytest.mark.parametrize("proven", range(8))
@pytest.mark.parametrize("worked", range(3))
def test_an_ask_that_settles_a_rung_would_change_nothing(proven: int, worked: int) -> None:
    rung = Rung(proven=proven)
    assert rung.settled(worked) == (after(rung, ((), worked)) == rung)


def test_several_ways_may_be_given_up_at_once_and_all_of_them() -> None:
    assert after(TOP, ((0, 1), 2)).index == 2
    assert after(TOP, ((0, 1, 2), 3)) == Rung(3, UNREADABLE, proven=0b1000)


def test_the_top_is_tried_again_after_longer_and_longer_waits() -> None:
    rung, waits, waited = after(TOP, FELL), [], 0
    while len(waits) < 7:
        waited += 1
        if rung.due:
            waits.append(waited)
            rung, waited = after(rung, FELL), 0
        else:
            rung = after(rung, ((), 1))
    assert waits == [25, 50, 100, 200, 400, 400, 400]
    assert (FIRST_RETRY, LAST_RETRY) == (25, 400)


def test_a_top_that_works_again_is_taken_up_at_once_with_patience_as_at_first() -> None:
    rung = Rung(1, UNREADABLE, proven=0b10, asks=24)
    assert rung.due
    assert after(rung, WORKED_AT_TOP) == Rung(0, proven=0b11)
    assert after(rung, WORKED_AT_TOP).patience == FIRST_RETRY


def test_a_middle_that_works_again_is_taken_up_with_its_reason() -> None:
    rung = Rung(2, Reason.REFUSED, proven=0b100, asks=24)
    assert after(rung, FELL) == Rung(1, UNREADABLE, proven=0b110)


def test_asks_that_wait_are_counted_no_further_than_needed() -> None:
    assert Rung(1, asks=LAST_RETRY).waited().asks == LAST_RETRY
    assert TOP.waited() == TOP


def test_a_retry_that_also_loses_the_way_in_use_counts_as_a_miss_of_it() -> None:
    rung = Rung(1, UNREADABLE, proven=0b10, asks=24)
    lost = after(rung, ((0, 1), 2))
    assert (lost.index, lost.misses) == (1, 1)
    assert after(lost, ((0, 1), 2), ((0, 1), 2)).index == 2


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_told_in_words_but_none(reason: Reason) -> None:
    assert bool(reason.words) is (reason is not Reason.NONE)
