"""What a provider sends costs little to read, whatever it is."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing

import pytest
from flask.testing import FlaskClient

from svc import limits
from svc.deadline import Deadline, Effort, ModelsAllowance
from svc.providers.bodies import ChatCall
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.failures import BadReply, CallTimedOut, ProviderError
from svc.providers.long_replies import TOO_MUCH
from svc.providers.replies import decoded
from svc.records import Model
from tests.hostile.replies import REPLIES, UNENDING, fitting
from tests.scripted import Raw, Reply, ScriptedProvider, always, completion
from tests.web.conftest import Start, start

__all__ = ["start"]  # the fixture

# A machine that is busy, or slow, is given some more. The scripted provider works in this process
# too, which is about a third of what is measured.
PROCESSOR_S = 2.5
MODEL, CALL = Model("@p/m", "p", "m"), ChatCall((), 50)
QUESTIONS = {
    "one": {"q": {"type": "noul", "instructions": "Is it so?"}},
    "many": {
        "q": {
            "type": "multi",
            "instructions": "Which?",
            "options": {f"o{number}": "" for number in range(20)},
        }
    },
}


@pytest.mark.parametrize("questions", QUESTIONS)
@pytest.mark.parametrize("name", REPLIES)
def test_a_decision_about_a_lying_provider_costs_little(
    start: Start, name: str, questions: str
) -> None:
    reply = Reply(fitting(REPLIES[name]))
    client: FlaskClient = start(lambda body, n, headers: reply).test_client()
    before = time.process_time()
    response = client.post(
        "/v1/decide", json={"state": {"a": 1}, "questions": QUESTIONS[questions]}
    )
    assert time.process_time() - before < PROCESSOR_S
    assert response.status_code == 502


@pytest.mark.parametrize(
    ("kind", "line", "lines"), [("noul", "{}: yes\n", 64), ("multi", "yes\n", 64 * 20)]
)
def test_one_token_for_all_lines_with_many_alternatives_costs_little(
    start: Start, kind: str, line: str, lines: int
) -> None:
    question = {**QUESTIONS["many"]["q"], "type": kind}
    if kind == "noul":
        question.pop("options")
    text = "".join(line.format(number) for number in range(1, lines + 1))
    others = {f"{n:x}": 1e-9 for n in range(20_000)}
    reply = Reply(completion(text, [{text: 0.6, "yes": 0.3, **others}]))
    client: FlaskClient = start(lambda body, n, headers: reply).test_client()
    asked = {"state": {"a": 1}, "questions": {f"q{n}": question for n in range(64)}}
    before = time.process_time()
    client.post("/v1/decide", json={**asked, "mode": "logprobs"})
    assert time.process_time() - before < 2 * PROCESSOR_S


def test_replies_to_one_request_that_cost_much_each_are_not_all_read(start: Start) -> None:
    """Its 64 calls are answered with 3,990 lines each that may be labels."""
    text = "\n".join(["A. B. C. D. E."] * 3_990)
    piece, other = len(text) // 230 + 1, {"token": "\u0130" * 2, "logprob": -700.0}
    tokens = [
        {"token": text[at : at + piece], "logprob": -0.5, "top_logprobs": [other] * 29}
        for at in range(0, len(text), piece)
    ]
    reply = completion(text + "\nA\nA", [{"\n": 1.0}, {"A": 0.9, "B": 0.1}] * 2)
    reply["choices"][0]["logprobs"]["content"][:0] = tokens
    long = "-700." + "123456789" * 5
    raw = Reply(json.dumps(reply, ensure_ascii=False).replace("-700.0", long).encode())
    client: FlaskClient = start(lambda body, n, headers: raw).test_client()
    options = {f"o{number}": "" for number in range(19)}
    questions = {
        f"{name}{stage}": {
            "type": "choice",
            "instructions": f"Which {name}{stage}?",
            "options": options,
            **({"depends_on": [f"a{stage - 1}", f"b{stage - 1}"]} if stage else {}),
        }
        for stage in range(8)
        for name in "ab"
    }
    council = {"council": [f"@scripted/m{number}" for number in range(4)]}
    asked = {"state": "s", "questions": questions, "mode": "logprobs", "debias": True}
    before = time.process_time()
    response = client.post("/v1/decide", json={**asked, "model": council})
    # What is not for replies, such as to send calls, takes about a fifth of a second.
    assert time.process_time() - before < limits.REPLIES_PROCESSOR_S + 0.7
    assert "hold more than is read of them" in response.json["error"]["message"]


def test_decimals_of_many_digits_cost_little() -> None:
    """Each takes 20 microseconds to convert exactly."""
    body = fitting(REPLIES["decimals of many digits"])
    before = time.thread_time()
    for _ in range(5):
        assert len(decoded(body)) > 8_000
    assert time.thread_time() - before < PROCESSOR_S / 5


@pytest.mark.parametrize("name", UNENDING)
def test_no_call_reads_what_never_ends(name: str) -> None:
    with (
        ScriptedProvider(always(UNENDING[name])) as provider,
        closing(Client({"p": Provider("p", provider.url, local=True)}, 1)) as client,
    ):
        before = time.thread_time()
        with pytest.raises(ProviderError) as failed:
            client.call(MODEL, CALL, timeout_s=60.0)
        assert not isinstance(failed.value, CallTimedOut)
        assert time.thread_time() - before < 0.5


@pytest.mark.parametrize(
    "piece", ["1", "1 ", "model ", "response_format ", "context size ", "\\u0"]
)
def test_what_a_provider_says_of_a_failure_costs_little_to_understand(piece: str) -> None:
    reply = Reply({"error": {"message": piece * (4_000 // len(piece))}}, 400)
    with (
        ScriptedProvider(always(reply)) as provider,
        closing(Client({"p": Provider("p", provider.url, local=True)}, 1)) as client,
    ):
        before = time.thread_time()
        for _ in range(16):
            with pytest.raises(ProviderError):
                client.call(MODEL, CALL, timeout_s=60.0)
        assert time.thread_time() - before < PROCESSOR_S / 4


def test_a_reply_of_many_small_chunks_is_still_read() -> None:
    body = json.dumps(completion("A")).encode() + b" " * 4_000
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\nx: y\r\n\r\n"
    head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with (
        ScriptedProvider(always(Raw(head + chunks))) as provider,
        closing(Client({"p": Provider("p", provider.url, local=True)}, 1)) as client,
    ):
        assert client.call(MODEL, CALL, timeout_s=60.0).text == "A"


def test_replies_of_many_small_chunks_to_one_request_are_not_all_read() -> None:
    """A request has lines for two of them, and others may still be in a few hundred chunks."""
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = json.dumps(completion("A")).encode()
    end = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    many, few = (Raw(head + b"1\r\n \r\n" * count + end) for count in (18_000, 500))
    deadline, outcomes = Deadline(60.0), []
    with (
        ScriptedProvider(lambda body, n, headers: few if n >= 3 else many) as provider,
        closing(Client({"p": Provider("p", provider.url, local=True)}, 1)) as client,
    ):
        for _ in range(5):
            try:
                outcomes.append(client.call(MODEL, CALL, 60.0, deadline=deadline).text)
            except BadReply as error:
                outcomes.append(str(error))
        assert client.call(MODEL, CALL, 60.0).text == "A"
    assert outcomes == ["A"] * 2 + [TOO_MUCH] + ["A"] * 2


def test_what_is_left_to_read_is_shared_by_the_branches_of_a_request() -> None:
    deadline = Deadline(10.0, effort=Effort(ModelsAllowance(10, 10)))
    assert deadline.branch().effort.parts.take("m", 7)
    assert not deadline.effort.parts.take("m", 4)
    assert deadline.effort.parts.take("m", 3)


def test_threads_that_take_at_once_take_no_more_than_there_is() -> None:
    effort, taken = Effort(ModelsAllowance(1_000, 1_000)), []
    threads = [
        threading.Thread(target=lambda: taken.extend(effort.parts.take("m", 1) for _ in range(500)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 1_000


def test_long_replies_to_one_request_are_not_all_held_at_once() -> None:
    """Two are within what is read of a model; of the third no more than its beginning is."""
    reply = Reply(json.dumps(completion("A")) + " " * 4_000_000)
    with (
        ScriptedProvider(always(reply)) as provider,
        closing(Client({"p": Provider("p", provider.url, local=True)}, 1)) as client,
    ):
        deadline = Deadline(60.0, effort=Effort(ModelsAllowance(300_000, 300_000)))
        outcomes = []
        for _ in range(3):
            try:
                outcomes.append(client.call(MODEL, CALL, 60.0, deadline=deadline).text)
            except BadReply as error:
                outcomes.append(str(error))
    assert outcomes == ["A", "A", TOO_MUCH]
