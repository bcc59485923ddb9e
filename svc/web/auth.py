"""Who may send requests: holders of an API key; this machine alone while there are no keys."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from wsgiref.types import WSGIEnvironment

from flask import Flask, g, request

from svc import limits
from svc.addresses import is_local_host, is_loopback
from svc.errors import Forbidden, InvalidRequest, RateLimited, Unauthorized
from svc.http import KNOWN, LOOKS, WATCHING
from svc.names import UnsoundName, normal_form, project_name
from svc.ratelimit import Buckets, Exceeded
from svc.schemas import DEFAULT_PROJECT
from svc.store import ApiKey, ApiKeyRefused, ApiKeys
from svc.turns import AllTaken, Turns
from svc.web.decorators import count_refusal, routes

# Proxies add these headers, and a caller on this machine does not.
_PASSED_ON = {"HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP"}
_PASSED_ON_PREFIX = "HTTP_X_FORWARDED_"

# The name in the WSGI environment of the header in which clients of Google's APIs send their key.
GOOGLE_KEY = "HTTP_X_GOOG_API_KEY"

# What a browser says of its own requests: made by a page of this server, or by its user.
_OWN_FETCHES = ("same-origin", "none")


def _nothing_stored(_project: str) -> bool:
    return False


_NO_KEYS = (
    "this server answers only holders of an API key, and its database has none; make one with "
    "`svc keys create --name <who>`, or start the server on the right database"
)

# The name in `g` of what to give back at the end of the request.
_TURN = "turn"


@dataclass(frozen=True, slots=True)
class Access:
    """What the caller of a request may do; routes find it in `g.access`.

    `only` is the one project that the key was made for, None for every project. `stored` says
    whether there are decisions of a project.
    """

    key_id: str | None = None
    only: str | None = None
    stored: Callable[[str], bool] = _nothing_stored

    def project(self, requested: str | None) -> str:
        """The project that a request is for, whether it names one or not.

        Raises `Forbidden` for any other project than the key's.
        """
        if self.only is None:
            return DEFAULT_PROJECT if requested is None else requested
        if requested is not None and normal_form(requested) != normal_form(self.only):
            raise Forbidden("this API key is for another project")
        return self.only

    def reading(self, requested: str | None) -> str:
        """The same for a request that only reads: names of before, when any was allowed, count too.

        Raises `Forbidden`, and `InvalidRequest` for a name that no project has or may have.
        """
        if self.only is not None or requested is None:
            return self.project(requested)
        try:
            name = project_name(requested)
        except UnsoundName as error:
            if self.stored(requested):
                return requested
            raise InvalidRequest(f"project: {error}") from None
        return requested if name != requested and self.stored(requested) else name

    def sees(self, project: str) -> bool:
        """Whether a decision of `project` exists for this caller; if not, answer with 404."""
        return self.only in (None, project)


def register(
    app: Flask,
    keys: ApiKeys,
    buckets: Buckets,
    turns: Turns,
    no_auth: bool,
    require_keys: bool = False,
    stored: Callable[[str], bool] = _nothing_stored,
) -> None:
    """Refuse requests that may not use `app`, and put what others may do into `g.access`.

    As long as there are no keys, everybody may use it with `no_auth`, and nobody with
    `require_keys`. `stored` says whether there are decisions of a project. Of a key `turns` counts
    the requests under way, but not those that only look at the server. Without keys nothing is
    counted, since all callers are one and the same then.
    """

    @cache
    def open_paths() -> frozenset[str]:
        """The routes for everybody, collected at the first request, when all are registered."""
        return frozenset(one.path for one in routes(app) if not one.description.guarded)

    def admit() -> None:
        environ, path = request.environ, request.path
        path = path.rstrip("/") or path
        if path in open_paths():
            _admit_anybody(environ, buckets, path)
            return
        key = _admitted(keys, _bearer(environ))
        if key is None:
            if require_keys:
                raise Unauthorized(_NO_KEYS)
            if not no_auth:
                _check_local(environ)
            environ[KNOWN] = True
            g.access = Access(stored=stored)
            return
        environ[KNOWN] = True
        _take(buckets, None if path in WATCHING else turns, key)
        g.access = Access(key.id, key.project, stored)

    def give_back(_: BaseException | None) -> None:
        if (taken := g.pop(_TURN, None)) is not None:
            turns.give_back(*taken)

    app.before_request(admit)
    app.teardown_request(give_back)


def _take(buckets: Buckets, turns: Turns | None, key: ApiKey) -> None:
    """Count the request among those of the minute, and of `turns`. Raises `RateLimited`."""
    try:
        if turns is not None:
            _take_turn(turns, key)
        _reserve(buckets, f"key {key.id}", key.rpm, "this API key")
    except RateLimited:
        count_refusal(key.id)
        raise


def _admit_anybody(environ: WSGIEnvironment, buckets: Buckets, path: str) -> None:
    """Count a request of which nobody knows who sent it. Raises `RateLimited`.

    The server answers those that only look at it, and holds them where there are too many.
    """
    if path in WATCHING:
        environ[LOOKS] = True
    else:
        who, at_once = "callers without an API key", limits.OPEN_AT_ONCE
        _reserve(buckets, "open routes", limits.OPEN_RPM, who, at_once)


def _reserve(buckets: Buckets, name: str, rpm: int, who: str, at_once: int | None = None) -> None:
    """Take one of the requests that `who` may make in a minute. Raises `RateLimited`."""
    try:
        buckets.reserve(name, rpm, at_once=at_once)
    except Exceeded as error:
        raise RateLimited(f"{who} may make {rpm} requests a minute", error.retry_after) from None


def _take_turn(turns: Turns, key: ApiKey) -> None:
    """Count the request among those under way. Raises `RateLimited`."""
    try:
        turn = turns.take(key.id, key.concurrency)
    except AllTaken as error:
        raise RateLimited(
            f"this API key may have {error.most} requests under way at the same time",
            error.retry_after,
        ) from None
    setattr(g, _TURN, (key.id, turn))


def _admitted(keys: ApiKeys, text: str | None) -> ApiKey | None:
    """The key of the caller, None as long as there are no keys. Raises `Unauthorized`."""
    try:
        return keys.admit(text)
    except ApiKeyRefused:
        if text is None:
            raise Unauthorized("an API key is required: send Authorization: Bearer <key>") from None
        raise Unauthorized("the API key is unknown or was revoked") from None


def _bearer(environ: Mapping[str, Any]) -> str | None:
    """The text of the key that came with the request (RFC 6750, section 2.1).

    Clients of Google's APIs send it in a header of its own.
    """
    scheme, _, text = environ.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() == "bearer" and text.strip():
        return text.strip()  # type: ignore[no-any-return]
    return environ.get(GOOGLE_KEY, "").strip() or None


def _check_local(environ: Mapping[str, Any]) -> None:
    """Raise `Forbidden` unless the caller is this machine: no proxy, no page of another origin.

    Web pages reach this machine through its user's browser: by a request to localhost, which has
    their `Origin`, or by a domain of their own that points here, which is then the `Host`.
    """
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
    own = (f"http://{host}".lower(), f"https://{host}".lower())
    passed_on = _passed_on(environ)
    if not _from_this_machine(environ):
        reason = "this request came from another machine"
    elif not is_local_host(host):
        reason = "the Host of this request is not localhost, 127.0.0.1 or [::1]"
    elif passed_on is not None:
        reason = f"a proxy may have passed this request on, since it has {passed_on}"
    elif origin is not None and origin.lower() not in own:
        reason = "the Origin of this request is another site"
    elif environ.get("HTTP_SEC_FETCH_SITE", "none").strip().lower() not in _OWN_FETCHES:
        reason = "a page of another site made this request (Sec-Fetch-Site)"
    else:
        return
    raise Forbidden(
        f"the server has no API keys, so it answers only this machine, and {reason}; make a key "
        "with `svc keys create --name <who>`, or start the server with --no-auth (SVC_NO_AUTH=1)"
    )


def _passed_on(environ: Mapping[str, Any]) -> str | None:
    """The header by which a proxy shows that it passed a request on, None where there is none."""
    for name in environ:
        if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIX):
            words = name.removeprefix("HTTP_").split("_")
            return "-".join("IP" if word == "IP" else word.capitalize() for word in words)
    return None


def _from_this_machine(environ: Mapping[str, Any]) -> bool:
    """Whether the connection comes from this machine, whatever the headers say.

    Servers other than gunicorn do not give the socket, only the address at its other end.
    """
    sock = environ.get("gunicorn.socket")
    if sock is None:
        return is_loopback(environ.get("REMOTE_ADDR", ""))
    return sock.family == socket.AF_UNIX or is_loopback(sock.getsockname()[0])
