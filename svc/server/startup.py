"""What is checked and opened before the first process of a server starts."""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections.abc import Iterable
from typing import Any

from svc import telemetry
from svc.addresses import is_loopback
from svc.errors import SettingsError
from svc.providers import build_catalog
from svc.settings import Settings
from svc.store import ApiKeys, Database

BACKLOG_CONNECTIONS = 2_048

# What Python and numpy import where it is first used. A process that may open no further file
# cannot import, and a request would fail by it. Imported before the fork its memory is shared.
_LATE_IMPORTS = ("encodings.ascii", "encodings.utf_8_sig", "numpy.ma", "numpy.random")
_IMPORTS_FOR_KEYS = ("cryptography.fernet",)

log = logging.getLogger(__name__)


def resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """The address families and socket addresses of a host name or IP address, one or more.

    Raises `SettingsError`.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise SettingsError(f"cannot listen on {host!r}: there is no such host") from None
    return [(family, address) for family, _, _, _, address in found]


def check(settings: Settings, addresses: Iterable[str]) -> bool:
    """Try what a server needs before it starts; `addresses` are the IP addresses it listens on.

    Returns whether there are API keys. Raises `SettingsError` for a provider or database that
    cannot be used, for an address that other machines reach while there are no keys, and for no
    keys where they are required. Traces that cannot be sent are a warning in the log.
    """
    _import_late(settings)
    build_catalog(settings)
    if settings.traced and (trouble := telemetry.trouble()):
        log.warning("no traces: %s", trouble)
    database = Database.open(settings.db)
    try:
        keys = ApiKeys(database).exist()
    finally:
        database.close()
    if settings.require_keys and not keys:
        raise SettingsError(
            f"database {settings.db!r} has no API keys, and --require-keys (SVC_REQUIRE_KEYS) "
            "wants one; make one with `svc keys create --name <who>`, or name the right file"
        )
    guarded = settings.no_auth or keys
    public = [address for address in addresses if not is_loopback(address)]
    if public and not guarded:
        raise SettingsError(
            f"{public[0]} can be reached from other machines and there are no API keys; "
            "make one with `svc keys create --name <who>`, or pass --no-auth (SVC_NO_AUTH=1)"
        )
    return keys


def _import_late(settings: Settings) -> None:
    keys = _IMPORTS_FOR_KEYS if settings.master_key is not None else ()
    for name in (*_LATE_IMPORTS, *keys):
        importlib.import_module(name)


def listen(settings: Settings) -> tuple[socket.socket, bool]:
    """Check `settings` and listen on their address; nothing is accepted yet.

    Returns with it whether there are API keys. Raises `SettingsError`.
    """
    family, address = resolve(settings.host, settings.port)[0]
    keyed = check(settings, [str(address[0])])
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG_CONNECTIONS), keyed
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        host, port = address[:2]
        raise SettingsError(f"--addr: cannot listen on {host} port {port}: {reason}") from None


def url(listener: socket.socket) -> str:
    """The URL at which a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
