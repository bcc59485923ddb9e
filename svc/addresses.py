"""Which addresses and host names are this machine's own or public, without asking a resolver."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from functools import lru_cache

# Addresses of IPv6 that stand for one of IPv4 (RFC 6052, section 2.1), and those that are given to
# machines of the internet (RFC 4291, section 2.4).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")

# An address of ISATAP ends with these 32 bits and an address of IPv4. One of the bits says whether
# the latter is unique in the world, and does not matter (RFC 5214, section 6.1).
_ISATAP, _NOT_UNIVERSAL = 0x0000_5EFE, 0xFDFF_FFFF

# Networks that older releases of Python call global: protocol assignments, which hold the metadata
# service of one cloud (RFC 6890), relays of 6to4 (RFC 7526), and documentation (RFC 9637). And the
# one address of the internet at which a cloud serves its machines from inside (Azure's WireServer).
_SPECIAL = (
    ipaddress.ip_network("168.63.129.16/32"),
    ipaddress.ip_network("192.0.0.0/24"),
    ipaddress.ip_network("192.88.99.0/24"),
    ipaddress.ip_network("3fff::/20"),
)

# Nothing is sent there: the system says from which own address it would.
_ANY_PORT = 9

_HOST = re.compile(r"(localhost|[0-9.]+|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


@lru_cache(maxsize=1_024)
def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the IP address, or the path of a Unix socket."""
    if "/" in address:
        return True
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def is_own(address: str) -> bool:
    """Whether an interface of this machine has the IP address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((address, _ANY_PORT))
        except OSError:
            # There is no way from here to it.
            return False
        return bool(asked.getsockname()[0] == address)


def is_public(address: str, own: Callable[[str], bool] = is_own) -> bool:
    """Whether the IP address is one of the internet, and not this machine's `own`.

    Of an IPv6 address that stands for one of IPv4, the latter is looked at.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = _inner(parsed)
        if inner is None and parsed not in _UNICAST:
            return False
        parsed = inner or parsed
    if parsed.is_multicast or any(parsed in network for network in _SPECIAL):
        return False
    return parsed.is_global and not own(str(parsed))


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, None where it does for none."""
    if address in _NAT64 or int(address) >> 32 & _NOT_UNIVERSAL == _ISATAP:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


@lru_cache(maxsize=1_024)
def is_local_host(host: str) -> bool:
    """Whether a `Host` header names this machine: localhost, 127.0.0.0/8 or [::1], any port.

    A page that was loaded from any other name keeps that name here, also when the name has since
    been made to point to this machine.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1].lower()
    return name == "localhost" or is_loopback(name.strip("[]"))
