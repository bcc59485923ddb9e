"""Where a hook may lead: to public addresses, and to others only where the operator allowed it."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from svc import limits
from svc.addresses import is_local_host, is_public
from svc.errors import SvcError

_PORTS = {"http": 80, "https": 443}

# Visible characters without those that browsers and servers read in different ways.
_SOUND = re.compile(r"[!-~]+")
_UNSOUND = re.compile(r"[\\<>\"^`{|}#]")

# The IP addresses of a host name. Raises `OSError`.
Resolve = Callable[[str, int], Iterable[str]]


class RefusedTarget(SvcError):
    """A hook may not lead there; the message shows nothing of the URL but its host."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a URL. `path` includes the query, and either may hold a token."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)

    @property
    def authority(self) -> str:
        """The host, and the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """What may be shown of it."""
        return f"{self.scheme}://{self.authority}"

    @property
    def readable(self) -> bool:
        """Whether others on the way to it can read what is sent."""
        return self.scheme == "http" and not is_local_host(self.authority)


def parsed(url: str) -> Target:
    """The parts of a hook's URL. Raises `RefusedTarget`."""
    if len(url) > limits.HOOK_URL_CHARS:
        raise RefusedTarget(
            f"the URL has {len(url):,} characters; allowed: {limits.HOOK_URL_CHARS:,}"
        )
    if not _SOUND.fullmatch(url) or _UNSOUND.search(url):
        raise RefusedTarget(
            "the URL has characters that none may have; write them with %, and a host name in "
            "other letters as xn--…; it may not have a fragment (#)"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RefusedTarget("the URL has no valid host or port") from None
    if parts.scheme not in _PORTS:
        raise RefusedTarget("the URL must begin with https:// or http://")
    if "@" in parts.netloc:
        raise RefusedTarget("the URL may not hold a user or a password")
    if not parts.hostname or port == 0:
        raise RefusedTarget("the URL has no valid host or port")
    query = f"?{parts.query}" if parts.query else ""
    path = (parts.path or "/") + query
    return Target(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path)


def resolved(host: str, port: int) -> Iterable[str]:
    """The addresses that the system has for a name. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # Without the zone of a link-local address, which is never public; each once.
    return dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found)


def addresses(target: Target, allow_private: bool, resolve: Resolve = resolved) -> list[str]:
    """The first addresses to which the target leads now; every one must be allowed.

    Whoever connects must connect to one of these, since another look might find others.
    Raises `RefusedTarget`.
    """
    try:
        found = list(resolve(target.host, target.port))
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise RefusedTarget(f"there is no such host as {target.host[:100]!r}")
    if not allow_private and not all(map(is_public, found)):
        raise RefusedTarget(
            f"{target.host[:100]!r} leads to this machine or to a private address, which "
            "--allow-private allows"
        )
    return found[: limits.ADDRESSES_TRIED]
