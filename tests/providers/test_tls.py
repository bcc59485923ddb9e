"""The client over TLS: trust, and handshakes that never end."""

import datetime
import ipaddress
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from svc.deadline import Deadline, Effort
from svc.errors import RateLimited, SettingsError
from svc.providers.bodies import ChatCall
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.failures import (
    CallTimedOut,
    Cancelled,
    KeptBusy,
    ProviderError,
    Refused,
    Resting,
    ServerTrouble,
)
from svc.providers.transport import Transport, trusted
from svc.providers.watchdog import Watchdog
from svc.records import Model
from tests.handshakes import endless_handshakes
from tests.scripted import Endless, Reply, ScriptedProvider, always, completion

MODEL = Model("@t/m", "t", "m")
CALL = ChatCall(({"role": "user", "content": "hello"},), 50)
SOON = 0.3  # seconds: a limit that is meant to be reached
LONG = 30.0  # seconds: a limit that is not


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a key and the certificate that it signed for itself, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "scripted")])
    today = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return str(path)


@pytest.fixture
def secure(certificate):
    """The TLS side of a scripted provider."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@contextmanager
def client_of(url):
    with closing(Client({"t": Provider("t", url, local=True)}, pool_size=4)) as client:
        yield client


def test_a_provider_is_reached_over_tls_on_one_connection(secure, certificate, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    with ScriptedProvider(always(Reply(completion("A"))), tls=secure) as provider:
        with client_of(provider.url) as client:
            assert [client.call(MODEL, CALL, LONG).text for _ in range(3)] == ["A"] * 3
    assert provider.connections == 1


def test_a_call_trusts_nobody_else_than_the_environment_names(secure, certificate, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    tls = trusted()
    with (
        ScriptedProvider(always(Reply({})), tls=secure) as provider,
        closing(Transport(provider.url, 1, tls, local=True)) as transport,
        closing(Watchdog()) as watchdog,
        watchdog.watching(LONG),
    ):
        assert transport.send("POST", "/chat/completions", None, b"{}", LONG).status == 200
    assert len(tls.get_ca_certs()) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused_for_good(secure, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    with ScriptedProvider(always(Reply(completion("A"))), tls=secure) as provider:
        with client_of(provider.url) as client:
            with pytest.raises(Refused, match="certificate"):
                client.call(MODEL, CALL, LONG)
    assert provider.requests == []


def test_a_certificate_for_another_name_is_refused(secure, certificate, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    with ScriptedProvider(always(Reply(completion("A"))), tls=secure) as provider:
        with client_of(provider.url.replace("127.0.0.1", "localhost")) as client:
            with pytest.raises(Refused, match="certificate"):
                client.call(MODEL, CALL, LONG)
    assert provider.requests == []


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_ca_bundle_that_cannot_be_read_stops_the_start(variable, monkeypatch, tmp_path):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    broken = tmp_path / "bundle.pem"
    for content in (None, "no certificate"):
        if content is not None:
            broken.write_text(content)
        monkeypatch.setenv(variable, str(broken))
        with pytest.raises(SettingsError, match=variable), client_of("https://x/v1"):
            pass


def test_a_handshake_without_end_takes_no_more_of_a_processor_than_replies_may():
    """What comes is read below Python, so that nothing that counts bytes or lines sees it."""
    asked = Deadline(LONG)
    with endless_handshakes() as port, client_of(f"https://127.0.0.1:{port}/v1") as client:
        began = time.process_time()
        with pytest.raises(KeptBusy) as failure:
            client.call(MODEL, CALL, LONG, deadline=asked)
        # The server's own thread is in this process too.
        assert time.process_time() - began < 8
        # Nothing is left for calls of this caller to the provider.
        with pytest.raises(Resting):
            client.call(MODEL, CALL, LONG, deadline=asked)
    assert not failure.value.retry and "kept the server busy" in failure.value.public_message


def test_handshakes_without_end_at_the_same_time_take_as_little():
    asked = Deadline(LONG)
    with endless_handshakes() as port, client_of(f"https://127.0.0.1:{port}/v1") as client:

        def call(_number):
            with pytest.raises((KeptBusy, Resting)):
                client.call(MODEL, CALL, LONG, deadline=asked)

        began = time.process_time()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(call, range(60)))
        # One after the other they would take six seconds and more, a tenth of one each.
        assert time.process_time() - began < 5


def test_handshakes_without_end_of_many_requests_take_little_together():
    """Each may take a second; those of twenty took 1.4 processors for 14 s."""
    meters = []

    class Seen(Effort):
        def meter(self, model):
            meters.append(super().meter(model))
            return meters[-1]

    with endless_handshakes() as port, client_of(f"https://127.0.0.1:{port}/v1") as client:

        def call(_number):
            asked = Deadline(LONG, effort=Seen())
            asked.effort.caller = "a"
            with pytest.raises((KeptBusy, Resting)):
                client.call(MODEL, CALL, LONG, deadline=asked)

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(call, range(20)))
    # Half a second beyond what is usual of each, and what they take until that is seen.
    assert sum(meter.busy_s for meter in meters) < 3


def test_a_provider_that_keeps_taking_a_processor_is_not_asked_for_a_while():
    """Each request has its bound, but a caller may send many, and rows of a job are one each."""
    with endless_handshakes() as port, client_of(f"https://127.0.0.1:{port}/v1") as client:

        def failure(caller):
            asked = Deadline(LONG)
            asked.effort.caller = caller
            with pytest.raises(ProviderError) as failed:
                client.call(MODEL, CALL, LONG, deadline=asked)
            return failed.value

        assert type(failure("a")) is KeptBusy
        resting = failure("a")
        assert type(resting) is Resting and resting.retry_after > 1.0 and not resting.retry
        # Rows of jobs wait for so long, and no try counts.
        told = resting.as_api_error()
        assert isinstance(told, RateLimited) and "not asked for a while" in told.message
        assert told.retry_after >= resting.retry_after
        # Who else asks finds out anew.
        assert type(failure("b")) is KeptBusy


def test_a_model_with_nothing_left_of_a_processor_is_asked_on_connections_that_are_open(
    secure, certificate, monkeypatch
):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    asked = Deadline(LONG)
    with ScriptedProvider(always(Reply(completion("A"))), tls=secure) as provider:
        with client_of(provider.url) as client:
            client.call(MODEL, CALL, LONG, deadline=asked)
            asked.effort.replies_s.use(MODEL.id, 10)
            assert client.call(MODEL, CALL, LONG, deadline=asked).text == "A"
        with client_of(provider.url) as client, pytest.raises(KeptBusy):
            client.call(MODEL, CALL, LONG, deadline=asked)
    assert provider.connections == 1


def test_an_endless_reply_over_tls_ends_with_the_call(secure, certificate, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    with ScriptedProvider(always(Endless(every=0.01)), tls=secure) as provider:
        with client_of(provider.url) as client:
            with pytest.raises(CallTimedOut):
                client.call(MODEL, CALL, SOON)


@contextmanager
def handshakes(serve):
    """A listener that treats its one connection as `serve(sock, ended)` does."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(_accept, listener, serve, ended)
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            ended.set()
            serving.result(LONG)


def _accept(listener, serve, ended):
    sock, _ = listener.accept()
    with sock:
        serve(sock, ended)


def _silent(sock, ended):
    ended.wait()


def _dripping(sock, ended):
    """Each byte is in time for the socket's own limit; only the whole takes too long."""
    try:
        sock.sendall(b"\x16\x03\x03\x3f\xff")  # the head of a record of 16 KB
        while not ended.wait(0.02):
            sock.sendall(b"\x02")
    except OSError:  # the client gave up
        return


def _plain_text(sock, ended):
    sock.recv(65_536)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("serve", [_silent, _dripping])
def test_a_handshake_that_never_ends_ends_with_the_call(serve):
    with handshakes(serve) as url, client_of(url) as client:
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, SOON)


def test_a_handshake_can_be_cancelled():
    under_way = threading.Event()

    def serve(sock, ended):
        sock.recv(1)
        under_way.set()
        ended.wait()

    with handshakes(serve) as url, client_of(url) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.call, MODEL, CALL, LONG)
        assert under_way.wait(LONG)
        client.cancel_all()
        assert isinstance(call.exception(LONG), Cancelled)


def test_a_peer_that_speaks_no_tls_is_a_broken_connection():
    with handshakes(_plain_text) as url, client_of(url) as client:
        with pytest.raises(ServerTrouble):
            client.call(MODEL, CALL, LONG)


def plain(url):
    return url.replace("https:", "http:")


@contextmanager
def client_behind(proxy, monkeypatch):
    """A client of a hosted provider that is reached through `proxy` alone."""
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    with closing(Client({"t": Provider("t", "https://127.0.0.1:1/v1")}, pool_size=4)) as client:
        yield client


def test_a_hosted_provider_is_reached_through_a_tunnel(secure, certificate, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    asked = []

    def tunnel(sock, ended):
        asked.append(sock.recv(65_536).split(b"\r\n")[0])
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with secure.wrap_socket(sock, server_side=True) as origin:
            origin.recv(65_536)
            origin.sendall(Reply(completion("A")).wire())
            ended.wait()

    with handshakes(tunnel) as proxy, client_behind(plain(proxy), monkeypatch) as client:
        assert client.call(MODEL, CALL, LONG).text == "A"
    assert asked[0].startswith(b"CONNECT 127.0.0.1:1 HTTP/1.")


def test_a_proxy_over_tls_is_trusted_as_the_environment_says(secure, certificate, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    asked = []

    def refuse(sock, ended):
        with suppress(ssl.SSLError), secure.wrap_socket(sock, server_side=True) as proxy:
            asked.append(proxy.recv(65_536))
            proxy.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    with handshakes(refuse) as proxy, client_behind(proxy, monkeypatch) as client:
        with pytest.raises(ServerTrouble):
            client.call(MODEL, CALL, LONG)
    assert asked[0].startswith(b"CONNECT 127.0.0.1:1 HTTP/1.")


def test_a_proxy_that_drips_ends_with_the_call(monkeypatch):
    def drip(sock, ended):
        try:
            sock.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not ended.wait(0.02):
                sock.sendall(b"y")
        except OSError:  # the client gave up
            return

    with handshakes(drip) as proxy, client_behind(plain(proxy), monkeypatch) as client:
        with pytest.raises(CallTimedOut):
            client.call(MODEL, CALL, SOON)


def test_a_proxy_that_refuses_is_a_broken_connection(monkeypatch):
    def refuse(sock, ended):
        sock.recv(65_536)
        sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    with handshakes(refuse) as proxy, client_behind(plain(proxy), monkeypatch) as client:
        with pytest.raises(ServerTrouble):
            client.call(MODEL, CALL, LONG)
