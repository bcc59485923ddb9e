from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from svc.deadline import Deadline, Effort, ModelsAllowance
from svc.engine.calls import PARAMETER_RETRIES, Call, CallPool, Gate
from svc.errors import (
    ApiError,
    InternalError,
    ModelError,
    ModelUnavailable,
    NoAnswer,
    PartlyLimited,
    RateLimited,
    Timeout,
)
from svc.providers.bodies import ChatCall
from svc.providers.failures import (
    BadReply,
    CallTimedOut,
    Cut,
    FormatRefused,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    ParameterBounded,
    ParameterRefused,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
    Unanswerable,
    api_error_of,
)
from svc.providers.protocol import DecisionCall
from svc.providers.replies import Completion
from svc.providers.traits import NO_CORRECTIONS, UNKNOWN, Corrections, Traits
from svc.records import Model
from tests.engine.fakes import OpenGate

CHAT = ChatCall(messages=(), max_tokens=16)
DONE = Completion("done")


def call(name: str = "m", key: str | None = None) -> Call:
    return Call(Model(f"@here/{name}", "here", name), CHAT, key)


class Scripted:
    """Ends each attempt as its model's script says; the last line of a script repeats."""

    def __init__(self, **scripts: list[Completion | Exception]) -> None:
        self.scripts = scripts
        self.attempts: list[str] = []
        self.times: list[float] = []
        self.given: list[tuple[float, str | None, Deadline | None]] = []

    def call(
        self,
        model: Model,
        call: ChatCall,
        timeout_s: float,
        key: str | None = None,
        deadline: Deadline | None = None,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> Completion:
        self.attempts.append(model.name)
        self.times.append(time.monotonic())
        self.given.append((timeout_s, key, deadline))
        script = self.scripts[model.name]
        outcome = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Held:
    """Holds every call until it is let go."""

    def __init__(self) -> None:
        self.started, self.let_go = threading.Event(), threading.Event()

    def call(self, *args: Any) -> Completion:
        self.started.set()
        self.let_go.wait(30)
        return DONE


class TurnstileGate:
    """Answers each question with the next of `waits`; the last repeats."""

    def __init__(self, *waits: float | ApiError) -> None:
        self.waits = list(waits)
        self.asked: list[tuple[str, float]] = []

    def line(self, provider: str, caller: str | None, max_wait: float, joined: bool) -> float:
        return 0.0

    def delay(self, provider: str, max_wait: float, caller: str | None = None) -> float:
        self.asked.append((provider, max_wait))
        wait = self.waits.pop(0) if len(self.waits) > 1 else self.waits[0]
        if isinstance(wait, ApiError):
            raise wait
        return wait


class Strides:
    """A clock that goes on by ten seconds whenever it is read, so that no pause is waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 10.0
        return self.now


@contextmanager
def pool(
    client: Any,
    gate: Gate | None = None,
    threads: int = 4,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[CallPool]:
    made = CallPool(client, gate or OpenGate(), threads, clock, jitter=lambda: 0.0)
    try:
        yield made
    finally:
        made.close()


def test_calls_that_wait_for_a_slot_when_the_pool_is_closed_have_no_time_left() -> None:
    """Each was an unforeseen error of a server that stops."""
    client = Scripted(m=[DONE])
    with pool(client) as calls:
        assert calls.run([call()], Deadline(60)) == [DONE]
    with pytest.raises(Timeout, match="the server stops"):
        calls.run([call()], Deadline(60))
    assert client.attempts == ["m"]


def outcomes(client: Any, *calls: Call, gate: Gate | None = None) -> list[Any]:
    """What calls come to, with all pauses passing at once."""
    clock = Strides()
    with pool(client, gate, clock=clock) as calls_pool:
        return list(calls_pool.run(list(calls), Deadline(1e6, clock)))


def test_outcomes_come_in_the_order_of_their_calls() -> None:
    first, second = Completion("first"), Completion("second")
    assert outcomes(Scripted(a=[first], b=[second]), call("b"), call("a")) == [second, first]


def test_calls_of_one_flow_are_under_way_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    class Meeting(Scripted):
        def call(self, *args: Any) -> Completion:
            meeting.wait(10)
            return DONE

    assert outcomes(Meeting(), call(), call()) == [DONE, DONE]


@pytest.mark.parametrize("trouble", [Throttled(), ServerTrouble(), Throttled(retry_after=3.0)])
def test_what_may_pass_is_tried_three_times_in_all(trouble: ProviderError) -> None:
    client = Scripted(m=[trouble])
    assert outcomes(client, call()) == [trouble]
    assert client.attempts == ["m"] * 3


def test_a_retry_that_succeeds_is_a_success() -> None:
    client = Scripted(m=[Throttled(), ServerTrouble(), DONE])
    assert outcomes(client, call()) == [DONE]


@pytest.mark.parametrize(
    "kind",
    [
        Gone,
        Refused,
        KeyRefused,
        NoCredit,
        Unanswerable,
        BadReply,
        Cut,
        CallTimedOut,
        NoLogprobs,
        FormatRefused,
    ],
)
def test_what_will_not_pass_is_tried_once(kind: type[ProviderError]) -> None:
    client = Scripted(m=[kind("no"), DONE])
    assert isinstance(outcomes(client, call())[0], kind)
    assert client.attempts == ["m"]


def test_only_the_call_that_failed_is_tried_again() -> None:
    client = Scripted(good=[DONE], bad=[ServerTrouble()])
    good, bad = outcomes(client, call("good"), call("bad"))
    assert good == DONE
    assert isinstance(bad, ServerTrouble)
    assert sorted(client.attempts) == ["bad"] * 3 + ["good"]


def test_a_refused_parameter_is_left_out_at_once_and_costs_no_retry() -> None:
    refusals: list[Completion | Exception] = [ParameterRefused(name) for name in "abcd"]
    client = Scripted(m=[*refusals, ServerTrouble(), ServerTrouble(), DONE])
    with pool(client) as calls:
        assert calls.run([call()], Deadline(30)) == [DONE]
    assert len(client.attempts) == 7


def test_a_model_that_refuses_parameters_for_ever_is_given_up() -> None:
    refusals: list[Completion | Exception] = [ParameterRefused(name) for name in "abcdef"]
    client = Scripted(m=refusals)
    assert isinstance(outcomes(client, call())[0], ParameterRefused)
    assert len(client.attempts) == PARAMETER_RETRIES + 1


class Correcting(Scripted):
    """Keeps the corrections that each attempt is made with."""

    def __init__(self, **scripts: list[Completion | Exception]) -> None:
        super().__init__(**scripts)
        self.corrections: list[Corrections] = []

    def call(
        self,
        model: Model,
        call: ChatCall,
        timeout_s: float,
        key: str | None = None,
        deadline: Deadline | None = None,
        corrections: Corrections = NO_CORRECTIONS,
    ) -> Completion:
        self.corrections.append(corrections)
        return super().call(model, call, timeout_s, key, deadline, corrections)


def test_every_attempt_is_made_with_all_that_was_refused_before() -> None:
    client = Correcting(
        m=[
            ParameterRefused("temperature"),
            ParameterBounded("top_logprobs", 5),
            ServerTrouble(),
            ParameterBounded("max_tokens", 300),
            DONE,
        ]
    )
    assert outcomes(client, call()) == [DONE]
    without = Traits(refused=frozenset({"temperature"}))
    fewer = replace(without, top_logprobs=5)
    shorter = replace(fewer, most_tokens=300)
    found = [UNKNOWN, without, fewer, fewer, shorter]
    assert client.corrections == [Corrections(one, one) for one in found]


def test_a_bound_from_below_is_a_correction_of_its_own() -> None:
    client = Correcting(m=[ParameterBounded("max_tokens", 16, upper=False), DONE])
    assert outcomes(client, call()) == [DONE]
    assert client.corrections[1].all == Traits(least_tokens=16)


@pytest.mark.parametrize(
    "error",
    [
        ParameterRefused("temperature", lasting=False),
        ParameterBounded("max_tokens", 300, lasting=False),
    ],
)
def test_what_does_not_last_corrects_the_call_and_is_not_to_be_remembered(
    error: ParameterRefused,
) -> None:
    client = Correcting(m=[ParameterBounded("top_logprobs", 5), error, DONE])
    assert outcomes(client, call()) == [DONE]
    last = client.corrections[-1]
    assert last.lasting == Traits(top_logprobs=5)
    assert last.all != last.lasting


def test_corrections_are_of_one_call_alone() -> None:
    client = Correcting(m=[ParameterBounded("max_tokens", 300, lasting=False), DONE])
    with pool(client) as calls:
        assert calls.run([call()], Deadline(30)) == [DONE]
        assert calls.run([call()], Deadline(30)) == [DONE]
    assert client.corrections[-1] == NO_CORRECTIONS


def test_calls_made_at_the_same_time_have_each_their_own_corrections() -> None:
    client = Correcting(m=[ParameterRefused("temperature"), DONE], n=[DONE])
    assert outcomes(client, call("m"), call("n"), call("n")) == [DONE] * 3
    rows = zip(client.attempts, client.corrections, strict=True)
    assert {corrections for name, corrections in rows if name == "n"} == {NO_CORRECTIONS}


@pytest.mark.parametrize(
    "error",
    [
        ParameterRefused("temperature"),
        ParameterBounded("top_logprobs", 5),
        ParameterBounded("max_tokens", 300),
        ParameterBounded("max_tokens", 300, lasting=False),
        ParameterBounded("max_tokens", 16, upper=False),
    ],
    ids=repr,
)
def test_a_call_is_given_up_where_what_was_corrected_is_refused_again(
    error: ParameterRefused,
) -> None:
    client = Scripted(m=[error])
    assert outcomes(client, call()) == [error]
    assert len(client.attempts) == 2


def test_a_bound_that_is_lowered_again_is_another_correction() -> None:
    bounds = [ParameterBounded("max_tokens", bound) for bound in (300, 200)]
    client = Correcting(m=[*bounds, DONE])
    assert outcomes(client, call()) == [DONE]
    assert [one.all.most_tokens for one in client.corrections] == [0, 300, 200]


def test_a_decision_call_has_no_output_limit_to_shorten() -> None:
    client = Scripted(m=[ParameterBounded("max_tokens", 9, lasting=False), DONE])
    decision = replace(call(), content=DecisionCall((), "s"))
    with pool(client) as calls:
        assert calls.run([decision], Deadline(30)) == [DONE]


def test_pauses_grow_between_retries() -> None:
    client = Scripted(m=[ServerTrouble()])
    with pool(client) as calls:
        calls.run([call()], Deadline(30))
    first, second, third = client.times
    assert second - first >= 0.12
    assert third - second >= 0.24


def test_a_providers_own_wait_is_kept() -> None:
    client = Scripted(m=[Throttled(retry_after=0.3), DONE])
    with pool(client) as calls:
        assert calls.run([call()], Deadline(30)) == [DONE]
    assert client.times[1] - client.times[0] >= 0.3


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    client = Scripted(m=[Throttled(retry_after=600.0), DONE])
    with pool(client) as calls:
        (outcome,) = calls.run([call()], Deadline(30))
    assert isinstance(outcome, Throttled)
    assert outcome.retry_after == 600.0
    assert client.attempts == ["m"]


def test_the_gate_is_asked_before_every_attempt() -> None:
    gate = TurnstileGate(0.0)
    outcomes(Scripted(m=[Throttled(), Throttled(), DONE]), call(), gate=gate)
    assert [provider for provider, _ in gate.asked] == ["here"] * 3


def test_a_slot_of_the_limiter_is_waited_for_and_not_asked_for_again() -> None:
    gate, client = TurnstileGate(0.2), Scripted(m=[DONE])
    with pool(client, gate) as calls:
        begun = time.monotonic()
        assert calls.run([call()], Deadline(30)) == [DONE]
    assert client.times[0] - begun >= 0.2
    assert len(gate.asked) == 1
    assert 29 < gate.asked[0][1] <= 30


def test_a_spent_limit_is_the_outcome_of_that_call_alone() -> None:
    spent = RateLimited("the daily budget of calls is spent", 60)
    client = Scripted(m=[DONE])
    assert outcomes(client, call(), call(), gate=TurnstileGate(0.0, spent)) == [DONE, spent]
    assert client.attempts == ["m"]


def test_an_unforeseen_exception_is_an_outcome_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Scripted(m=[ZeroDivisionError("secret")], n=[DONE])
    broken, fine = outcomes(client, call("m"), call("n"))
    assert isinstance(broken, InternalError)
    assert "secret" not in broken.message
    assert fine == DONE
    assert "unforeseen" in caplog.text


def test_a_failed_call_holds_none_of_the_frames_that_it_came_through() -> None:
    (failure,) = outcomes(Scripted(m=[BadReply("no")]), call("m"))
    assert isinstance(failure, BadReply)
    assert failure.__traceback__ is None  # a frame would hold the failure in turn, for ever


def test_a_call_gets_the_time_that_is_left_its_key_and_the_deadline() -> None:
    client, deadline = Scripted(m=[DONE]), Deadline(20)
    with pool(client) as calls:
        calls.run([call(key="own")], deadline)
    ((timeout_s, key, given),) = client.given
    assert 19 < timeout_s <= 20
    assert (key, given) == ("own", deadline)


def test_a_call_that_outlasts_the_deadline_is_not_waited_for() -> None:
    client = Held()
    with pool(client) as calls:
        with pytest.raises(Timeout):
            calls.run([call()], Deadline(0.1))
        client.let_go.set()


def test_a_deadline_that_has_passed_lets_no_call_start() -> None:
    client = Scripted(m=[DONE])
    with pool(client) as calls, pytest.raises(Timeout):
        calls.run([call()], Deadline(0))
    assert client.attempts == []


def test_a_cancelled_deadline_ends_the_wait() -> None:
    client, deadline = Held(), Deadline(300)
    canceller = threading.Thread(target=lambda: client.started.wait(30) and deadline.cancel())
    with pool(client) as calls:
        canceller.start()
        with pytest.raises(Timeout):
            calls.run([call()], deadline)
        client.let_go.set()
    canceller.join()


def test_a_pause_holds_no_thread_of_the_pool() -> None:
    client = Scripted(slow=[Throttled(retry_after=200.0)], fast=[DONE])
    deadline, ended = Deadline(300), threading.Event()

    def wait_long() -> None:
        with pytest.raises(Timeout):
            calls.run([call("slow")], deadline)
        ended.set()

    with pool(client, threads=1) as calls:
        pausing = threading.Thread(target=wait_long)
        pausing.start()
        assert calls.run([call("fast")], Deadline(30)) == [DONE]
        deadline.cancel()
        pausing.join(30)
    assert ended.is_set()


@pytest.mark.parametrize(
    ("failures", "kind"),
    [
        ([Throttled(), RateLimited("x", 9)], RateLimited),
        ([Gone(), ModelUnavailable("gone")], ModelUnavailable),
        ([BadReply(), ServerTrouble()], ModelError),
        ([Throttled(), Gone()], PartlyLimited),
        ([Gone(), BadReply()], NoAnswer),
        ([Throttled(), InternalError("x")], ModelError),
        ([InternalError("x")], InternalError),
        ([KeyRefused(), NoCredit()], ModelError),
        ([Unanswerable("x")], NoAnswer),
    ],
)
def test_several_failures_are_one_error(failures: list[Any], kind: type[ApiError]) -> None:
    for order in (failures, failures[::-1]):
        assert type(api_error_of(order)) is kind


def test_the_one_error_has_the_words_of_all_each_once() -> None:
    failures = [NoCredit(), Refused(), NoCredit(), Unanswerable("it has no such questions")]
    assert api_error_of(failures).message.split("; ") == [
        f"{NoCredit.public_message} ({NoCredit.advice})",
        f"{Refused.public_message} ({Refused.advice})",
        "it has no such questions",
    ]
    gone = api_error_of([ModelUnavailable("a is gone"), ModelUnavailable("b is gone")])
    assert (type(gone), gone.message) == (ModelUnavailable, "a is gone; b is gone")


def test_an_error_that_stands_for_others_leaves_them_as_they_were() -> None:
    limited = RateLimited("x", 7)
    told = api_error_of([limited]).about("model 'm'")
    assert isinstance(told, RateLimited)
    assert (told.message, told.retry_after) == ("model 'm': x", 7)
    assert limited.message == "x"


def test_of_several_limits_the_soonest_counts() -> None:
    error = api_error_of(
        [Throttled(retry_after=90), RateLimited("x", 7), Throttled(retry_after=30)]
    )
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7


def test_no_word_of_a_provider_is_in_the_error_for_the_caller() -> None:
    kinds = (Throttled, ServerTrouble, Gone, Refused, BadReply, CallTimedOut, NoLogprobs)
    assert not any("sesame" in api_error_of([kind("sesame")]).message for kind in kinds)


def test_waits_for_rate_limits_are_told_and_other_pauses_are_not() -> None:
    told: list[float] = []
    clock = Strides()
    client = Scripted(m=[Throttled(retry_after=3.0), ServerTrouble(), DONE])
    made = CallPool(client, TurnstileGate(0.0, 2.0, 0.0), 1, clock, lambda: 0.0, told.append)
    try:
        assert made.run([call()], Deadline(1e6, clock)) == [DONE]
    finally:
        made.close()
    assert told == [3.0, 2.0]


# --- Pauses of the caller's key ---


class Pauses:
    """Gives the waits of a request's calls, the last again and again."""

    def __init__(self, *waits_s: float) -> None:
        self.waits_s, self.asked = list(waits_s), 0

    def __call__(self) -> float:
        self.asked += 1
        return self.waits_s.pop(0) if len(self.waits_s) > 1 else self.waits_s[0]


def test_each_attempt_waits_for_the_pauses_of_its_key_once() -> None:
    client, pauses = Scripted(m=[ServerTrouble(), DONE]), Pauses(0.2, 0.1)
    deadline = Deadline(30)
    deadline.effort.pause_s = pauses
    with pool(client) as calls:
        begun = time.monotonic()
        assert calls.run([call()], deadline) == [DONE]
    first, second = client.times
    assert first - begun >= 0.2
    assert second - first >= 0.1
    assert pauses.asked == 2


def test_a_pause_beyond_the_deadline_ends_at_the_deadline() -> None:
    deadline = Deadline(0.1)
    deadline.effort.pause_s = Pauses(60.0)
    client = Scripted(m=[DONE])
    with pool(client) as calls, pytest.raises(Timeout):
        calls.run([call()], deadline)
    assert client.attempts == []


def test_a_wait_for_a_rate_limit_begins_after_the_pause() -> None:
    gate, deadline = TurnstileGate(0.0), Deadline(1e6, clock := Strides())
    deadline.effort.pause_s = Pauses(0.0, 5.0)
    with pool(Scripted(m=[ServerTrouble(), DONE]), gate, clock=clock) as calls:
        assert calls.run([call()], deadline) == [DONE]
    assert len(gate.asked) == 2


# --- Large calls ---


class Counting:
    """Holds every call until it is let go, and counts those under way."""

    def __init__(self, expected: int) -> None:
        self.under_way = self.most = 0
        self.let_go = threading.Event()
        self._expected, self._lock = expected, threading.Lock()

    def call(self, *args: Any) -> Completion:
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            if self.under_way == self._expected:
                # One more would have begun by now, or begins while the others end.
                self.let_go.set()
        self.let_go.wait(30)
        with self._lock:
            self.under_way -= 1
        return DONE


def large(megabytes: int) -> Call:
    parts = [{"type": "image_url", "image_url": {"url": "x" * (megabytes * 1024 * 1024)}}]
    return Call(call().model, ChatCall(({"role": "user", "content": parts},), 10))


def test_the_bytes_of_calls_under_way_are_bounded() -> None:
    client, one = Counting(expected=6), large(14)
    with pool(client, threads=64) as made:
        assert made.run([one] * 10, Deadline(60), "key_1") == [DONE] * 10
    # Of 14 MB each, six are below half of the 192 MB that all callers have.
    assert client.most == 6


def test_few_bytes_of_the_calls_of_a_request_are_sent_again() -> None:
    attempts = Counter[int]()

    class Failing:
        def call(self, model: Model, content: ChatCall, *_: Any, **__: Any) -> Completion:
            attempts[content.size] += 1
            raise ServerTrouble("not now")

    few, many = call(), large(20)
    with pool(Failing(), threads=16) as made:
        outcomes = made.run([*[many] * 10, few], Deadline(60))
    assert all(isinstance(one, ServerTrouble) for one in outcomes)
    # Of 250 MB second attempts of 21 MB each may take half, third ones half of the rest; which come
    # first is up to the threads.
    assert 10 + 6 <= attempts[many.content.size] <= 10 + 8
    assert attempts[few.content.size] == 3


@pytest.mark.parametrize("size", ["small", "large"])
def test_no_call_is_made_again_once_replies_of_its_model_have_taken_their_time(size: str) -> None:
    attempts = Counter[str]()

    class Failing:
        def call(self, model: Model, *_: Any, **__: Any) -> Completion:
            attempts[model.id] += 1
            if model.id == "@here/parameters":
                raise ParameterRefused("seed")
            raise ServerTrouble("not now")

    sent = call() if size == "small" else large(1)
    names = ("parameters", "trouble", "others")
    calls = [Call(Model(f"@here/{name}", "here", name), sent.content) for name in names]
    asked = Deadline(60, effort=Effort(replies_s=ModelsAllowance(10.0, 2.0)))
    for name in names[:2]:
        asked.effort.replies_s.use(f"@here/{name}", 2.0)
    with pool(Failing(), threads=4) as made:
        outcomes = made.run(calls, asked)
    assert [type(one) for one in outcomes] == [ParameterRefused, ServerTrouble, ServerTrouble]
    assert attempts == {"@here/parameters": 1, "@here/trouble": 1, "@here/others": 3}


def test_a_model_that_refuses_parameters_of_many_large_calls_answers_one_of_them() -> None:
    """What it refuses is learned of that one, so that the next request succeeds."""

    class Refusing:
        def call(self, *given: Any) -> Completion:
            *_, corrections = given
            for name in ("temperature", "max_tokens", "logprobs", "seed"):
                if name not in corrections.all.refused:
                    raise ParameterRefused(name)
            return DONE

    with pool(Refusing(), threads=64) as made:
        outcomes = made.run([large(14)] * 20, Deadline(60))
    assert DONE in outcomes
    assert any(isinstance(one, ParameterRefused) for one in outcomes)


def test_a_caller_leaves_threads_to_others() -> None:
    client = Counting(expected=4)
    with pool(client, threads=8) as made:
        assert made.run([call()] * 20, Deadline(60), "key_1") == [DONE] * 20
    assert client.most == 4


def test_a_large_call_waits_no_longer_than_its_deadline() -> None:
    client = Held()
    with pool(client, threads=4) as made:
        with pytest.raises(Timeout):
            made.run([large(40), large(40)], Deadline(0.3))
        client.let_go.set()
        assert made.run([large(40)], Deadline(30)) == [DONE]
