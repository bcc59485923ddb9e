"""Which addresses and host names are this machine's own, without asking a resolver."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

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
