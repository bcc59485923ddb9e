"""What only `svc serve` decides; the server it starts is tried in tests/e2e."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from svc.inprocess import DEMO_MODEL, with_demo
from svc.settings import ProviderOverride, Settings
from tests.e2e.serving import Server
from tests.e2e.test_access import make_key

URL = "http://127.0.0.1:1/v1"
DECISION = {"state": "x", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}}


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_the_demonstration_leaves_the_other_providers() -> None:
    own = ProviderOverride(url="https://models.example/v1", key="secret")
    settings = with_demo(Settings(providers={"own": own}), URL)
    assert settings.providers == {"own": own, "demo": ProviderOverride(url=URL)}


def test_the_demonstration_answers_by_default_whatever_the_environment_names(
    tmp_path: Path,
) -> None:
    with Server(tmp_path / "svc.db", "--demo", SVC_MODEL="@own/m") as server:
        assert server.post(DECISION).json()["model"] == DEMO_MODEL


def test_a_model_named_on_the_command_line_stays_the_default(tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--demo", "--model", "@nowhere/m") as server:
        assert "nowhere" in server.post(DECISION).json()["error"]["message"]


def test_an_option_left_out_is_read_from_the_environment(tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--addr", "0.0.0.0:0", SVC_NO_AUTH="1") as server:
        assert server.stop() == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_is_served_and_shown_in_brackets(tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--addr", "[::1]:0") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.get("/health").status_code == 200
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("options", "settings", "model", "keys"),
    [
        (["--demo"], {}, "@demo/lexical", "keys: none, only this machine is answered; `svc keys"),
        (["--no-auth"], {"OPENAI_API_KEY": "k"}, "@openai/", "keys: none, and everybody who"),
        ([], {}, "requests must name one: ", "keys: none, only this machine"),
    ],
)
def test_the_start_says_where_the_dashboard_is_who_answers_and_who_is_answered(
    tmp_path: Path, options: list[str], settings: dict[str, str], model: str, keys: str
) -> None:
    with Server(tmp_path / "svc.db", *options, **settings) as server:
        assert server.get("/").status_code == 200
        assert server.stop() == 0
    _, dashboard, who, access, *_ = server.log.splitlines()
    assert dashboard == f"dashboard: {server.url}/dashboard"
    assert who.startswith(f"model: {model}")
    assert access.startswith(keys)


def test_with_keys_the_start_says_so_and_a_json_log_has_no_further_lines(tmp_path: Path) -> None:
    make_key(tmp_path / "svc.db", "ada")
    with Server(tmp_path / "svc.db", "--model", "@own/m") as server:
        assert server.stop() == 0
    assert "keys: on, every request needs one" in server.log.splitlines()
    with Server(tmp_path / "svc.db", SVC_LOG="json") as server:
        assert server.stop() == 0
    assert "dashboard:" not in server.log
