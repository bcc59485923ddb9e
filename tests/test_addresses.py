from __future__ import annotations

import pytest

from svc.addresses import is_local_host, is_loopback


@pytest.mark.parametrize("text", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "/run/s"])
def test_loopback_addresses_are_this_machine_alone(text: str) -> None:
    assert is_loopback(text)


@pytest.mark.parametrize(
    "text", ["0.0.0.0", "::", "10.0.0.1", "fe80::1%eth0", "::ffff:8.8.8.8", "", "localhost"]
)
def test_every_other_address_is_public(text: str) -> None:
    assert not is_loopback(text)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:1", "127.0.0.1", "127.0.0.1:65535", "127.255.0.9:80", "[::1]:7777"],
)
def test_a_local_host_is_localhost_or_a_loopback_address_on_any_port(host: str) -> None:
    assert is_local_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ":80",
        "example.org",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "example.org:127",
        "localhost:80:80",
        "localhost,example.org",
        "localhost@example.org",
        "localhost/",
        " localhost",
        "localhost\n",
        "localhost:",
        "0.0.0.0",
        "10.0.0.1:7777",
        "127.1",
        "127.0.0.1.",
        "127.0.0.256",
        "2130706433",
        "::1",
        "[::]",
        "[::1",
        "[::1].example.org",
        "١٢٧.0.0.1",
    ],
)
def test_any_other_host_is_not_local(host: str) -> None:
    assert not is_local_host(host)
