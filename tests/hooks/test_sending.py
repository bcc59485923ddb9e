"""One request to a receiver, which may hang, drip, or want to be followed elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from svc.hooks import sending
from svc.hooks.sending import Resting, Sender, Undelivered
from svc.hooks.targets import RefusedTarget, parsed
from tests.e2e.tls import write_certificate
from tests.handshakes import endless_handshakes
from tests.hooks.receiver import Answer, Received, Receiver

# The time that receivers have in these tests, and what a busy machine may add.
SECONDS, SLACK = 0.5, 5.0
PUBLIC = "93.184.215.14"

Writes = Callable[[BaseHTTPRequestHandler], None]


def post(url: str, sender: Sender | None = None, allow_private: bool = True) -> int:
    headers = {"content-type": "application/json", "webhook-id": "evt_1"}
    return (sender or Sender(seconds=SECONDS)).post(parsed(url), allow_private, b"{}", headers)


def writing(*parts: bytes, forever: bytes = b"", pause_s: float = 0.0) -> Answer:
    """Writes these, and then the last one as long as it is read."""

    def answer(received: Received, n: int, handler: BaseHTTPRequestHandler) -> None:
        for part in parts:
            handler.wfile.write(part)
        while forever:
            handler.wfile.write(forever)
            time.sleep(pause_s)

    return answer


def test_body_and_headers_arrive_and_the_status_comes_back() -> None:
    with Receiver() as receiver:
        assert post(receiver.url) == 204
        (received,) = receiver.journal
    assert received.body == b"{}" and received.path == "/hooks?token=rosebud"
    assert received.headers["host"] == urlsplit(receiver.url).netloc
    assert received.headers["webhook-id"] == "evt_1"


def test_a_receiver_that_hangs_is_left_in_time() -> None:
    def hangs(received: Received, n: int, handler: BaseHTTPRequestHandler) -> None:
        receiver.over.wait()

    with Receiver(hangs) as receiver:
        began = time.monotonic()
        with pytest.raises(Undelivered, match=r"did not answer within 0\.5 s"):
            post(receiver.url)
    assert time.monotonic() - began < SECONDS + SLACK


def test_a_name_that_is_looked_up_for_all_of_the_time_is_one_that_does_not_answer() -> None:
    def looks_long(host: str, port: int) -> list[str]:
        time.sleep(SECONDS)
        return ["127.0.0.1"]

    with Receiver() as receiver:
        with pytest.raises(Undelivered, match=r"did not answer within 0\.5 s"):
            post(receiver.url, Sender(looks_long, SECONDS))
        assert not receiver.journal


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 2", b""])
def test_an_answer_that_drips_is_cut_in_time(begin: bytes) -> None:
    with Receiver(writing(begin, forever=b"0", pause_s=0.05)) as receiver:
        began = time.monotonic()
        with pytest.raises(Undelivered, match="did not answer within"):
            post(receiver.url)
    assert time.monotonic() - began < SECONDS + SLACK


def test_of_an_answer_without_end_only_the_status_is_read() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"
    with Receiver(writing(head, forever=bytes(65_536))) as receiver:
        assert post(receiver.url) == 200


@pytest.mark.parametrize("headers", [b"", 90 * b"A: b\r\n"])
def test_interim_answers_without_end_are_left_at_once(headers: bytes) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n" + headers + b"\r\n"
    with Receiver(writing(forever=interim)) as receiver:
        began = time.monotonic()
        with pytest.raises(Undelivered, match="its answer is no HTTP"):
            post(receiver.url, Sender(seconds=60.0))
    assert time.monotonic() - began < 60.0


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 " + bytes(200_000), b"HTTP/1.1 200 OK\r\n" + 200 * b"A: b\r\n"]
)
def test_a_head_without_end_is_no_answer(head: bytes) -> None:
    with (
        Receiver(writing(head, forever=b"A: b\r\n")) as receiver,
        pytest.raises(Undelivered, match="no HTTP"),
    ):
        post(receiver.url, Sender(seconds=SLACK))


def test_what_is_no_http_is_no_answer() -> None:
    with Receiver(writing(b"SSH-2.0-x\r\n")) as receiver, pytest.raises(Undelivered, match="HTTP"):
        post(receiver.url, Sender(seconds=SLACK))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with Receiver() as elsewhere:
        location = f"Location: {elsewhere.url}\r\n".encode()
        head = f"HTTP/1.1 {status} Moved\r\n".encode() + location + b"Content-Length: 0\r\n\r\n"
        with Receiver(writing(head)) as receiver:
            assert post(receiver.url) == status
        assert elsewhere.journal == []


def test_a_receiver_that_reads_all_and_closes_is_said_to_have_given_no_answer() -> None:
    with (
        Receiver(writing()) as receiver,
        pytest.raises(Undelivered, match=r"^it closed the connection without an answer"),
    ):
        post(receiver.url, Sender(seconds=SLACK))


def test_nobody_listens() -> None:
    with Receiver() as receiver:
        url = receiver.url
    with pytest.raises(Undelivered, match="cannot be reached"):
        post(url)


def test_a_private_address_is_refused_before_anything_is_sent() -> None:
    with Receiver() as receiver:
        with pytest.raises(RefusedTarget):
            post(receiver.url, allow_private=False)
        assert receiver.journal == []


def test_the_name_is_looked_up_once_and_what_was_checked_is_connected_to() -> None:
    """A second look would find another address, as with DNS rebinding."""
    looked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        looked.append(host)
        return ["127.0.0.1"] if len(looked) == 1 else ["127.0.0.2"]

    with Receiver() as receiver:
        url = f"http://rebound.example:{receiver.port}/"
        assert post(url, Sender(rebinding, SECONDS)) == 204
        assert receiver.journal[0].headers["host"] == f"rebound.example:{receiver.port}"
    assert looked == ["rebound.example"]


def test_a_name_that_leads_to_a_private_address_the_second_time_is_refused_then() -> None:
    found = iter([[PUBLIC], ["127.0.0.1"]])
    with Receiver() as receiver:
        url = f"http://rebound.example:{receiver.port}/"
        sender = Sender(lambda host, port: next(found), 0.05)
        with pytest.raises(Undelivered):
            post(url, sender, allow_private=False)
        with pytest.raises(RefusedTarget):
            post(url, sender, allow_private=False)
        assert receiver.journal == []


def test_the_next_address_is_tried_where_the_first_takes_no_connection() -> None:
    with Receiver() as receiver:
        url = f"http://two.example:{receiver.port}/"
        sender = Sender(lambda host, port: ["127.0.0.9", "127.0.0.1"], SLACK)
        assert post(url, sender) == 204


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy, Receiver() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert post(receiver.url) == 204
        assert proxy.journal == []


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for 127.0.0.1 that this process trusts."""
    certificate = write_certificate(tmp_path / "tls.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    sending._tls.cache_clear()
    return certificate


@pytest.fixture(autouse=True)
def _trusts_as_usual_afterwards():
    yield
    sending._tls.cache_clear()


def test_tls_is_spoken_with_a_receiver_whose_certificate_is_trusted(trusting: Path) -> None:
    with Receiver(tls=trusting) as receiver:
        assert post(receiver.url, Sender(seconds=SLACK)) == 204


def test_the_certificate_must_be_for_the_name_and_not_for_the_address(trusting: Path) -> None:
    with Receiver(tls=trusting) as receiver:
        url = f"https://other.example:{receiver.port}/"
        sender = Sender(lambda host, port: ["127.0.0.1"], SLACK)
        with pytest.raises(Undelivered, match="certificate is not valid"):
            post(url, sender)
        assert receiver.journal == []


def test_a_certificate_of_a_stranger_is_refused(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "tls.pem")
    with Receiver(tls=certificate) as receiver:
        with pytest.raises(Undelivered, match="certificate is not valid"):
            post(receiver.url, Sender(seconds=SLACK))
        assert receiver.journal == []


def test_a_handshake_without_end_is_left_soon() -> None:
    with endless_handshakes() as port:
        began = time.monotonic()
        with pytest.raises(Undelivered, match="too much of a processor"):
            post(f"https://127.0.0.1:{port}/", Sender(seconds=60.0))
        assert time.monotonic() - began < 30.0


def test_a_receiver_that_keeps_taking_a_processor_is_not_asked_for_a_while() -> None:
    sender = Sender(seconds=60.0)
    with endless_handshakes() as port:
        # What two have taken may lack so little that the third is made soon after.
        rests, give_up_at = 0.0, time.monotonic() + 60.0
        while rests <= 1.0:
            assert time.monotonic() < give_up_at
            with pytest.raises(Undelivered) as failure:
                post(f"https://127.0.0.1:{port}/", sender)
            rests = getattr(failure.value, "wait_s", 0.0)
    assert isinstance(failure.value, Resting)
    assert "is asked again later" in str(failure.value)
    with Receiver() as other:
        assert post(other.url.replace("127.0.0.1", "localhost"), sender) == 204


def test_plain_http_behind_https_is_said_so() -> None:
    with Receiver() as receiver, pytest.raises(Undelivered) as failed:
        post(receiver.url.replace("http:", "https:"), Sender(seconds=SLACK))
    assert "rosebud" not in str(failed.value)


def test_no_delivery_takes_a_thread_of_its_own() -> None:
    """Where the system allows no further one, what is due would never be delivered."""
    sender, begun = Sender(seconds=SLACK), list[str]()

    def noted(received: Received, n: int, handler: BaseHTTPRequestHandler) -> int:
        begun.extend(one.name for one in set(threading.enumerate()) - before)
        return 204

    with Receiver(noted) as receiver:
        before = set(threading.enumerate())
        post(receiver.url, sender)
    # The receiver's own, which answers.
    (name,) = begun
    assert "process_request" in name
