"""Which decisions are offered to challengers, and that nobody waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from svc.deadline import Deadline
from svc.engine.challenged_request import challenged
from svc.engine.challenges import HELD_BYTES, PARSED, Challenges, promoted_by
from svc.errors import DollarsSpent, InvalidRequest, ModelUnavailable
from svc.jsontext import dumps
from svc.records import SKIPPED, Answer, AskedQuestion, Challenger, ChallengerAnswer, Decision
from svc.schemas import DecisionRequest, State, load_decision
from svc.store import StorageError
from svc.tracing import Trace
from tests.engine.models import NOUL
from tests.limited import ONLY_ROOT, errors_of
from tests.store.records import record
from tests.telemetry.recorder import Recorder

REQUEST = load_decision({"state": {"urgent": 1}, "questions": {"k": NOUL, "other": NOUL}})
DIGEST = REQUEST.questions["k"].digest
RIVAL = Challenger(3, "default", "k", DIGEST, "@here/rival", None, 0.5)
# No more than a guard: in a test that passes nothing waits so long.
PATIENCE_S = 60.0


def made(*, key: str = "k", digest: bytes = DIGEST, **fields: object) -> Decision:
    asked = AskedQuestion(key, digest, "{}", {"p": [0.3], "by": "@here/m logprobs"})
    return replace(record(asked), **{"id": "dec_1", **fields})


class Book:
    """A roster in memory."""

    def __init__(self, *running: Challenger) -> None:
        self.there = list(running)
        self.answers: list[ChallengerAnswer] = []
        self.dropped = self.refused = 0

    def running(self, project: str) -> list[Challenger]:
        return [one for one in self.there if one.project == project]

    promoted = running

    def answered(self, answer: ChallengerAnswer) -> None:
        self.answers.append(answer)

    def count(self, challenger: int, dropped: int = 0, refused: int = 0) -> None:
        self.dropped += dropped
        self.refused += refused


class Locked(Book):
    def running(self, project: str) -> list[Challenger]:
        raise StorageError("the database is locked")


class Rival:
    """An engine that notes what it is asked, and does what `then` says."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.then, self.cuts = then, threading.Event()
        self.asked: list[tuple[DecisionRequest, str]] = []
        self.traces: list[Trace | None] = []

    def decide(self, request: DecisionRequest, deadline: Deadline, caller: str) -> Decision:
        self.asked.append((request, caller))
        self.traces.append(deadline.trace)
        self.then()
        return made()

    def cut(self) -> None:
        self.cuts.set()


@contextmanager
def arena(
    book: Book, rival: Rival, drawn: float = 0.0, **limits: int
) -> Iterator[Callable[[Decision], None]]:
    """Offers decisions; what was taken is done, or cut off, at the end of the block."""
    challenges = Challenges(book, lambda: rival, draw=lambda: drawn, **limits)
    try:
        yield lambda decision: challenges.offer(REQUEST, decision)
    finally:
        challenges.close()


def until(holds: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def test_what_is_asked_goes_into_the_trace_that_is_offered() -> None:
    book, rival, trace = Book(RIVAL), Rival(), Recorder()
    challenges = Challenges(book, lambda: rival, draw=lambda: 0.0)
    challenges.offer(REQUEST, made(), trace)
    until(lambda: book.answers)
    challenges.close()
    assert rival.traces == [trace]


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_what_a_challenger_answered_is_kept_beside_the_decision() -> None:
    book, rival = Book(RIVAL), Rival()
    with arena(book, rival) as offer:
        offer(made())
        until(lambda: book.answers)
    (answer,) = book.answers
    assert (answer.challenger, answer.decision_id, answer.p) == (3, "dec_1", (0.3,))
    ((request, caller),) = rival.asked
    assert (request.plan and request.plan.models, caller) == (("@here/rival",), "3")


@pytest.mark.parametrize(("drawn", "asked"), [(0.49, 1), (0.5, 0)])
def test_a_share_of_the_decisions_is_asked(drawn: float, asked: int) -> None:
    book, rival = Book(RIVAL), Rival()
    with arena(book, rival, drawn) as offer:
        offer(made())
        until(lambda: len(book.answers) == asked)
    assert len(rival.asked) == asked


@pytest.mark.parametrize(
    "decision",
    [
        made(cached=True),
        made(project="elsewhere"),
        made(key="other"),
        made(digest=b"another wording"),
        made(answers={"k": SKIPPED}),
        made(answers={"k": Answer.kept({"rule": 0})}),
        made(id=""),
    ],
)
def test_other_decisions_are_not_asked(decision: Decision) -> None:
    rival = Rival()
    with arena(Book(RIVAL), rival) as offer:
        offer(decision)
    assert not rival.asked


def test_an_explained_decision_is_not_asked() -> None:
    """Its cost and its time are for more than its answer."""
    rival = Rival()
    challenges = Challenges(Book(RIVAL), lambda: rival, draw=lambda: 0.0)
    challenges.offer(replace(REQUEST, explain=True), made())
    challenges.close()
    assert not rival.asked


def test_what_waits_for_a_challenger_that_is_removed_is_not_asked() -> None:
    """Its budget is removed with it."""
    book, go = Book(RIVAL), threading.Event()
    rival = Rival(lambda: go.wait(PATIENCE_S) and None)
    with arena(book, rival, threads=2) as offer:
        for _ in range(5):
            offer(made())
        until(lambda: rival.asked)
        book.there.clear()
        go.set()
        challenger = replace(RIVAL, project="other", id=4)
        book.there.append(challenger)
        until(lambda: len(book.answers) == len(rival.asked))
        offer(made(project="other"))
        until(lambda: book.answers[-1].challenger == 4)
    assert len(rival.asked) == 2


def test_what_finds_no_room_is_left_out_and_counted() -> None:
    hanging = threading.Event()
    book, rival = Book(RIVAL), Rival(lambda: hanging.wait(PATIENCE_S) and None)
    with arena(book, rival, threads=2, waiting=4) as offer:
        offer(made())
        until(lambda: rival.asked)
        for _ in range(5):
            offer(made())
        assert book.dropped == 3
        hanging.set()


def test_a_challenger_that_hangs_leaves_room_for_those_of_other_projects() -> None:
    hanging, other = threading.Event(), replace(RIVAL, id=4, project="other")
    book = Book(RIVAL, other)

    class Hanging(Rival):
        def decide(self, request: DecisionRequest, deadline: Deadline, caller: str) -> Decision:
            if caller == str(RIVAL.id):
                hanging.wait(PATIENCE_S)
            return super().decide(request, deadline, caller)

    with arena(book, Hanging()) as offer:
        for _ in range(200):
            offer(made())
        for number in range(20):
            offer(made(project="other"))
            until(lambda: len(book.answers) == number + 1)  # noqa: B023
        assert {answer.challenger for answer in book.answers} == {4}
        hanging.set()


A_FIFTH = HELD_BYTES // 5


@pytest.mark.parametrize(
    ("request_", "definition"),
    [
        (replace(REQUEST, images=("x" * (A_FIFTH // 2),)), "{}"),
        (replace(REQUEST, state=State("x" * (A_FIFTH // (PARSED + 4)), {"x": []})), "{}"),
        (REQUEST, "x" * (A_FIFTH // PARSED)),
    ],
    ids=["images", "fields", "questions"],
)
def test_what_waits_has_so_many_bytes_and_that_of_one_project_half_of_them(
    request_: DecisionRequest, definition: str
) -> None:
    hanging = threading.Event()
    other = replace(RIVAL, id=4, project="other")
    book, rival = Book(RIVAL, other), Rival(lambda: hanging.wait(PATIENCE_S) and None)
    challenges = Challenges(book, lambda: rival, draw=lambda: 0.0)
    asked = AskedQuestion("k", DIGEST, definition, {"p": [0.3], "by": "@here/m logprobs"})
    decision = made(questions=(asked,))
    for _ in range(10):
        challenges.offer(request_, decision)
    assert book.dropped == 8
    challenges.offer(request_, replace(decision, project="other"))
    assert book.dropped == 8
    hanging.set()

    def goes_on() -> bool:
        challenges.offer(request_, decision)
        return len(book.answers) > 3

    until(goes_on)
    challenges.close()


@pytest.mark.parametrize(
    "error", [DollarsSpent("spent", 1.0), InvalidRequest("privacy: strict is not possible")]
)
def test_what_cannot_be_given_to_it_is_counted_and_no_failure(error: Exception) -> None:
    book = Book(RIVAL)
    with arena(book, Rival(failing(error))) as offer:
        offer(made())
        until(lambda: book.refused)
    assert not book.answers


def test_a_failure_is_kept_with_its_type() -> None:
    book = Book(RIVAL)
    with arena(book, Rival(failing(ModelUnavailable("gone")))) as offer:
        offer(made())
        until(lambda: book.answers)
    assert (book.answers[0].error, book.answers[0].p) == ("model_unavailable", None)


def test_a_thread_survives_what_nobody_thought_of(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = iter([failing(RuntimeError("a state")), lambda: None])
    book, rival = Book(RIVAL), Rival(lambda: next(outcomes)())
    with arena(book, rival, threads=1) as offer:
        offer(made())
        offer(made())
        until(lambda: book.answers)
    assert "a bug" in caplog.text and "a state" not in caplog.text


def test_a_locked_database_costs_the_caller_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with arena(Locked(), Rival()) as offer:
        offer(made())
    assert "no challenger was asked" in caplog.text


def hanging_until_cut() -> tuple[Rival, list[bool]]:
    """A rival that answers nobody, and whether a cut ended each of its decisions."""
    rival, ended = Rival(), list[bool]()
    rival.then = lambda: ended.append(rival.cuts.wait(PATIENCE_S))
    return rival, ended


def offered(offer: Callable[[Decision], None], count: int) -> bool:
    """Whether so many offers return, of whoever makes one after the other."""
    offering = threading.Thread(target=lambda: [offer(made()) for _ in range(count)], daemon=True)
    offering.start()
    offering.join(PATIENCE_S)
    return not offering.is_alive()


def test_nobody_waits_for_one_that_hangs_and_what_waits_for_it_is_bounded() -> None:
    rival, ended = hanging_until_cut()
    book = Book(RIVAL)
    with arena(book, rival, threads=4, waiting=8) as offer:
        assert offered(offer, 100)
        until(lambda: len(rival.asked) == 2)
        assert (ended, book.answers) == ([], [])
        # Those that were taken out of the queue made room for others.
        assert 100 - 2 - 4 <= book.dropped <= 100 - 4
    assert ended == [True, True] and len(rival.asked) == 2


def test_nobody_waits_while_the_engine_is_made() -> None:
    ready, book = threading.Event(), Book(RIVAL)

    def make() -> Rival:
        ready.wait(PATIENCE_S)
        return Rival()

    challenges = Challenges(book, make, waiting=8, draw=lambda: 0.0)
    assert offered(lambda decision: challenges.offer(REQUEST, decision), 100)
    assert book.dropped >= 100 - 2 - 4 and not book.answers
    ready.set()
    challenges.close()


def test_nobody_waits_for_one_that_is_dead() -> None:
    # Each call fails after it has begun, and no earlier than all offers have returned.
    let = threading.Event()

    def die() -> None:
        let.wait(PATIENCE_S)
        raise ModelUnavailable("gone")

    book, rival = Book(RIVAL), Rival(die)
    with arena(book, rival, threads=4, waiting=8) as offer:
        assert offered(offer, 100)
        assert not book.answers
        let.set()
        until(lambda: len(book.answers) + book.dropped == 100)
    assert {answer.error for answer in book.answers} == {"model_unavailable"}


def test_closing_cuts_what_is_under_way() -> None:
    rival, ended = hanging_until_cut()
    with arena(Book(RIVAL), rival, threads=1) as offer:
        assert offered(offer, 3)
        until(lambda: rival.asked)
    assert (ended, len(rival.asked)) == ([True], 1)


class Pausing(Rival):
    """Waits for its deadline alone, as for a provider that names a time to try again."""

    def decide(self, request: DecisionRequest, deadline: Deadline, caller: str) -> Decision:
        self.asked.append((request, caller))
        ended = threading.Event()
        with deadline.interrupting(ended.set):
            assert ended.wait(PATIENCE_S)
        deadline.check()
        return made()


def test_closing_ends_the_waits_between_calls() -> None:
    book, rival = Book(RIVAL), Pausing()
    with arena(book, rival) as offer:
        offer(made())
        until(lambda: rival.asked)
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE_S
    assert not book.answers


def test_another_wording_keeps_the_conditions_of_the_callers_question() -> None:
    question = {**NOUL, "when": {"field": "urgent", "equals": 1}}
    request = load_decision(
        {"state": {"urgent": 1}, "questions": {"k": question, "other": NOUL}, "explain": True}
    )
    wording = dumps({**NOUL, "instructions": "Does it hurry?"})
    found = challenged(request, replace(RIVAL, model=None, wording=wording))
    assert list(found.questions) == ["k", "other"] and not found.explain
    assert found.questions["k"].instructions == "Does it hurry?"
    assert found.questions["k"].when == request.questions["k"].when
    assert found.plan == request.plan


def test_the_first_question_with_a_promoted_model_decides() -> None:
    second = replace(RIVAL, id=4, key="other", model="@here/second")
    assert promoted_by(Book(second, RIVAL), REQUEST) == "@here/rival"
    assert promoted_by(Book(second), REQUEST) == "@here/second"
    assert promoted_by(Book(replace(RIVAL, digest=b"another wording")), REQUEST) is None
    assert promoted_by(Book(), REQUEST) is None


def working(seconds: float) -> Callable[[], None]:
    """Keeps a processor busy for so long."""

    def work() -> None:
        began = time.thread_time()
        while time.thread_time() - began < seconds:
            pass

    return work


@pytest.mark.parametrize(("then", "rested"), [(working(0.1), 1), (lambda: None, 0)])
def test_after_what_takes_much_of_the_processor_a_thread_rests(
    then: Callable[[], None], rested: int
) -> None:
    book, rival, rests = Book(RIVAL), Rival(then), list[float]()
    challenges = Challenges(book, lambda: rival, draw=lambda: 0.0, rest=rests.append)
    challenges.offer(REQUEST, made())
    until(lambda: book.answers)
    challenges.close()
    assert len(rests) == rested
    assert all(15 * 0.08 <= rest <= 20 for rest in rests)


def test_a_rest_does_not_hold_up_the_end() -> None:
    book, rival = Book(RIVAL), Rival(working(1.5))
    challenges = Challenges(book, lambda: rival, draw=lambda: 0.0)
    challenges.offer(REQUEST, made())
    until(lambda: book.answers)
    before = time.monotonic()
    challenges.close()
    assert time.monotonic() - before < 10


SCRIPT = """
import resource
from svc.engine.challenges import Challenges
from tests.engine.test_challenges import REQUEST, RIVAL, Book, Rival, made, until
from tests.limited import limit_to

limit_to(1, later=100)
book = Book(RIVAL)
challenges = Challenges(book, lambda: Rival(), draw=lambda: 0.0)
challenges.offer(REQUEST, made())
resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
challenges.offer(REQUEST, made())
until(lambda: len(book.answers) == 2)
challenges.close()
"""


@ONLY_ROOT
def test_an_offer_is_taken_where_no_thread_can_begin_and_asked_once_one_can() -> None:
    errors_of(SCRIPT)
