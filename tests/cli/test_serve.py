"""What only `svc serve` decides; the server it starts is tried in tests/e2e."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from svc.cli.serve import DEMO_MODEL, with_demo
from svc.settings import ProviderOverride, Settings
from tests.e2e.serving import Server

URL = "http://127.0.0.1:1/v1"


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_the_demonstration_is_the_default_model_where_none_is_set() -> None:
    assert with_demo(Settings(), URL).model == DEMO_MODEL


def test_the_demonstration_leaves_a_model_that_is_set_and_the_other_providers() -> None:
    own = ProviderOverride(url="https://models.example/v1", key="secret")
    settings = with_demo(Settings(model="@own/m", providers={"own": own}), URL)
    assert settings.model == "@own/m"
    assert settings.providers == {"own": own, "demo": ProviderOverride(url=URL)}


def test_an_option_left_out_is_read_from_the_environment(tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--addr", "0.0.0.0:0", SVC_NO_AUTH="1") as server:
        assert server.stop() == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_address_is_served_and_shown_in_brackets(tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--addr", "[::1]:0") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.get("/health").status_code == 200
        assert server.stop() == 0
