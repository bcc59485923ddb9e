"""The client over real sockets: limits of time and size, connections, and what it sends."""

import gc
import gzip
import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

import pytest

from svc import limits
from svc.deadline import Deadline, Effort, ModelsAllowance
from svc.providers.bodies import ChatCall
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.failures import (
    BadReply,
    BrokenReply,
    CallTimedOut,
    Cancelled,
    Cut,
    FormatRefused,
    Gone,
    NoLogprobs,
    ParameterBounded,
    ParameterRefused,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
    Unread,
)
from svc.providers.redaction import UNREAD
from svc.providers.traits import NO_CORRECTIONS, UNKNOWN, TraitMemory, Traits
from svc.records import Model
from tests.scripted import (
    Drip,
    Endless,
    Raw,
    Reply,
    Reset,
    ScriptedProvider,
    Silent,
    always,
    completion,
    error,
    redirect,
    sequence,
)

MODEL = Model("@t/m", "t", "m")
CALL = ChatCall(({"role": "user", "content": "the secret plan"},), 50)
COOL = Traits(refused=frozenset({"temperature"}))
WITHOUT_TEMPERATURE = NO_CORRECTIONS.plus(COOL, lasting=True)
SOON = 0.3  # seconds: a limit that is meant to be reached
LONG = 30.0  # seconds: a limit that is not


@contextmanager
def client_of(url, **facts):
    provider = Provider("t", url, local=True, **facts)
    with closing(Client({"t": provider}, pool_size=8)) as client:
        yield client


@contextmanager
def scripted(handler, **facts):
    with ScriptedProvider(handler) as provider, client_of(provider.url, **facts) as client:
        yield provider, client


def test_a_call_returns_the_completion_and_sends_key_and_body():
    with scripted(always(Reply(completion("A", prompt_tokens=7))), key="k-1") as (provider, client):
        answer = client.call(MODEL, CALL, LONG)
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("A", 7, 10)
    request = provider.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer k-1"
    assert request.headers["content-type"] == "application/json"
    assert request.body["model"] == "m"


def test_a_provider_without_a_key_gets_no_authorization_not_even_from_netrc(tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password pass\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with scripted(always(Reply(completion("A")))) as (provider, client):
        client.call(MODEL, CALL, LONG)
    assert "authorization" not in provider.requests[0].headers


@pytest.mark.parametrize(("aggregator", "sent"), [(True, "Bearer own"), (False, "Bearer k-1")])
def test_a_projects_key_goes_to_the_aggregator_only(aggregator, sent):
    handler = always(Reply(completion("A")))
    with scripted(handler, key="k-1", aggregator=aggregator) as (provider, client):
        client.call(MODEL, CALL, LONG, key="own")
    assert provider.requests[0].headers["authorization"] == sent


def test_calls_one_after_the_other_share_one_connection():
    with scripted(always(Reply(completion("A")))) as (provider, client):
        for _ in range(5):
            client.call(MODEL, CALL, LONG)
    assert provider.connections == 1


def test_an_error_reply_gives_its_connection_back_too():
    with scripted(always(Reply(error("no"), status=400))) as (provider, client):
        for _ in range(3):
            with pytest.raises(Refused):
                client.call(MODEL, CALL, LONG)
    assert provider.connections == 1


def test_cookies_are_not_kept():
    reply = Reply(completion("A"), headers={"Set-Cookie": "a=b; Path=/"})
    with scripted(always(reply)) as (provider, client):
        client.call(MODEL, CALL, LONG)
        client.call(MODEL, CALL, LONG)
    assert all("cookie" not in request.headers for request in provider.requests)


def test_redirects_are_not_followed():
    with scripted(always(Reply(completion("A")))) as (elsewhere, _):
        with scripted(always(redirect(elsewhere.url + "/chat/completions", 307))) as (_, client):
            with pytest.raises(Refused):
                client.call(MODEL, CALL, LONG)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "behaviour",
    [
        Silent(),
        Drip(Reply(completion("A"))),
        Drip(Reply(completion("A")), from_header=True),
        Endless(every=0.01),
        Endless(every=0.01, chunked=True),
        Reply(completion("A"), delay=LONG),
    ],
    ids=["silent", "drip body", "drip header", "endless", "endless chunks", "late"],
)
def test_a_call_ends_when_its_time_is_over_whatever_the_peer_does(behaviour):
    with scripted(always(behaviour)) as (_, client):
        began = time.monotonic()
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, SOON)
        assert SOON * 0.9 <= time.monotonic() - began < LONG / 3


def test_a_call_on_a_connection_of_the_pool_ends_when_its_time_is_over_too():
    reply = Reply(completion("A"))
    with scripted(sequence(reply, Endless(every=0.01))) as (provider, client):
        client.call(MODEL, CALL, LONG)
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, SOON)
    assert provider.connections == 1


def test_the_providers_own_limit_counts_where_it_is_smaller():
    with scripted(always(Silent()), timeout_s=SOON) as (_, client):
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, LONG)


def test_no_call_is_made_when_no_time_is_left():
    with scripted(always(Reply(completion("A")))) as (provider, client):
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, 0.0)
    assert provider.requests == []


def test_a_connection_that_is_never_accepted_ends_with_the_call():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:  # fill the queue of connections that nobody accepts
            sock.setblocking(False)
            sock.connect_ex(address)
        try:
            with client_of(f"http://127.0.0.1:{address[1]}") as client:
                with pytest.raises(CallTimedOut):
                    client.call(MODEL, CALL, SOON)
        finally:
            for sock in waiting:
                sock.close()


def test_a_peer_that_does_not_read_ends_with_the_call():
    much = ChatCall(({"role": "user", "content": "x" * 20_000_000},), 50)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with client_of(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            with pytest.raises(CallTimedOut):
                client.call(MODEL, much, SOON)


def test_a_name_that_does_not_resolve_may_be_tried_again():
    with client_of("http://no-such-host.invalid/v1") as client:
        with pytest.raises(ServerTrouble):
            client.call(MODEL, CALL, LONG)


def test_a_second_answer_that_nobody_asked_for_is_not_given_to_the_next_call():
    stray = Reply(completion("stray")).wire()

    class Twice:
        def play(self, sock, stop):
            sock.sendall(Reply(completion("A")).wire() + stray)
            return True

    with scripted(always(Twice())) as (_, client):
        assert [client.call(MODEL, CALL, LONG).text for _ in range(5)] == ["A"] * 5


def test_a_late_end_of_an_unbounded_body_is_no_completion():
    """Cutting the socket looks like the end of a body without a length: it must not count."""
    text = Reply(completion("A")).wire().split(b"\r\n\r\n")[1]

    class CompleteButOpen:
        def play(self, sock, stop):
            sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + text)
            stop.wait()
            return False

    with scripted(always(CompleteButOpen())) as (_, client):
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, SOON)


@pytest.mark.parametrize(
    "behaviour",
    [
        Reset(),
        Reset(after=0),
        Raw(b""),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"),
        Raw(b"SSH-2.0-OpenSSH\r\n"),
        Raw(b"\x00\xff\xfe" * 50),
        Raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
        Raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", half=True),
    ],
)
def test_a_broken_connection_may_be_tried_again(behaviour):
    with scripted(always(behaviour)) as (_, client):
        with pytest.raises(ServerTrouble) as raised:
            client.call(MODEL, CALL, LONG)
    assert raised.value.retry


@pytest.mark.parametrize(
    "behaviour",
    [
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0"),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX"),
        Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX"),
    ],
)
def test_a_connection_that_breaks_within_a_good_reply_may_be_charged(behaviour):
    with scripted(always(behaviour)) as (_, client):
        with pytest.raises(BrokenReply):
            client.call(MODEL, CALL, LONG)


def test_a_call_that_never_left_is_not_charged():
    """A provider whose system takes no further connection has nothing of it."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):  # as many as it takes without being asked
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        client = stack.enter_context(client_of(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        for seconds in (SOON, 0.0):
            with pytest.raises(CallTimedOut) as late:
                client.call(MODEL, CALL, seconds)
            assert not late.value.may_be_charged
        gone = Deadline(LONG)
        threading.Timer(SOON, gone.cancel).start()
        with pytest.raises(Cancelled) as left:
            client.call(MODEL, CALL, LONG, deadline=gone)
        assert not left.value.may_be_charged


def test_a_call_that_left_may_be_charged_though_its_time_is_over():
    with scripted(always(Silent())) as (_, client):
        with pytest.raises(CallTimedOut) as late:
            client.call(MODEL, CALL, SOON)
    assert late.value.may_be_charged


def test_a_refused_connection_may_be_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with client_of(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(ServerTrouble):
            client.call(MODEL, CALL, LONG)


def test_a_pooled_connection_that_the_provider_dropped_does_no_harm():
    with scripted(always(Reply(completion("A")))) as (provider, client):
        client.call(MODEL, CALL, LONG)
        provider.drop_connections()
        for _ in range(3):
            try:
                assert client.call(MODEL, CALL, LONG).text == "A"
                break
            except ServerTrouble:
                continue
        else:
            pytest.fail("the broken connection was not replaced")


@pytest.mark.parametrize("chunked", [True, False])
def test_a_reply_beyond_the_cap_is_not_read_on(chunked):
    with scripted(always(Endless(chunked=chunked))) as (_, client):
        with pytest.raises(BadReply, match="too long") as failure:
            client.call(MODEL, CALL, LONG)
    assert failure.value.__context__ is None  # which would hold the megabytes that were read


def test_a_reply_that_unpacks_beyond_the_cap_is_refused():
    bomb = gzip.compress(b" " * (limits.REPLY_BYTES + 1))
    assert len(bomb) < 20_000
    with scripted(always(Reply(bomb, headers={"Content-Encoding": "gzip"}))) as (_, client):
        with pytest.raises(BadReply, match="too long"):
            client.call(MODEL, CALL, LONG)


def test_a_compressed_reply_is_read():
    packed = gzip.compress(Reply(completion("A")).wire().split(b"\r\n\r\n", 1)[1])
    with scripted(always(Reply(packed, headers={"Content-Encoding": "GZIP"}))) as (_, client):
        assert client.call(MODEL, CALL, LONG).text == "A"


def test_a_long_reply_is_not_unpacked_once_replies_have_taken_their_time():
    packed = gzip.compress(json.dumps(completion("A")).encode() + b" " * 1_000_000)
    reply = Reply(packed, headers={"Content-Encoding": "gzip"})
    asked = Deadline(LONG, effort=Effort(replies_s=ModelsAllowance(0.0, 0.0)))
    with scripted(always(reply)) as (_, client):
        with pytest.raises(Unread, match="take longer"):
            client.call(MODEL, CALL, LONG, deadline=asked)
        assert client.call(MODEL, CALL, LONG).text == "A"


@pytest.mark.parametrize("reply", [Reply(completion("A")), Reply({}, 500), Endless(chunked=False)])
def test_what_a_thread_does_after_a_call_is_sent_counts_as_its_reply(reply):
    asked = Deadline(LONG, effort=Effort(replies_s=ModelsAllowance(1e-9)))
    with scripted(always(reply)) as (_, client):
        with suppress(ProviderError):
            client.call(MODEL, CALL, LONG, deadline=asked)
    assert not asked.effort.replies_s.has_left(MODEL.id)


def test_no_message_is_looked_for_once_replies_have_taken_their_time(caplog):
    reply = Reply({"error": {"message": "no such model"}}, 404)
    with scripted(always(reply)) as (_, client):
        for seconds in (1.0, 0.0):
            asked = Deadline(LONG, effort=Effort(replies_s=ModelsAllowance(seconds)))
            with pytest.raises(Gone):
                client.call(MODEL, CALL, LONG, deadline=asked)
    first, second = caplog.messages
    assert "no such model" in first and UNREAD in second


def test_a_call_that_is_not_sent_has_no_reply_that_counts():
    asked = Deadline(LONG, effort=Effort(replies_s=ModelsAllowance(1e-9)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with client_of(f"http://127.0.0.1:{port}/v1") as client:
        with pytest.raises(ServerTrouble):
            client.call(MODEL, CALL, LONG, deadline=asked)
    assert asked.effort.replies_s.has_left(MODEL.id)


@pytest.mark.parametrize("encoding", ["br", "gzip", "deflate", "zstd, gzip"])
def test_a_reply_that_cannot_be_unpacked_is_a_bad_reply(encoding):
    reply = Reply(completion("A"), headers={"Content-Encoding": encoding})
    with scripted(always(reply)) as (_, client):
        with pytest.raises(BadReply):
            client.call(MODEL, CALL, LONG)


def test_cancelling_frees_every_call_under_way():
    arrived = threading.Barrier(5)

    def handler(body, n, headers):
        arrived.wait(LONG)
        return Silent()

    with scripted(handler) as (_, client), ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(client.call, MODEL, CALL, LONG) for _ in range(4)]
        arrived.wait(LONG)
        client.cancel_all()
        for call in calls:
            assert isinstance(call.exception(LONG), Cancelled)


def test_a_cancelled_client_goes_on_and_a_closed_one_does_not():
    with scripted(always(Reply(completion("A")))) as (_, client):
        client.cancel_all()
        assert client.call(MODEL, CALL, LONG).text == "A"
        client.close()
        with pytest.raises(Cancelled):
            client.call(MODEL, CALL, LONG)


def test_closing_ends_the_clients_thread():
    def watching():
        return {thread for thread in threading.enumerate() if thread.name == "calls"}

    before = watching()
    with scripted(always(Reply(completion("A")))) as (_, client):
        client.call(MODEL, CALL, LONG)
        assert watching() > before
    assert watching() <= before


def test_one_stalled_call_does_not_hold_the_others():
    def handler(body, n, headers):
        return Silent() if body["messages"][0]["content"] == "stall" else Reply(completion("A"))

    stalled = ChatCall(({"role": "user", "content": "stall"},), 50)
    with scripted(handler) as (_, client), ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(client.call, MODEL, stalled, 3 * SOON) for _ in range(3)]
        assert [client.call(MODEL, CALL, LONG).text for _ in range(20)] == ["A"] * 20
        assert all(isinstance(call.exception(LONG), CallTimedOut) for call in waiting)


def test_a_short_call_is_bounded_while_a_long_one_waits():
    with scripted(always(Silent())) as (_, client), ThreadPoolExecutor(1) as pool:
        long = pool.submit(client.call, MODEL, CALL, LONG)
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, SOON)
        assert not long.done()
        client.cancel_all()


def known(client, model=MODEL):
    """What the client has learnt of a model, whenever that was."""
    return replace(client.traits.of(model.id), learnt_at=0.0)


def refusing(field="temperature"):
    return Reply(error("Unsupported", code="unsupported_parameter", param=field), status=400)


def test_a_refused_parameter_is_named_and_remembered_once_a_call_without_it_succeeded():
    replies = sequence(refusing(), Reply(completion("A")), Reply(completion("A")))
    with scripted(replies) as (provider, client):
        with pytest.raises(ParameterRefused) as raised:
            client.call(MODEL, CALL, LONG)
        assert (raised.value.retry, raised.value.retry_after) == (True, 0.0)
        assert (raised.value.parameter, raised.value.lasting) == ("temperature", True)
        assert known(client) == UNKNOWN
        client.call(MODEL, CALL, LONG, corrections=WITHOUT_TEMPERATURE)
        assert known(client) == COOL
        client.call(MODEL, CALL, LONG)
    assert ["temperature" in body for body in provider.bodies] == [True, False, False]


@pytest.mark.parametrize(
    "second",
    [
        Reply(error("Unsupported", param="temperature"), status=400),
        Reply(error("the image cannot be read"), status=400),
        Reply(error("slow down"), status=429),
        Reply(error("oops"), status=500),
        Reply(error("The model `m` does not exist", code="model_not_found"), status=404),
        Reply(error("oops", code=502)),  # of status 200
        Raw(b""),
        Silent(),
    ],
    ids=["refusal", "content", "429", "500", "404", "200 error", "broken", "late"],
)
def test_nothing_is_remembered_when_the_corrected_call_fails_too(second):
    with scripted(sequence(refusing(), second)) as (provider, client):
        with pytest.raises(ParameterRefused):
            client.call(MODEL, CALL, LONG)
        with pytest.raises(ProviderError):
            client.call(MODEL, CALL, SOON, corrections=WITHOUT_TEMPERATURE)
        assert client.traits.of(MODEL.id) == UNKNOWN
    assert ["temperature" in body for body in provider.bodies] == [True, False]


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (completion("A"), NoLogprobs),
        (completion(""), BadReply),
        (completion("", finish_reason="length"), Cut),
    ],
    ids=["no logprobs", "empty", "cut"],
)
def test_a_correction_is_remembered_of_any_completion_even_of_one_without_an_answer(reply, failure):
    asking = ChatCall(CALL.messages, 50, logprobs=True)
    with scripted(always(Reply(reply))) as (_, client):
        with pytest.raises(failure):
            client.call(MODEL, asking, LONG, corrections=WITHOUT_TEMPERATURE)
        assert known(client) == COOL


def test_a_correction_for_one_call_alone_is_followed_and_forgotten():
    once = NO_CORRECTIONS.plus(COOL, lasting=False)
    with scripted(always(Reply(completion("A")))) as (provider, client):
        client.call(MODEL, CALL, LONG, corrections=once)
        assert client.traits.of(MODEL.id) == UNKNOWN
        both = once.plus(Traits(most_tokens=40), lasting=True)
        client.call(MODEL, CALL, LONG, corrections=both)
        assert known(client) == Traits(most_tokens=40)
        client.call(MODEL, CALL, LONG)
    sent = [(body["max_tokens"], "temperature" in body) for body in provider.bodies]
    assert sent == [(50, False), (40, False), (40, True)]


def test_a_call_without_corrections_teaches_nothing():
    with scripted(always(Reply(completion("A")))) as (_, client):
        client.call(MODEL, CALL, LONG)
        assert client.traits.of(MODEL.id) == UNKNOWN


def test_a_correction_is_merged_into_what_is_known_of_the_model_alone():
    with scripted(always(Reply(completion("A")))) as (provider, client):
        client.traits.learn(MODEL.id, Traits(refused=frozenset({"max_tokens"})))
        client.call(MODEL, CALL, LONG, corrections=WITHOUT_TEMPERATURE)
        assert known(client) == Traits(refused=frozenset({"max_tokens", "temperature"}))
        assert known(client, Model("@t/n", "t", "n")) == UNKNOWN
    assert set(provider.bodies[0]) == {"model", "messages", "max_completion_tokens"}


def test_a_provider_that_refuses_everything_is_asked_at_most_once_for_each_parameter():
    def handler(body, n, headers):
        fields = [name for name in body if name not in ("model", "messages")]
        if not fields:
            return Reply(completion("A"))
        return Reply(error(f"'{fields[-1]}' is unknown"), status=422)

    corrections = NO_CORRECTIONS
    with scripted(handler) as (provider, client):
        for field in ("max_tokens", "max_completion_tokens", "temperature"):
            with pytest.raises(ParameterRefused) as raised:
                client.call(MODEL, CALL, LONG, corrections=corrections)
            assert raised.value.parameter == field
            corrections = corrections.plus(Traits(refused=frozenset({field})), lasting=True)
            assert client.traits.of(MODEL.id) == UNKNOWN
        assert client.call(MODEL, CALL, LONG, corrections=corrections).text == "A"
        assert client.call(MODEL, CALL, LONG).text == "A"
    assert "max_completion_tokens" in provider.bodies[1]
    assert len(provider.bodies) == 5


def limited(body, allowed):
    """A refusal of an output limit above `allowed`, or a completion."""
    if body["max_tokens"] <= allowed:
        return Reply(completion("A"))
    told = f"max_tokens is too large: {body['max_tokens']}; this model takes at most {allowed}"
    return Reply(error(told, param="max_tokens"), status=400)


def test_a_lasting_bound_of_the_output_is_remembered_for_the_model():
    long = ChatCall(CALL.messages, 9_000)
    with scripted(lambda body, n, headers: limited(body, 4_096)) as (provider, client):
        with pytest.raises(ParameterBounded) as raised:
            client.call(MODEL, long, LONG)
        assert (raised.value.retry, raised.value.retry_after) == (True, 0.0)
        assert (raised.value.bound, raised.value.upper, raised.value.lasting) == (4_096, True, True)
        assert client.traits.of(MODEL.id) == UNKNOWN
        bounded = NO_CORRECTIONS.plus(Traits(most_tokens=4_096), lasting=True)
        client.call(MODEL, long, LONG, corrections=bounded)
        assert known(client) == Traits(most_tokens=4_096)
        client.call(MODEL, long, LONG)
        client.call(MODEL, CALL, LONG)
        with pytest.raises(ParameterBounded):
            client.call(Model("@t/n", "t", "n"), long, LONG)
    assert [body["max_tokens"] for body in provider.bodies] == [9_000, 4_096, 4_096, 50, 9_000]


def test_a_bound_from_the_length_of_one_prompt_is_not_remembered():
    words = (
        "This model's maximum context length is 4096 tokens. However, you requested 9100 tokens "
        "(100 in the messages, 9000 in the completion)."
    )
    replies = sequence(Reply(error(words), status=400), Reply(completion("A")))
    long = ChatCall(CALL.messages, 9_000)
    shorter = NO_CORRECTIONS.plus(Traits(most_tokens=3_996), lasting=False)
    with scripted(replies) as (provider, client):
        with pytest.raises(ParameterBounded) as raised:
            client.call(MODEL, long, LONG)
        assert (raised.value.bound, raised.value.lasting) == (3_996, False)
        client.call(MODEL, long, LONG, corrections=shorter)
        assert client.traits.of(MODEL.id) == UNKNOWN
    assert [body["max_tokens"] for body in provider.bodies] == [9_000, 3_996]


def test_a_limit_that_is_too_small_is_raised_for_the_model():
    words = "Invalid 'max_tokens': integer below minimum value. Expected a value >= 200."
    replies = sequence(Reply(error(words), status=400), Reply(completion("A")))
    with scripted(replies) as (provider, client):
        with pytest.raises(ParameterBounded) as raised:
            client.call(MODEL, CALL, LONG)
        assert (raised.value.bound, raised.value.upper, raised.value.lasting) == (200, False, True)
        raised_to = NO_CORRECTIONS.plus(Traits(least_tokens=200), lasting=True)
        client.call(MODEL, CALL, LONG, corrections=raised_to)
        client.call(MODEL, CALL, LONG)
    assert [body["max_tokens"] for body in provider.bodies] == [50, 200, 200]


def test_fewer_alternatives_are_asked_for_until_the_model_takes_them():
    asking = ChatCall(CALL.messages, 50, logprobs=True)

    def handler(body, n, headers):
        if body["top_logprobs"] > 1:
            return Reply(error("top_logprobs is too large"), status=400)
        return Reply(completion("A", tokens=[{"A": 0.9}]))

    with scripted(handler) as (provider, client):
        corrections = NO_CORRECTIONS
        for bound in (5, 1):
            with pytest.raises(ParameterBounded) as raised:
                client.call(MODEL, asking, LONG, corrections=corrections)
            assert raised.value.bound == bound
            corrections = corrections.plus(Traits(top_logprobs=bound), lasting=True)
            assert client.traits.of(MODEL.id) == UNKNOWN
        assert client.call(MODEL, asking, LONG, corrections=corrections).tokens
        assert client.traits.of(MODEL.id).top_logprobs == 1
    assert [body["top_logprobs"] for body in provider.bodies] == [20, 5, 1]


def test_missing_logprobs_are_left_to_the_engine_to_remember():
    asking = ChatCall(CALL.messages, 50, logprobs=True)
    with scripted(always(Reply(completion("A")))) as (_, client):
        with pytest.raises(NoLogprobs):
            client.call(MODEL, asking, LONG)
        assert client.traits.of(MODEL.id) == UNKNOWN


def test_what_is_known_of_a_model_is_shared_by_clients_with_one_memory():
    refusal = Reply(error("x", param="temperature"), status=400)
    memory = TraitMemory(slots=8)
    replies = sequence(refusal, Reply(completion("A")), Reply(completion("A")))
    with ScriptedProvider(replies) as provider:
        catalog = {"t": Provider("t", provider.url, local=True)}
        with (
            closing(Client(catalog, 1, traits=memory)) as first,
            closing(Client(catalog, 1, traits=memory)) as second,
        ):
            with pytest.raises(ParameterRefused):
                first.call(MODEL, CALL, LONG)
            first.call(MODEL, CALL, LONG, corrections=WITHOUT_TEMPERATURE)
            second.call(MODEL, CALL, LONG)
    assert ["temperature" in body for body in provider.bodies] == [True, False, False]


def test_429_then_success():
    replies = sequence(
        Reply(error("slow down"), status=429, headers={"Retry-After": "3"}), Reply(completion("A"))
    )
    with scripted(replies) as (_, client):
        with pytest.raises(Throttled) as raised:
            client.call(MODEL, CALL, LONG)
        assert raised.value.retry_after == 3
        assert client.call(MODEL, CALL, LONG).text == "A"


def test_the_list_of_models_is_read():
    with ScriptedProvider(always(Silent()), models=["a", "b"]) as provider:
        facts = Provider("t", provider.url, local=True, key="k-1")
        with closing(Client({"t": facts}, pool_size=1)) as client:
            assert client.list_models(facts) == ["a", "b"]
    assert provider.requests[0].headers["authorization"] == "Bearer k-1"


def test_the_log_has_the_providers_words_without_the_prompt(caplog):
    reply = Reply(error("bad input: the secret plan", code="bad_input"), status=400)
    with scripted(always(reply)) as (_, client), caplog.at_level(logging.DEBUG):
        with pytest.raises(Refused):
            client.call(MODEL, CALL, LONG)
    assert "@t/m" in caplog.text
    assert "400 code=bad_input: bad input" in caplog.text
    assert "secret" not in caplog.text
    assert "plan" not in caplog.text


def test_a_strict_calls_log_has_no_words_at_all(caplog):
    strict = ChatCall(CALL.messages, 50, deny_data_collection=True)
    for code in ("invalid_value", "code_of_one_provider"):
        reply = Reply(error("unrelated words", code=code), status=400)
        with scripted(always(reply)) as (_, client), caplog.at_level(logging.DEBUG):
            with pytest.raises(Refused):
                client.call(MODEL, strict, LONG)
    # A code that is not known may hold words of the call.
    assert "400 code=invalid_value" in caplog.text
    assert "unrelated" not in caplog.text and "code_of_one" not in caplog.text


def test_text_that_is_no_utf8_is_sent_all_the_same():
    call = ChatCall(({"role": "user", "content": "lone \ud800 surrogate, é"},), 50)
    with scripted(always(Reply(completion("A")))) as (provider, client):
        client.call(MODEL, call, LONG)
    assert provider.bodies[0]["messages"][0]["content"] == "lone ? surrogate, é"


def test_a_provider_on_this_machine_is_not_reached_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with scripted(always(Reply(completion("A")))) as (_, client):
        assert client.call(MODEL, CALL, LONG).text == "A"


def test_a_hosted_provider_is_reached_through_the_environments_proxy(monkeypatch):
    with ScriptedProvider(always(Reply(completion("A")))) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        provider = Provider("t", "http://provider.invalid/v1", key="k-1")
        with closing(Client({"t": provider}, pool_size=1)) as client:
            assert client.call(MODEL, CALL, LONG).text == "A"
    assert proxy.requests[0].path == "http://provider.invalid/v1/chat/completions"


def test_no_model_is_gone_when_the_provider_says_so():
    reply = Reply(error("The model `m` does not exist", code="model_not_found"), status=404)
    with scripted(always(reply)) as (_, client):
        with pytest.raises(Gone):
            client.call(MODEL, CALL, LONG)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        "cannot fetch https://x.example/temperature.png",
        "bad input: logprobs",
        "no JSON schema here",
    ],
)
def test_an_echo_of_the_callers_words_teaches_nothing_about_a_model(words, strict):
    url = {"type": "image_url", "image_url": {"url": "https://x.example/temperature.png"}}
    said = {"type": "text", "text": "logprobs and a JSON schema"}
    call = ChatCall(
        ({"role": "user", "content": [said, url]},),
        50,
        logprobs=True,
        schema={"type": "object"},
        deny_data_collection=strict,
    )
    with scripted(always(Reply(error(words), status=400))) as (_, client):
        with pytest.raises(NoLogprobs):  # as of any refusal where they were asked for
            client.call(MODEL, call, LONG)
        with pytest.raises(FormatRefused):
            client.call(MODEL, replace(call, logprobs=False), LONG)
        with pytest.raises(Refused):
            client.call(MODEL, replace(call, logprobs=False, schema=None), LONG)
        assert client.traits.of(MODEL.id) == UNKNOWN


@pytest.mark.parametrize("status", [400, 422])
def test_a_field_that_the_caller_names_too_is_left_out_of_this_call_alone(status):
    call = ChatCall(({"role": "user", "content": "what is the temperature?"},), 50)
    refusal = Reply(error("temperature is not supported"), status=status)
    replies = sequence(refusal, Reply(completion("A")), Reply(completion("A")))
    with scripted(replies) as (provider, client):
        with pytest.raises(ParameterRefused) as raised:
            client.call(MODEL, call, LONG)
        assert (raised.value.parameter, raised.value.lasting) == ("temperature", False)
        once = NO_CORRECTIONS.plus(COOL, lasting=raised.value.lasting)
        client.call(MODEL, call, LONG, corrections=once)
        assert client.traits.of(MODEL.id) == UNKNOWN
        client.call(MODEL, CALL, LONG)
    assert ["temperature" in body for body in provider.bodies] == [True, False, True]


def test_a_models_id_in_the_log_is_short_and_visible(caplog):
    model = Model("@t/\x1b[31m\u202e" + "x" * 5_000, "t", "m")
    with scripted(always(Reply({}, 500))) as (_, client):
        with pytest.raises(ServerTrouble):
            client.call(model, CALL, LONG)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.isprintable() and len(line) < 300
    assert line.startswith("@t/\ufffd[31m\ufffdxxx")


def test_of_many_failures_within_a_minute_some_are_logged(caplog):
    with scripted(always(Reply(error("no"), status=400))) as (_, client):
        for _ in range(limits.FAILURES_LOGGED + 5):
            with pytest.raises(ProviderError):
                client.call(MODEL, CALL, LONG)
            client.tell("%s: a reply was not readable", MODEL.id)
    assert len(caplog.messages) == limits.FAILURES_LOGGED


@pytest.mark.parametrize("behaviour", [Raw(b""), Reset(), Silent()], ids=["cut", "reset", "late"])
def test_a_call_that_failed_leaves_nothing_that_waits_for_a_collection(behaviour):
    with scripted(always(behaviour)) as (_, client):
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(2):
                with pytest.raises(ProviderError):
                    client.call(MODEL, CALL, SOON)
            gc.collect()
            left = [one for one in gc.garbage if type(one).__name__ in ("frame", "PreparedRequest")]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert left == []
