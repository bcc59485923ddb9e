"""What `svc mcp` says when an answer does not come."""

from __future__ import annotations

from typing import Any

import pytest

from svc.cli.forwarding import Forwarder, NoAnswer
from svc.cli.server import Server
from svc.errors import SettingsError
from tests.scripted import Behaviour, Raw, Reply, ScriptedProvider, Silent, always, redirect

LIMITED = {"error": {"type": "rate_limited", "message": "too many"}}
FAILED = {"error": {"type": "model_error", "message": "every model failed"}}


def why(behaviour: Behaviour, key: str | None = None, answer_s: float = 20.0) -> str:
    """What is said of a server that behaves so."""
    with ScriptedProvider(always(behaviour)) as server:
        url = f"http://127.0.0.1:{server.port}"
        with pytest.raises(NoAnswer) as refused:
            Forwarder(Server(url, key), answer_s=answer_s).decide({})
    return str(refused.value)


def test_a_server_that_is_silent_is_not_waited_for_for_ever() -> None:
    assert "did not answer in time" in why(Silent(), answer_s=0.3)


@pytest.mark.parametrize(
    "behaviour",
    [
        Reply("<html>", 200),
        Reply({"hello": "world"}, 200),
        Reply([], 200),
        Reply("not found", 404),
        Reply({"error": "text"}, 500),
        redirect("http://127.0.0.1:1/"),
    ],
)
def test_what_is_no_svc_server_is_said_to_be_none(behaviour: Behaviour) -> None:
    assert "is not an svc server" in why(behaviour, "svc_secret")


def test_a_server_that_breaks_off_is_said_to_be_away() -> None:
    assert "No server answers" in why(Raw(b""))


def test_an_answer_that_is_too_long_is_not_taken_for_no_server() -> None:
    assert "answered with more than 4 MB" in why(Reply("x" * 5_000_000, 200))


def test_a_limit_says_when_to_ask_again() -> None:
    text = why(Reply(LIMITED, 429, {"Retry-After": "7"}))
    assert text == "The server is at a limit; try again in 7 seconds: too many"


def test_other_errors_have_the_servers_words() -> None:
    assert why(Reply(FAILED, 502)) == (
        "The server answered with an error (status 502): every model failed"
    )


@pytest.mark.parametrize("value", [float("inf"), "\ud800"])
def test_what_json_cannot_hold_is_refused_before_it_is_sent(value: Any) -> None:
    with pytest.raises(NoAnswer, match="cannot"):
        Forwarder(Server("http://127.0.0.1:1")).decide({"state": value})


def test_the_key_is_sent_and_no_netrc_is_read(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    for key, sent in ((None, None), ("svc_k", "Bearer svc_k")):
        with ScriptedProvider(always(Reply({"answers": {}}))) as server:
            Forwarder(Server(f"http://127.0.0.1:{server.port}/", key)).decide({})
            (request,) = server.requests
        assert (request.path, request.headers.get("authorization")) == ("/v1/decide", sent)


@pytest.mark.parametrize("url", ["x", "http://", "http://h:99999", "http://a:b@h", "http://h/?q"])
def test_a_url_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="--url"):
        Server(url)
