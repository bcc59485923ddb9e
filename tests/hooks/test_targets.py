"""A hook leads to the internet alone, unless it was allowed to lead elsewhere."""

from __future__ import annotations

import socket

import pytest

from svc import limits
from svc.addresses import is_own, is_public
from svc.hooks.targets import RefusedTarget, addresses, parsed

PUBLIC = "93.184.215.14"

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "::1",
    "0.0.0.0",
    "::",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.0.192",
    "168.63.129.16",
    "192.0.2.1",
    "192.88.99.1",
    "2001:db8::1",
    "3fff::1",
    "::ffff:192.0.0.192",
    "2001:0:53aa:64c:0:0:0:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "2002:7f00:1::1",
    "2606:4700::5efe:7f00:1",
    "2606:4700::200:5efe:10.0.0.1",
    "2002:a00:1::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "not an address",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_no_address_of_this_machine_or_a_private_network_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [PUBLIC, "2606:4700::1111", f"::ffff:{PUBLIC}", "64:ff9b::5db8:d70e", "2002:5db8:d70e::1"],
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, f"::ffff:{PUBLIC}", "64:ff9b::5db8:d70e"])
def test_a_public_address_that_this_machine_has_is_its_own(address: str) -> None:
    assert not is_public(address, own=lambda one: one == PUBLIC)


def test_an_address_of_an_interface_is_this_machines_own() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", 9))
        assert is_own(one.getsockname()[0])
    assert not is_own(PUBLIC)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://[::1]:8080/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
        "http://0/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://localhost/",
        "https://LOCALHOST:8443/x",
    ],
)
def test_no_way_of_writing_leads_to_this_machine(url: str) -> None:
    with pytest.raises(RefusedTarget, match=r"private|no such host"):
        addresses(parsed(url), allow_private=False)


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]:8080/", "http://localhost/"])
def test_a_hook_that_is_allowed_to_leads_there(url: str) -> None:
    assert addresses(parsed(url), allow_private=True)


@pytest.mark.parametrize("found", [[PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], ["::1", PUBLIC]])
def test_one_private_address_of_a_name_is_enough_to_refuse_it(found: list[str]) -> None:
    with pytest.raises(RefusedTarget):
        addresses(parsed("https://example.com/"), False, lambda host, port: found)


def test_of_thousands_of_addresses_the_first_few_may_be_tried() -> None:
    """Who answers for a name lists as many as it likes, and each costs an attempt its time."""
    found = [f"93.184.{number // 250}.{1 + number % 250}" for number in range(4_000)]
    target = parsed("https://example.com/")
    assert addresses(target, False, lambda host, port: found) == found[: limits.ADDRESSES_TRIED]


def test_a_name_without_an_address_is_refused() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror

    with pytest.raises(RefusedTarget, match="no such host"):
        addresses(parsed("https://example.com/"), False, unknown)
    with pytest.raises(RefusedTarget, match="no such host"):
        addresses(parsed("https://" + 70 * "a" + "/"), False)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com/",
        "https://",
        "https:///x",
        "https://user:secret@example.com/",
        "https://example.com@127.0.0.1/",
        "https://user@/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:x/",
        "https://[::1/",
        "https://exa mple.com/",
        "https://example.com/\r\nX-Header: 1",
        "https://example.com\\@127.0.0.1/",
        "https://exämple.com/",
        "https://example.com/#part",
        "https://example.com/" + 2_048 * "a",
    ],
)
def test_what_is_no_plain_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(RefusedTarget) as refused:
        parsed(url)
    assert "secret" not in refused.value.message


def test_what_is_shown_of_a_url_holds_no_token() -> None:
    target = parsed("https://hooks.example.com:8443/services/T0/rosebud?token=rosebud")
    assert target.place == "https://hooks.example.com:8443"
    assert target.path == "/services/T0/rosebud?token=rosebud"
    assert "rosebud" not in repr(target)
    assert parsed("http://[2606:4700::1111]:80").place == "http://[2606:4700::1111]"
