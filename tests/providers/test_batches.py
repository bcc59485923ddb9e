"""The HTTP of Batch APIs, against the double and replies that no API should give."""

from __future__ import annotations

import gzip
import json
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import responses

from svc.providers import BatchClient, BatchTerms, Provider, ProviderError, RemoteBatch, State
from svc.providers.batch_protocols import BATCH_PROTOCOLS, MistralBatches, OpenAIBatches
from svc.providers.batches import LISTED
from svc.providers.failures import (
    BadReply,
    CallTimedOut,
    Gone,
    KeptBusy,
    KeyRefused,
    Overlong,
    Refused,
    Resting,
    ServerTrouble,
)
from tests.batching import BatchDouble
from tests.handshakes import endless_handshakes
from tests.scripted import Drip, Raw, Reply, ScriptedProvider, always, completion, error, redirect

CALL = b'{"model":"m","messages":[]}'


@pytest.fixture
def double() -> Iterator[BatchDouble]:
    with BatchDouble(always(Reply(completion("A")))) as made:
        yield made


def client_of(url: str, **facts: Any) -> BatchClient:
    return BatchClient(Provider("own", url, local=True, batch=BatchTerms(), **facts))


@pytest.fixture
def client(double: BatchDouble) -> Iterator[BatchClient]:
    made = client_of(double.url)
    yield made
    made.close()


def test_a_handshake_without_end_is_left_soon() -> None:
    with endless_handshakes() as port, closing(client_of(f"https://127.0.0.1:{port}/v1")) as made:
        began = time.monotonic()
        with pytest.raises(KeptBusy):
            made.look("batch_1")
        assert time.monotonic() - began < 30.0


def test_a_provider_that_keeps_taking_a_processor_is_not_asked_for_a_while() -> None:
    """Whichever job asks, and at each look another: what they take together counts."""
    with endless_handshakes() as port:

        def looked() -> ProviderError:
            with closing(client_of(f"https://127.0.0.1:{port}/v1")) as made:
                with pytest.raises(ProviderError) as failure:
                    made.look("batch_1")
            return failure.value

        # What two have taken may lack so little that the third is made soon after.
        failures, give_up_at = [looked()], time.monotonic() + 60.0
        while (failures[-1].retry_after or 0.0) <= 1.0:
            assert time.monotonic() < give_up_at
            failures.append(looked())
    assert isinstance(failures[0], KeptBusy)
    assert isinstance(failures[-1], Resting)
    assert sum(isinstance(one, KeptBusy) for one in failures) <= 3


def calls(folder: Path, number: int = 3) -> Path:
    path = folder / "calls"
    lines = [OpenAIBatches().line(f"{place:032x}", CALL) for place in range(number)]
    path.write_bytes(b"\n".join([*lines, b""]))
    return path


def upload(client: BatchClient, path: Path) -> str:
    data = path.read_bytes()
    return client.upload("calls.jsonl", len(data), data.splitlines(keepends=True))


def test_calls_go_there_and_results_come_back(
    client: BatchClient, double: BatchDouble, tmp_path: Path
) -> None:
    file = upload(client, calls(tmp_path))
    assert client.files_named("calls.jsonl") == [file] and not client.files_named("other.jsonl")
    made = client.create(file, "svc-1", "m")
    batch = client.look(made.id)
    assert (batch.state, batch.done, batch.name) == (State.ENDED, 3, "svc-1")
    results = b"".join(client.download(batch.files[0], 3))
    lines = [json.loads(line) for line in results.splitlines()]
    assert {line["custom_id"] for line in lines} == {f"{place:032x}" for place in range(3)}
    client.delete(file)
    with pytest.raises(ProviderError):
        list(client.download(file, 3))


def test_a_batch_is_found_by_its_name_on_any_page(
    client: BatchClient, double: BatchDouble, tmp_path: Path
) -> None:
    file = upload(client, calls(tmp_path, 1))
    ids = [client.create(file, f"svc-{number}", "m").id for number in range(250)]
    found = client.find("svc-3")
    assert found is not None and found.id == ids[3]
    assert client.find("svc-250") is None


def test_a_large_file_is_sent_as_it_is(
    client: BatchClient, double: BatchDouble, tmp_path: Path
) -> None:
    path = calls(tmp_path, 20_000)
    file = upload(client, path)
    assert double.files[file].data == path.read_bytes()


def test_a_cancelled_batch_and_one_that_failed_say_so(
    client: BatchClient, double: BatchDouble, tmp_path: Path
) -> None:
    double.takes_s, double.failing = 3_600, {1: "model_not_found"}
    file = upload(client, calls(tmp_path))
    first, second = (client.create(file, name, "m") for name in ("a", "b"))
    assert client.look(first.id).state is State.RUNNING
    client.cancel(first.id)
    assert client.look(first.id).state is State.CANCELLED
    assert second.state is State.FAILED and second.codes == ("model_not_found",)


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        (Reply(error("wrong key"), status=401), KeyRefused),
        (Reply(error("down"), status=503), ServerTrouble),
        (Reply(error("no such batch"), status=404), Gone),
        (Reply(error("bad"), status=400), Refused),
        (Reply(b"no json"), BadReply),
        (Reply([]), BadReply),
        (Reply({"id": "../files"}), BadReply),
        (redirect("http://127.0.0.1:1/"), ProviderError),
        (Raw(b""), ServerTrouble),
        (Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), ServerTrouble),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_goes_wrong_is_an_error_of_the_project(behaviour: Any, failure: Any) -> None:
    with ScriptedProvider(always(behaviour)) as provider:
        client = client_of(provider.url, key="s3cret")
        with pytest.raises(failure) as raised:
            client.create("f", "n", "m")
        assert "s3cret" not in str(raised.value)
        assert provider.requests[0].headers["authorization"] == "Bearer s3cret"
        client.close()


def test_an_id_that_the_provider_chose_does_not_get_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = always(Reply(error("no such file"), status=404))
    with ScriptedProvider(gone) as provider, closing(client_of(provider.url)) as client:
        for ask in (
            lambda: client.delete("my-card-4111"),
            lambda: list(client.download("my-card-4111", 1)),
            lambda: client.look("my-card-4111"),
            lambda: client.cancel("my-card-4111"),
        ):
            with pytest.raises(Gone):
                ask()
    shown = [record.args[2] for record in caplog.records if isinstance(record.args, tuple)]
    assert shown == ["/files/…", "/files/…/content", "/batches/…", "/batches/…/cancel"]
    assert "4111" not in caplog.text


def test_a_file_of_results_has_few_lines_for_each_call() -> None:
    for calls, lines, is_read in ((1, 1_000, True), (1, 1_100, False), (1_000, 4_000, True)):
        blank = always(Reply(b"\n" * lines))
        with ScriptedProvider(blank) as provider, closing(client_of(provider.url)) as client:
            if is_read:
                assert len(b"".join(client.download("f", calls))) == lines
            else:
                with pytest.raises(BadReply, match="too long"):
                    list(client.download("f", calls))


@pytest.mark.parametrize("count", [10**4_299, -1, True, 1.5, "1", None])
def test_a_count_of_calls_that_cannot_be_is_none(count: Any) -> None:
    counts = {"completed": count, "failed": count}
    batch = OpenAIBatches().read({"id": "b", "request_counts": counts})
    assert 0 <= batch.done <= 100_000


def test_no_cookie_is_sent_back_and_none_that_takes_long_is_parsed() -> None:
    cookies = ("Set-Cookie: " + "a=b;" * 16_000 + "\r\n") * 4
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n{cookies}"
    hostile = Raw(f"{head}\r\n{{}}".encode())
    with ScriptedProvider(always(hostile)) as provider:
        client = client_of(provider.url)
        for _ in range(2):
            with pytest.raises(BadReply):
                client.look("b")
        assert all("cookie" not in request.headers for request in provider.requests)
        client.close()


def test_nobody_there_is_trouble_of_the_server() -> None:
    client = client_of("http://127.0.0.1:1/v1")
    with pytest.raises(ServerTrouble):
        client.look("b")
    client.close()


@pytest.mark.parametrize("from_header", [False, True])
def test_a_server_that_sends_a_byte_now_and_then_holds_nobody(from_header: bool) -> None:
    dripping = Drip(Reply({"id": "b"}), 0.1, from_header)
    with ScriptedProvider(always(dripping)) as provider:
        given = Provider("own", provider.url, local=True, batch=BatchTerms())
        client = BatchClient(given, exchange_s=0.5)
        began = time.monotonic()
        with pytest.raises(CallTimedOut):
            client.look("b")
        assert time.monotonic() - began < 5
        client.close()


def test_the_protocol_of_mistral_names_the_model_once_for_the_batch() -> None:
    protocol = MistralBatches()
    assert protocol.creation("f", "svc-1", "small") == {
        "input_files": ["f"],
        "endpoint": "/v1/chat/completions",
        "model": "small",
        "timeout_hours": 24,
        "metadata": {"svc": "svc-1"},
    }
    assert json.loads(protocol.line("c", CALL)) == {"custom_id": "c", "body": json.loads(CALL)}
    job = {
        "id": "0b-1",
        "object": "batch",
        "input_files": ["f"],
        "endpoint": "/v1/chat/completions",
        "errors": [{"message": "bad", "count": 1}],
        "status": "TIMEOUT_EXCEEDED",
        "created_at": 1,
        "total_requests": 5,
        "completed_requests": 4,
        "succeeded_requests": 3,
        "failed_requests": 1,
        "metadata": {"svc": "svc-1"},
        "output_file": "o",
        "error_file": "e",
    }
    batch = protocol.read(job)
    assert (batch.id, batch.state, batch.name, batch.done) == ("0b-1", State.ENDED, "svc-1", 4)
    assert batch.files == ("o", "e")
    states = {"QUEUED": State.RUNNING, "RUNNING": State.RUNNING, "SUCCESS": State.ENDED}
    states |= {"FAILED": State.FAILED, "CANCELLED": State.CANCELLED, "new": State.RUNNING}
    assert {name: protocol.read({**job, "status": name}).state for name in states} == states
    assert protocol.page({"data": [job] * 100}, 0) == "?page_size=100&page=1"
    assert protocol.page({"data": [job]}, 1) == ""


@pytest.mark.parametrize("protocol", BATCH_PROTOCOLS.values())
@pytest.mark.parametrize("payload", [None, [], "b", {}, {"id": 3}, {"id": "a/b"}])
def test_what_is_no_batch_is_refused(protocol: Any, payload: Any) -> None:
    with pytest.raises(ValueError, match="no batch"):
        protocol.read(payload)


@pytest.mark.parametrize("protocol", BATCH_PROTOCOLS.values())
def test_a_batch_with_odd_fields_is_read_as_far_as_it_goes(protocol: Any) -> None:
    odd = {"id": "b", "status": 3, "metadata": [], "request_counts": "x", "errors": {"data": 1}}
    batch = protocol.read({**odd, "output_file_id": 5, "output_file": 5})
    assert (batch.state, batch.name, batch.done, batch.files) == (State.RUNNING, "", 0, ())


BAD_IDS = ["../batches", "a?b=c", "a b", "a\x1b[2J", "é", ".", "x" * 201]


@pytest.mark.parametrize("given", BAD_IDS)
@pytest.mark.parametrize("protocol", BATCH_PROTOCOLS.values())
def test_an_id_that_is_no_part_of_a_path_is_not_used(protocol: Any, given: str) -> None:
    with pytest.raises(ValueError, match="id that cannot be used"):
        protocol.read({"id": "b", "output_file_id": given, "output_file": given})
    with pytest.raises(ValueError, match="no batch"):
        protocol.read({"id": given})
    page = protocol.page({"data": [{"id": given}] * 100, "has_more": True}, 0)
    assert given not in page


@pytest.mark.parametrize("given", BAD_IDS)
def test_an_uploaded_file_whose_id_cannot_be_used_is_no_file(tmp_path: Path, given: str) -> None:
    file = {"id": given, "filename": "calls.jsonl"}
    client = client_of("http://provider.test/v1")
    with responses.RequestsMock() as transport:
        for method in (responses.POST, responses.GET):
            transport.add(method, "http://provider.test/v1/files", json={**file, "data": [file]})
        with pytest.raises(BadReply):
            upload(client, calls(tmp_path))
        assert client.files_named("calls.jsonl") == []
    client.close()


@pytest.mark.parametrize("listed", [5, {"a": 1}, "b", True])
def test_a_list_of_batches_that_is_none_is_an_error_of_the_project(listed: Any) -> None:
    with ScriptedProvider(always(Reply({"data": listed}))) as provider:
        client = client_of(provider.url)
        with pytest.raises(BadReply):
            client.find("n")
        assert client.files_named("n") == []
        client.close()


def test_a_reply_of_too_many_parts_is_not_parsed() -> None:
    small = b'{"data":[' + b",".join([b"{}"] * 600_000) + b"]}"
    headers = {"Content-Encoding": "gzip"}
    with ScriptedProvider(lambda *_: Reply(gzip.compress(small), headers=headers)) as provider:
        client = client_of(provider.url)
        with pytest.raises(BadReply, match="too many members"):
            client.find("x")
        client.close()


def test_in_the_pause_after_a_long_reply_those_of_other_providers_are_read() -> None:
    with (
        ScriptedProvider(always(Reply({"data": []}))) as long,
        ScriptedProvider(always(Reply({"data": []}))) as short,
        closing(client_of(short.url)) as other,
    ):
        read: list[RemoteBatch | None] = []
        lying = Provider("lying", long.url, local=True, batch=BatchTerms())
        looking = threading.Thread(target=lambda: read.append(other.find("x")))

        def pause(_: float) -> None:
            looking.start()
            looking.join(30)

        with closing(BatchClient(lying, sleep=pause, worked=iter((0.0, 1.0)).__next__)) as client:
            client.find("x")
        assert read == [None]


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("packed", [True, False])
def test_of_a_long_refusal_little_is_read(packed: bool) -> None:
    body = b'{"error":{"p":[' + b",".join([b"[]"] * 1_300_000) + b'],"message":"no"}}'
    reply = Reply(gzip.compress(body), 503, headers=GZIP) if packed else Reply(body, 503)
    with (
        ScriptedProvider(always(reply)) as provider,
        closing(client_of(provider.url)) as client,
    ):
        before = time.thread_time()
        for _ in range(8):
            with pytest.raises(ServerTrouble):
                client.find("x")
        assert time.thread_time() - before < 1.0


def test_a_reply_that_takes_long_to_read_is_followed_by_a_pause() -> None:
    pauses: list[float] = []
    worked = iter((0.0, 0.01, 1.0, 1.1)).__next__
    with ScriptedProvider(always(Reply({"data": []}))) as provider:
        given = Provider("own", provider.url, local=True, batch=BatchTerms())
        with closing(BatchClient(given, sleep=pauses.append, worked=worked)) as client:
            assert client.find("x") is None
            assert pauses == []
            assert client.find("x") is None
    assert pauses == pytest.approx([9 * 0.11])


def test_many_short_readings_are_followed_by_a_pause_too() -> None:
    """As of the lines of a file of results, which a provider may fill with anything."""
    pauses: list[float] = []
    given = Provider("own", "http://127.0.0.1:9/v1", local=True, batch=BatchTerms())
    line = b"[" + b",".join([b"[]"] * 10_000) + b"]"
    with closing(BatchClient(given, sleep=pauses.append)) as client:
        before = time.thread_time()
        for _ in range(200):
            assert len(client.read_slowly(lambda: json.loads(line))) == 10_000
        took_s = time.thread_time() - before
        assert 7 * took_s < sum(pauses) < 10 * took_s
        pauses.clear()
        for _ in range(20):
            client.read_slowly(lambda: json.loads(line), usual_s=60.0)
    assert not pauses


def test_a_list_of_more_batches_than_anybody_has_is_not_read() -> None:
    page = Reply({"data": [1] * LISTED + [{"id": "x"}], "has_more": True})
    with ScriptedProvider(always(page)) as provider:
        client = client_of(provider.url)
        with pytest.raises(BadReply, match="over 100,000 batches"):
            client.find("n")
        client.close()
    assert len(provider.requests) == 1


def test_the_pages_of_a_list_take_no_longer_together_than_a_few_exchanges() -> None:
    page = Reply({"data": [{"id": "x"}], "has_more": True}, delay=0.1)
    with ScriptedProvider(always(page)) as provider:
        given = Provider("own", provider.url, local=True, batch=BatchTerms())
        client = BatchClient(given, exchange_s=0.2)
        with pytest.raises(CallTimedOut, match="list of batches"):
            client.find("n")
        client.close()
    assert 1 < len(provider.requests) < 40


def test_an_empty_list_of_batches_may_be_null() -> None:
    with ScriptedProvider(always(Reply({"data": None}))) as provider:
        client = client_of(provider.url)
        assert client.find("n") is None
        client.close()


def in_chunks(body: bytes, size: int) -> Raw:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Raw(head + chunks + b"0\r\n\r\n")


def downloaded(behaviour: Raw | Reply, calls_of: int = 3) -> bytes:
    with ScriptedProvider(always(behaviour)) as server:
        client = client_of(server.url)
        try:
            return b"".join(client.download("file-1", calls_of))
        finally:
            client.close()


def test_a_long_file_may_come_in_chunks_but_not_in_crumbs() -> None:
    body = b"x" * 15_000_000
    assert downloaded(in_chunks(body, 1_000)) == body
    with pytest.raises(BadReply):
        downloaded(in_chunks(body[:100_000], 2))


def test_a_file_of_results_is_as_long_as_its_calls_allow() -> None:
    body = b"x" * 80_000_000
    with pytest.raises(Overlong):
        downloaded(in_chunks(body, 100_000))
    assert downloaded(in_chunks(body, 100_000), calls_of=80) == body


@pytest.mark.parametrize("parts", [1, 3, 1_000])
def test_a_packed_file_of_results_is_unpacked_whole(parts: int) -> None:
    body = b'{"custom_id":"1"}\n' * 50_000
    size = len(body) // parts
    packed = b"".join(
        gzip.compress(body[place : place + size]) for place in range(0, len(body), size)
    )
    for sent in (packed, packed + b"padding", zlib.compress(body)):
        reply = Reply(sent, headers={"Content-Encoding": "gzip"})
        assert downloaded(reply, calls_of=100_000) == body
    with pytest.raises(BadReply, match="decompressed"):
        downloaded(Reply(b"no gzip", headers={"Content-Encoding": "gzip"}))


def packed_nothing(size: int) -> bytes:
    """The beginning of a packed file: blocks without a byte in them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    begun = packer.compress(b"") + packer.flush(zlib.Z_SYNC_FLUSH)
    return begun + b"\x00\x00\x00\xff\xff" * (size // 5)


LONG_HEAD = b"X: " + b"x" * 400 + b"\r\n"
GZIP = {"Content-Encoding": "gzip"}
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDING = b"Content-Length: 2\r\n\r\n{}"
NOTHING = {
    "packed nothing": Reply(packed_nothing(2_000_000), headers=GZIP),
    "packed parts of nothing": Reply(gzip.compress(b"") * 100_000, headers=GZIP),
    "packed parts of little": Reply(gzip.compress(b"x" * 64) * 20_000, headers=GZIP),
    "long trailers": Raw(CHUNKED + b"0\r\n" + LONG_HEAD * 5_000 + b"\r\n"),
    "long interim answers": Raw(
        (b"HTTP/1.1 100 Continue\r\n" + LONG_HEAD * 60 + b"\r\n") * 80 + OK + ENDING
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_file_that_goes_on_without_a_result_is_not_read(name: str) -> None:
    with pytest.raises(BadReply):
        downloaded(NOTHING[name])


def test_a_few_bytes_that_hold_gigabytes_are_not_unpacked_to_their_end() -> None:
    """40 KB a part, and 2 GB in all."""
    reply = Reply(gzip.compress(b"x" * 40_000_000) * 50, headers=GZIP)
    unpacked = 0
    with ScriptedProvider(always(reply)) as server, closing(client_of(server.url)) as client:
        with pytest.raises(KeptBusy):
            for piece in client.download("file-1", 1_000):
                unpacked += len(piece)
    assert unpacked < 1_500_000_000


def test_what_has_come_for_a_packed_file_is_told() -> None:
    body = gzip.compress(b'{"custom_id":"1"}\n' * 50_000)
    came: list[int] = []
    with (
        ScriptedProvider(always(Reply(body, headers=GZIP))) as server,
        closing(client_of(server.url)) as client,
    ):
        assert sum(map(len, client.download("file-1", 100_000, came.append))) == 900_000
    assert sum(came) == len(body)


def test_what_is_no_list_has_the_length_of_any_reply() -> None:
    filled = {"id": "b", "status": "in_progress", "more": "x" * 5_000_000}
    with ScriptedProvider(always(Reply(filled))) as server, closing(client_of(server.url)) as one:
        with pytest.raises(BadReply, match="too long"):
            one.look("b")
        assert one.files_named("calls.jsonl") == []
    longest = always(Reply({"data": ["x" * 9_000_000]}))
    with ScriptedProvider(longest) as server, closing(client_of(server.url)) as one:
        with pytest.raises(BadReply, match="too long"):
            one.find("n")
