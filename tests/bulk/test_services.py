"""Services that are asked as one: which has a row, what is waited for, and what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from svc.bulk.services import REST_S, RETRIES, Secret, Services, addresses, keys
from svc.client import (
    Client,
    Decision,
    InvalidRequest,
    ModelFailed,
    NoAnswer,
    RateLimited,
    ServerFailed,
    ServiceError,
    YesNo,
)
from tests.clock import Clock

QUESTIONS = {"late": YesNo("Is it late?")}
PATIENCE_S = 60.0
DECIDED = {"id": "dec_1", "model": "m", "cost_usd": 0.0, "answers": {}}
Outcome = ServiceError | None


def limited(after_s: float) -> RateLimited:
    error = RateLimited(429, "rate_limited", "too many", "-")
    error.retry_after = after_s
    return error


MODEL_FAILED = ModelFailed(502, "model_error", "the model failed", "-")
PROXY_FAILED = ModelFailed(502, "unknown", "the answer is not one of the service", "-")
RESTARTING = ServerFailed(503, "unknown", "not now", "-")
INVALID = InvalidRequest(422, "invalid_request", "state: is too long", "-")


@dataclass
class Fake:
    """A service that answers as its list says, and then with decisions."""

    outcomes: Iterator[Outcome] = field(default_factory=lambda: iter(()))
    keys: list[str] = field(default_factory=list)

    def decide(self, state: Any, questions: Any, *, idempotency_key: str, **more: Any) -> Decision:
        self.keys.append(idempotency_key)
        if (error := next(self.outcomes, None)) is not None:
            raise error
        return Decision(DECIDED, lambda *args: None)

    def close(self) -> None:
        pass


def services(*fakes: Fake) -> tuple[Services, Clock]:
    clock = Clock(0.0)
    urls = [f"http://{number}" for number in range(len(fakes))]
    clients = cast("list[Client]", list(fakes))
    return Services(urls, clients, PATIENCE_S, clock.sleep, clock), clock


def one(*outcomes: Outcome) -> tuple[Services, Clock, Fake]:
    fake = Fake(iter(outcomes))
    return *services(fake), fake


def forever(error: ServiceError) -> Fake:
    return Fake(iter(lambda: error, None))


def ask(those: Services, key: str = "k") -> Decision:
    return those.decide(key, "text", QUESTIONS, {})


def test_a_limit_is_waited_for_as_long_as_the_service_says() -> None:
    those, clock, fake = one(limited(7), limited(11))
    ask(those)
    assert 18 <= clock.now < 20
    assert fake.keys == ["k", "k", "k"]


@pytest.mark.parametrize("error", [RESTARTING, PROXY_FAILED, NoAnswer("none")])
def test_a_service_that_is_started_again_is_waited_for(error: ServiceError) -> None:
    those, clock, fake = one(*[error] * 6)
    ask(those)
    assert len(fake.keys) == 7
    assert clock.now > 5


def test_a_failed_model_is_asked_a_few_times_and_is_then_the_rows_failure() -> None:
    those, _, fake = one(*[MODEL_FAILED] * 99)
    with pytest.raises(ModelFailed):
        ask(those)
    assert len(fake.keys) == RETRIES + 1


def test_a_row_that_is_refused_is_asked_once() -> None:
    those, clock, fake = one(INVALID)
    with pytest.raises(InvalidRequest):
        ask(those)
    assert (len(fake.keys), clock.now) == (1, 0)


def test_a_limit_beyond_all_patience_is_the_rows_failure_at_once() -> None:
    those, clock, _ = one(limited(3_600))
    with pytest.raises(RateLimited):
        ask(those)
    assert clock.now == 0


@pytest.mark.parametrize("error", [limited(5), RESTARTING, NoAnswer("none")])
def test_patience_ends_when_nothing_is_answered_and_later_rows_do_not_wait_again(
    error: ServiceError,
) -> None:
    those, clock = services(forever(error))
    with pytest.raises(type(error)):
        ask(those)
    assert PATIENCE_S < clock.now < 2 * PATIENCE_S
    ended = clock.now
    with pytest.raises(type(error)):
        ask(those, "next")
    assert clock.now == ended


def test_patience_begins_anew_with_every_answer() -> None:
    those, _, _ = one(*[limited(PATIENCE_S * 0.6), None] * 9)
    for number in range(9):
        ask(those, str(number))


class OneBreaks(Fake):
    """Answers all rows but one, whose connection breaks; while that one waits, another is asked."""

    those: Services

    def decide(self, state: Any, questions: Any, *, idempotency_key: str, **more: Any) -> Decision:
        if idempotency_key != "bad":
            return super().decide(state, questions, idempotency_key=idempotency_key)
        ask(self.those, "good")
        raise NoAnswer("reset")


class LimitedForLong(OneBreaks):
    """Lets others through while one row meets its outcomes."""

    def decide(self, state: Any, questions: Any, *, idempotency_key: str, **more: Any) -> Decision:
        if idempotency_key == "good":
            return Decision(DECIDED, lambda *args: None)
        ask(self.those, "good")
        return Fake.decide(self, state, questions, idempotency_key=idempotency_key)


def test_a_row_that_breaks_its_connection_ends_although_others_are_answered() -> None:
    fake = OneBreaks()
    fake.those, clock = services(fake)
    with pytest.raises(NoAnswer):
        ask(fake.those, "bad")
    assert clock.now > PATIENCE_S


def test_a_broken_connection_after_a_long_wait_is_not_the_end() -> None:
    fake = LimitedForLong()
    fake.those, clock = services(fake)
    fake.outcomes = iter([*[limited(PATIENCE_S * 0.4)] * 4, NoAnswer("reset")])
    ask(fake.those, "bad")
    assert clock.now > PATIENCE_S


def test_rows_are_spread_and_a_row_always_comes_to_the_same_service() -> None:
    fakes = [Fake(), Fake(), Fake()]
    those, _ = services(*fakes)
    for number in range(300):
        ask(those, f"row {number}")
        ask(those, f"row {number}")
    counts = [Counter(fake.keys) for fake in fakes]
    assert all(set(count.values()) == {2} for count in counts)
    assert all(len(count) > 60 for count in counts)


def test_a_dead_service_is_left_to_the_others_without_waiting_and_looked_at_later() -> None:
    dead, alive = forever(NoAnswer("refused")), Fake()
    those, clock = services(dead, alive)
    for number in range(100):
        ask(those, f"row {number}")
    assert (len(dead.keys), len(set(alive.keys)), clock.now) == (1, 100, 0)
    clock.sleep(REST_S)
    dead.outcomes = iter(())
    for number in range(100):
        ask(those, f"row {number}")
    assert len(dead.keys) > 30


def test_a_limit_is_not_passed_by_at_another_service() -> None:
    fakes = [Fake(iter([limited(5)])), Fake(iter([limited(5)]))]
    those, clock = services(*fakes)
    ask(those)
    assert sorted(len(fake.keys) for fake in fakes) == [0, 2]
    assert clock.now >= 5


def test_a_secret_is_not_shown() -> None:
    assert "hidden" not in f"{Secret('hidden')!r} {Secret('hidden')}"
    assert Secret("hidden").reveal() == "hidden"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ([], "at least one"),
        ("10.0.0.5:7777", "base URL"),
        ("ftp://host", "base URL"),
        (["http://ok", "http://user:secret@host"], "user or a password"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(url: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        addresses(url)
    assert "secret" not in str(caught.value)


def test_a_key_is_for_all_services_or_each_has_its_own() -> None:
    assert [one.reveal() for one in keys("a", 2)] == ["a", "a"]
    assert [one.reveal() for one in keys(None, 2)] == [None, None]
    assert [one.reveal() for one in keys(["a", "b"], 2)] == ["a", "b"]
    with pytest.raises(ValueError, match="one for each address"):
        keys(["a"], 2)
