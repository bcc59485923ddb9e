"""`svc.client`, against a real server, and against one that misbehaves."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from svc.client import (
    Choice,
    Client,
    Decision,
    Integer,
    InvalidRequest,
    ModelFailed,
    Multi,
    NoAnswer,
    NotFound,
    Number,
    RateLimited,
    Score,
    ServiceError,
    Text,
    Unauthorized,
    YesNo,
)
from svc.client.connections import MOST_BYTES
from tests.e2e.serving import ROOT, Server
from tests.e2e.test_access import make_key
from tests.scripted import Behaviour, Json, Raw, Reply, ScriptedProvider, always, sequence

TEAM = Choice("Which team should answer?", {"billing": "money", "tech": "faults"})
REFUND = YesNo("Does the customer want money back?")
DECIDED = Reply({"id": "dec_1", "model": "m", "cost_usd": 0.5, "answers": {"q": {"noul": 0.2}}})


def error(status: int, kind: str, **headers: str) -> Reply:
    return Reply({"error": {"type": kind, "message": "it is so"}}, status, headers)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("db") / "svc.db", "--demo") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, project="shop") as client:
        yield client


def asked(server: ScriptedProvider, **options: Any) -> tuple[Client, list[float]]:
    """A client of a scripted server, and the pauses that it makes."""
    pauses: list[float] = []
    return Client(f"http://127.0.0.1:{server.port}", sleep=pauses.append, **options), pauses


def test_questions_of_every_type_are_answered(client: Client) -> None:
    decision = client.decide(
        "Order 17: I was charged twice, please refund 20 euros!",
        team=TEAM,
        refund=REFUND,
        anger=Score("How angry is it?", ["calm", "cross", "furious"]),
        about=Multi("What is it about?", ["money", "parcel"]),
        order=Text("The order's number.", nullable=True),
        amount=Number("How much money?", min=0, nullable=True),
        count=Integer("How many charges?", min=0, max=9, nullable=True),
        model="@demo/lexical",
        ref="ticket-17",
        tags={"channel": "mail"},
        more={"mode": "verbal"},
    )
    assert decision.team.choice in ("billing", "tech", "none_of_these")
    assert sum(decision.team.probabilities.values()) == pytest.approx(1)
    assert 0 <= decision.refund.noul <= 1
    assert decision.refund.yes == (decision.refund.noul >= 0.5)
    assert 0 <= decision.anger.score <= 2
    assert set(decision.about.selected) <= {"money", "parcel"}
    assert decision["order"].fields["value"] == decision.order.value
    assert 0 <= decision.amount.confidence <= 1
    assert list(decision.answers) == [
        "team",
        "refund",
        "anger",
        "about",
        "order",
        "amount",
        "count",
    ]
    assert decision.fields["project"] == "shop"
    assert decision.fields["ref"] == "ticket-17"
    assert (decision.id[:4], decision.model, decision.cost_usd) == ("dec_", "@demo/lexical", 0)


def test_feedback_is_counted_in_the_report(client: Client) -> None:
    decision = client.decide("I was charged twice.", team=TEAM, refund=REFUND)
    decision.feedback(team="billing", refund=True)
    client.feedback(decision.id, {"team": "tech"})
    assert client.calibration("team")["labels"] == 1
    with pytest.raises(InvalidRequest, match=r"labels\.team: .*label"):
        decision.feedback(team="sales", refund=False)


def test_a_question_whose_key_is_no_python_name_goes_into_a_mapping(client: Client) -> None:
    decision = client.decide({"text": "Too late."}, {"is-late": YesNo("Is it late?")})
    assert decision["is-late"].confidence >= 0.5


def test_a_field_that_is_not_there_is_told_with_those_that_are(client: Client) -> None:
    decision = client.decide("x", refund=REFUND)
    with pytest.raises(AttributeError, match="the answer has no choice; it has type, noul"):
        _ = decision.refund.choice
    with pytest.raises(AttributeError, match="the decision has no answer team; it has refund"):
        _ = decision.team


def test_a_skipped_question_says_so(client: Client) -> None:
    vip = YesNo("Is it urgent?", more={"when": {"vip": True}})
    assert client.decide({"vip": False}, q=vip).q.skipped


def test_a_call_with_a_key_of_ones_own_is_decided_once(client: Client) -> None:
    ids = {client.decide("x", refund=REFUND, idempotency_key="ticket 17").id for _ in range(2)}
    assert len(ids) == 1
    assert client.decide("x", refund=REFUND, idempotency_key="ticket 18").id not in ids


def test_many_states_are_decided_in_their_order(client: Client) -> None:
    progress: list[int] = []
    states = [f"Parcel {number} is late." for number in range(100)]
    decisions = list(
        client.decide_many(states, late=YesNo("Is it late?"), progress=progress.append)
    )
    assert len({decision.id for decision in decisions}) == 100
    assert progress == list(range(1, 101))


def test_a_state_that_is_refused_ends_the_run_or_is_its_error(client: Client) -> None:
    states = ["a", "b" * 200_000, "c"]
    with pytest.raises(InvalidRequest, match="state"):
        list(client.decide_many(states, late=REFUND))
    results = list(client.decide_many(states, late=REFUND, errors="return"))
    assert [type(result) for result in results] == [Decision, InvalidRequest, Decision]


def test_states_are_taken_only_as_they_are_needed(client: Client) -> None:
    taken: list[int] = []

    def states() -> Iterator[str]:
        for number in range(10_000):
            taken.append(number)
            yield "Parcel"

    results = client.decide_many(states(), late=REFUND, concurrency=2)
    next(results)
    results.close()
    assert len(taken) < 20


def test_a_key_is_sent_and_a_missing_one_is_told(tmp_path: Path) -> None:
    _, key = make_key(tmp_path / "svc.db", "ada")
    with Server(tmp_path / "svc.db", "--demo") as server:
        with Client(server.url, key) as client:
            assert client.decide("x", q=REFUND).id
        with Client(server.url) as client, pytest.raises(Unauthorized, match="API key") as refused:
            client.decide("x", q=REFUND)
    assert (refused.value.status, refused.value.type) == (401, "unauthorized")
    assert refused.value.request_id in server.log


def test_a_limit_is_waited_for_as_long_as_it_says() -> None:
    limited = error(429, "rate_limited", **{"Retry-After": "7"})
    with ScriptedProvider(sequence(limited, limited, DECIDED)) as server:
        client, pauses = asked(server)
        assert client.decide("x", q=REFUND).q.noul == 0.2
    assert pauses == [7.0, 7.0]


def test_another_error_that_says_for_how_long_is_waited_for_too() -> None:
    busy = error(503, "not_ready", **{"Retry-After": "3"})
    with ScriptedProvider(sequence(busy, DECIDED)) as server:
        client, pauses = asked(server)
        client.decide("x", q=REFUND)
    assert pauses == [3.0]


def test_all_tries_of_a_call_have_one_idempotency_key_and_each_call_another() -> None:
    trouble = error(502, "model_error")
    taken = Reply({"lines": 1, "taken": 1, "errors": []})
    replies = (trouble, Raw(b""), DECIDED, DECIDED, trouble, taken)
    with ScriptedProvider(sequence(*replies)) as server:
        client, _ = asked(server)
        client.decide("x", q=REFUND)
        client.decide("x", q=REFUND).feedback(q=True)
        first, second, third, other, label, again = (
            request.headers["idempotency-key"] for request in server.requests
        )
    assert first == second == third
    assert label == again
    assert len({first, other, label}) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in (first, other, label))


def test_a_decision_whose_answer_was_lost_is_made_once(server: Server) -> None:
    made: list[str] = []

    def pass_on(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        """The first answer is lost on the way back."""
        key = {"Idempotency-Key": headers["idempotency-key"]}
        answer = requests.post(f"{server.url}/v1/decide", json=body, headers=key, timeout=30).json()
        made.append(answer["id"])
        return Raw(b"") if n == 0 else Reply(answer)

    with ScriptedProvider(pass_on) as between:
        client, _ = asked(between, project="lost")
        assert client.decide("x", q=REFUND).id == made[0] == made[1]
    page = requests.get(f"{server.url}/v1/audit?project=lost", timeout=30).json()
    assert len(page["entries"]) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        error(502, "model_error"),
        error(503, "not_ready"),
        Reply("<html>", 500),
        *(Raw(DECIDED.wire()[:size]) for size in (0, 10, 17, 30, 60, len(DECIDED.wire()) - 1)),
    ],
)
def test_what_may_pass_is_tried_again_with_growing_pauses(trouble: Behaviour) -> None:
    with ScriptedProvider(sequence(trouble, trouble, trouble, DECIDED)) as server:
        client, pauses = asked(server)
        assert client.decide("x", q=REFUND).id == "dec_1"
    assert len(pauses) == 3
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1 <= pauses[2] <= 2


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(422, "invalid_request"), InvalidRequest),
        (error(404, "not_found"), NotFound),
        (error(504, "timeout"), ModelFailed),
        (error(502, "model_unavailable"), ModelFailed),
        (error(429, "rate_limited", **{"Retry-After": "80000"}), RateLimited),
        (Reply("<html>", 200), InvalidRequest),
        (Reply([], 200), InvalidRequest),
        (Reply("", 302, {"Location": "http://127.0.0.1:1/"}), InvalidRequest),
    ],
)
def test_what_will_not_pass_is_raised_at_once(reply: Reply, kind: type[ServiceError]) -> None:
    with ScriptedProvider(always(reply)) as server:
        client, pauses = asked(server)
        with pytest.raises(kind):
            client.decide("x", q=REFUND)
        assert len(server.requests) == 1
    assert pauses == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(429, "rate_limited", **{"Retry-After": "soon"}), RateLimited),
        (error(429, "rate_limited", **{"Retry-After": "inf"}), RateLimited),
        (error(502, "model_error"), ModelFailed),
        (Raw(b""), NoAnswer),
    ],
)
def test_after_the_last_try_the_error_is_raised(reply: Behaviour, kind: type[ServiceError]) -> None:
    with ScriptedProvider(always(reply)) as server:
        client, pauses = asked(server, retries=2)
        with pytest.raises(kind):
            client.decide("x", q=REFUND)
    assert len(pauses) == 2


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "{}",
        '{"answers":',
        "[" * 100_000,
        '{"cost_usd": ' + "1" * 5_000 + "}",
        '{"id": "d", "model": "m", "cost_usd": 0, "answers": {"q": {"noul": 1e999}}}',
        '{"id": "d", "model": "m", "cost_usd": 0, "answers": {"q": {"noul": NaN}}}',
        '{"id": "d", "model": "m", "cost_usd": 0, "answers": {"q": {"noul": ' + "1" * 400 + "}}}",
        '{"id": "d", "model": "m", "cost_usd": 0, "answers": []}',
        '{"id": "d", "model": "m", "cost_usd": 0, "answers": {"q": null}}',
        '{"id": "d", "model": "m", "cost_usd": "much", "answers": {}}',
    ],
)
def test_an_answer_in_another_shape_is_told_as_what_it_is(answer: str) -> None:
    with ScriptedProvider(always(Reply(answer))) as server:
        client, pauses = asked(server)
        calls: list[Callable[[], object]] = [
            lambda: client.decide("x", q=REFUND),
            lambda: client.forecast(["x"], {"q": REFUND}),
            lambda: client.feedback("dec_1", {"q": True}),
        ]
        for call in calls:
            with pytest.raises(InvalidRequest, match="is not one of the service"):
                call()
    assert pauses == []


def test_of_an_answer_without_an_end_a_part_is_read() -> None:
    endless = Reply("x" * (MOST_BYTES + 1))
    redirect = Reply("x" * (MOST_BYTES + 1), 302, {"Location": "http://127.0.0.1:9/"})
    for reply in (endless, redirect):
        with ScriptedProvider(always(reply)) as server:
            client, _ = asked(server)
            with pytest.raises(InvalidRequest, match="is not one of the service"):
                client.decide("x", q=REFUND)


class EndlessInterim:
    """Says that it will answer, for as long as somebody listens."""

    def play(self, sock: socket.socket, stop: threading.Event) -> bool:
        with suppress(OSError):
            while not stop.is_set():
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)
        return False


def test_interim_answers_without_an_end_are_no_answer() -> None:
    with ScriptedProvider(always(EndlessInterim())) as server:
        client, _ = asked(server, retries=0)
        with pytest.raises(NoAnswer, match="TooLong"):
            client.decide("x", q=REFUND)


@pytest.mark.parametrize("port", [1, 99_999])
def test_that_nobody_answers_is_told_without_the_password_of_the_url(port: int) -> None:
    with Client(f"http://ann:hunter2@127.0.0.1:{port}", retries=0) as client:
        with pytest.raises(NoAnswer, match=rf"no answer from …@127\.0\.0\.1:{port}") as failed:
            client.decide("x", q=REFUND)
    assert "hunter2" not in "".join(traceback.format_exception(failed.value))


@pytest.mark.parametrize("key", ["a\r\nX-Other: b", "\u2028"])
def test_a_key_that_no_header_holds_is_sent_to_nobody(key: str) -> None:
    with ScriptedProvider(always(DECIDED)) as server:
        client, _ = asked(server, retries=0)
        with pytest.raises(NoAnswer):
            client.decide("x", q=REFUND, idempotency_key=key)
    assert server.requests == []


def test_head_and_body_of_a_request_arrive_together() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", retries=0)
        with ThreadPoolExecutor(1) as pool:
            deciding = pool.submit(client.decide, "x", q=REFUND)
            caller, _ = listener.accept()
            with caller:
                first = caller.recv(65_536)
            with pytest.raises(NoAnswer):
                deciding.result()
    assert first.endswith(b"}")


def test_a_service_elsewhere_is_reached_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedProvider(always(DECIDED)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
        with Client("http://decisions.example/svc/", "key") as client:
            client.decide("x", q=REFUND)
            client.decide("y", q=REFUND)
    first, _ = proxy.requests
    assert first.path == "http://decisions.example/svc/v1/decide"
    assert first.headers["host"] == "decisions.example"
    assert first.headers["authorization"] == "Bearer key"


def test_a_service_on_this_machine_is_reached_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with ScriptedProvider(always(DECIDED)) as server:
        client, _ = asked(server)
        client.decide("x", q=REFUND)
    assert [one.path for one in server.requests] == ["/v1/decide"]


def test_a_name_and_a_password_in_the_address_are_sent_without_a_key() -> None:
    with ScriptedProvider(always(DECIDED)) as server:
        with Client(f"http://me:secret@127.0.0.1:{server.port}") as client:
            client.decide("x", q=REFUND)
    assert server.requests[0].headers["authorization"] == "Basic bWU6c2VjcmV0"


def test_what_json_cannot_hold_is_an_error_of_the_caller(client: Client) -> None:
    with pytest.raises(ValueError, match="JSON"):
        client.decide(float("nan"), q=REFUND)


def test_it_imports_little() -> None:
    program = "import sys, svc.client; print(*(set(sys.modules) & {'flask', 'numpy', 'gunicorn'}))"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "\n"


def test_a_type_checker_knows_the_fields(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from svc.client import Choice, Client\n"
        "team = Choice('Which team?', ['billing', 'tech'])\n"
        "client = Client()\n"
        "decision = client.decide('x', team=team)\n"
        "reveal_type(decision.team.choice)\n"
        "reveal_type(decision.team.confidence)\n"
        "reveal_type(next(client.decide_many(['x'], team=team)))\n"
        "reveal_type(next(client.decide_many(['x'], team=team, errors='return')))\n"
        "Choice(3, {})\n"
    )
    pytest.importorskip("mypy", reason="mypy is installed by `make typing`")
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = [line.split(": ", 2)[2] for line in ended.stdout.splitlines() if ".py:" in line]
    assert shown[:4] == [
        'Revealed type is "str"',
        'Revealed type is "float"',
        'Revealed type is "svc.client.decisions.Decision"',
        'Revealed type is "svc.client.decisions.Decision | svc.client.errors.ServiceError"',
    ]
    assert "incompatible type" in shown[4]
