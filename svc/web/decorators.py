"""Decorators by which a view says what it takes, what it answers, and how it can fail.

They do what they say: a body and a query are checked here before the view is called, and what it
returns is made a response. The OpenAPI document is made from the same words and the view's
docstring, whose first line is the summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from flask import Flask, Response, g, request
from marshmallow import Schema

from svc import limits
from svc.costly import CostlyWork, FreeSeconds, Places
from svc.deadline import Deadline
from svc.jsontext import JsonObject
from svc.openapi import Description, Route
from svc.pacing import Pacing
from svc.rests import Company, Rests, SharedRests, Work
from svc.schemas import load
from svc.shares import Shares
from svc.web.body import (
    LINES,
    SMALL_BYTES,
    json_response,
    parse,
    read,
    size_of_work,
    unpacked,
)
from svc.web.query import can_refuse
from svc.web.repeat_keys import KEY, REPLAYED, KeySchema
from svc.web.repeats import Repeats

View = Callable[..., Any]
Decorator = Callable[[View], View]
# A part of a path that is different in each request, as Flask writes it.
_PART = re.compile(r"<(\w+)>")
_NAME = "description"  # of the attribute of a view that holds what was said of it
MODEL_FAILURES = (502, 504)  # how a route can fail that asks models
_UNREADABLE = (408, 415, 422)  # how a route with a body can fail besides all others

# What the bodies of a key, other than small ones, have together in the memory of a worker before
# they are read, in bytes. One of unknown length counts as a quarter, and none as more.
ARRIVING_BYTES = 64 * 1024 * 1024

# The requests for metrics that a key has under way in a worker: two servers may collect them, and
# threads are left that tell whether the worker lives.
SCRAPES = 4

# The names in `g` of the body of a request that may be a repeat, and of what says that the request
# counts.
_SENT, _COUNTED = "sent", "counted"

# Seconds of a processor that nobody notices, unless there are many in a row: after work that took
# less its key does not wait.
UNNOTICED_S = 0.02

# Seconds of a processor that a usual request takes at most. A key makes no pauses for these, and
# for more of them only beside other keys.
USUAL_S = 0.005

# Seconds of a processor that a refused request takes, and the pause up to which these count: a
# client that sends thousands is not to be shut out for minutes.
REFUSED_S, REFUSED_PAUSE_S = 0.001, 1.0

# How far a key may be ahead of what it has of a processor, in seconds.
LENIENCE_S = 0.15

# The bytes of a body that is read at once, beside others of its key.
TINY_BYTES = 4_096

_NO_PLACE = nullcontext()
_arriving: dict[str | None, Shares] = {}
_bodies = Shares(limits.BODIES_BYTES)
# The pauses of keys, which count for all work of a kind.
RESTS = {work: Rests(LENIENCE_S if work is Work.ANSWERS else 0.0) for work in Work}
RESTS_OF_STORED = RESTS[Work.STORED]
_reading = CostlyWork(SMALL_BYTES, rests=RESTS[Work.BODIES])
_holding = CostlyWork(SMALL_BYTES, rests=RESTS[Work.HELD])
# Bodies of a few kilobytes are read one after the other, which costs a key nothing, as one thread
# computes at a time in any case; beside other keys each after the pauses of those before. Others do
# not wait behind dozens of its threads.
_loading = CostlyWork(TINY_BYTES, pause=0.0, rests=RESTS[Work.ANSWERS])
_answering = Pacing(RESTS[Work.ANSWERS], USUAL_S)
# What keys take unnoticed for pages and reports.
FREE = FreeSeconds()
_reporting = CostlyWork(small=0, unnoticed_s=UNNOTICED_S, rests=RESTS_OF_STORED, free=FREE)
_making_brief = CostlyWork(small=0, unnoticed_s=USUAL_S, rests=RESTS_OF_STORED)
_scraped = Places(SCRAPES)
_scraping = CostlyWork(small=0, unnoticed_s=USUAL_S, rests=RESTS_OF_STORED)


def share_rests(shared: Mapping[Work, SharedRests], company: Company) -> None:
    """From now on pauses, and who is in whose company, count over all workers that share these."""
    for work, rests in RESTS.items():
        rests.shared = shared[work]
    _answering.company = company


def paced(key_id: str | None, deadline: Deadline) -> AbstractContextManager[None]:
    """What is done in the block counts in what a key has of a processor in company of others.

    Once, also where another block of the request stands within it.
    """
    if _COUNTED in g:
        return nullcontext()
    setattr(g, _COUNTED, True)
    return _answering.paced(key_id, deadline, request.content_length or 0)


def count_refusal(key_id: str) -> None:
    """A request of the key was refused, which counts there too."""
    if _answering.pause_s(key_id) < REFUSED_PAUSE_S:
        _answering.book(key_id, REFUSED_S)


def body(
    schema: type[Schema],
    lines: Callable[[bytes], Any] | None = None,
    most_parts: int = limits.BODY_PARTS,
    held: bool = False,
) -> Callable[[View], View]:
    """The view's first argument is the request's body as `schema` loads it.

    With `lines`, the body may also be JSON lines, which that makes a value for `schema`. As JSON
    it may have `most_parts` members and elements. With `held`, the view is costly too and keeps
    much of the body in memory: its key's next body for such a view is not read before it has ended.
    """
    checked = schema()

    def parsed(sent: bytes) -> Any:
        if lines is not None and request.mimetype in LINES:
            return lines(sent)
        return parse(sent, most_parts)

    def loaded(packed: bytes, turn: AbstractContextManager[None]) -> Any:
        # What a body unpacks to takes memory too, which those that wait do not need yet.
        key_id, deadline = g.access.key_id, g.deadline
        with turn, _loading.turn(key_id, 0 if key_id is None else len(packed), deadline):
            sent = unpacked(packed)
            value = load(checked, parsed(sent))
            deadline.effort.own_noted()
            if KEY in request.environ:
                setattr(g, _SENT, sent)
            return value

    def decorate(view: View) -> View:
        @wraps(view)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            kept = g._get_current_object()
            key_id, deadline = kept.access.key_id, kept.deadline
            with ExitStack() as kept_until_answered:
                kept_until_answered.enter_context(paced(key_id, deadline))
                with _place(key_id, deadline):
                    packed = read()
                    size = size_of_work(packed)
                    turn = _reading.turn(key_id, size, deadline)
                    if held:
                        # A turn of its own: the view may wait for a disk or for a repeat of the
                        # request, and other bodies of the key not for it.
                        with _holding.turn(key_id, size, deadline):
                            return view(loaded(packed, turn), *args, **kwargs)
                    kept_until_answered.enter_context(_room(key_id, size, deadline))
                    value = loaded(packed, turn)
                    del packed
                with _reading.resting(key_id, size, deadline, UNNOTICED_S):
                    return view(value, *args, **kwargs)

        return _say(decorated, body=schema, lines=lines is not None, fails=_UNREADABLE)

    return decorate


def _place(key_id: str | None, deadline: Deadline) -> AbstractContextManager[None]:
    """Room for a body that is not small, while it comes in and is read."""
    announced = request.content_length
    if announced is not None and announced <= SMALL_BYTES:
        return _NO_PLACE
    most = ARRIVING_BYTES // 4
    own = _arriving.setdefault(key_id, Shares(ARRIVING_BYTES))
    return own.held(None, most if announced is None else min(announced, most), deadline)


def _room(key_id: str | None, size: int, deadline: Deadline) -> AbstractContextManager[None]:
    """Room for a large body until its request is answered, which may take as long as a model."""
    if size <= limits.BODY_BYTES_UNCOUNTED:
        return _NO_PLACE
    return _bodies.held(key_id, size, deadline)


def once(repeats: Repeats) -> Decorator:
    """A repeat of a request with an `Idempotency-Key` gets the answer of the first.

    It stands between `body`, which reads what is compared, and `response`.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            if _SENT not in g:
                return view(*args, **kwargs)
            # The body itself may be large, and is not kept for as long as the view takes.
            digest = repeats.digest(g.pop(_SENT))
            status = _description(view).status
            return repeats.answer(digest, partial(view, *args, **kwargs), status)

        return _say(decorated, header=KeySchema, headers=(REPLAYED,), fails=(504,))

    return decorate


def report(view: View) -> View:
    """The view looks through much that is stored: of each key a process makes one at a time."""
    return _in_turns(_reporting, view)


def brief(view: View) -> View:
    """The view takes less than a report, such as to read one thing: the same, in its own turns."""
    return _in_turns(_making_brief, view)


def scrape(view: View) -> View:
    """The view shows all that is counted: the same, and a key has few under way."""
    in_turn = _in_turns(_scraping, view)

    @wraps(view)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if g.access.key_id is None:
            return in_turn(*args, **kwargs)
        with _scraped.place_now(g.access.key_id, "requests for metrics"):
            return in_turn(*args, **kwargs)

    return decorated


def _in_turns(work: CostlyWork, view: View) -> View:
    """Of each key a process does this work for one request at a time, with pauses after it."""

    @wraps(view)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        key_id, deadline = g.access.key_id, g.deadline
        # Monitors ask for metrics day and night, and are no company.
        counted = nullcontext() if work is _scraping else paced(key_id, deadline)
        with counted, work.turn(key_id, 1, deadline):
            return view(*args, **kwargs)

    return _say(decorated, fails=(504,))


def query(schema: type[Schema]) -> Callable[[View], View]:
    """The view's keyword arguments are the values of the query as `schema` loads them."""
    checked = schema()

    def decorate(view: View) -> View:
        @wraps(view)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            return view(*args, **kwargs, **load(checked, dict(request.args.lists())))

        return _say(decorated, query=schema, fails=(422,) if can_refuse(checked) else ())

    return decorate


def path(schema: type[Schema]) -> Callable[[View], View]:
    """The view's other keyword arguments are the parts of its path, which `schema` describes."""
    return lambda view: _say(view, path=schema)


def response(
    schema: Any,
    media: tuple[str, ...] = ("application/json",),
    headers: tuple[str, ...] = (),
    status: int = 200,
) -> Callable[[View], View]:
    """The view returns what `schema` describes: as a JSON value, or as a response.

    `schema` is a marshmallow schema or a JSON schema; `headers` are those that the response has
    besides what every response has. `status` is that of a success.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def decorated(*args: Any, **kwargs: Any) -> Response:
            returned = view(*args, **kwargs)
            return returned if isinstance(returned, Response) else json_response(returned, status)

        return _say(decorated, answers=schema, media=media, headers=headers, status=status)

    return decorate


def fails(*statuses: int) -> Callable[[View], View]:
    """The view can also fail with these statuses."""
    return lambda view: _say(view, fails=statuses)


def fails_as(responses: JsonObject) -> Callable[[View], View]:
    """The view fails in a shape of its own, which these OpenAPI responses describe, by status."""
    return lambda view: _say(view, failures=responses)


def open_to_all(view: View) -> View:
    """The view needs no API key; it holds no data."""
    return _say(view, guarded=False)


def routes(app: Flask) -> Iterator[Route]:
    """Every route of `app`, in the order of registration."""
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            place = _PART.sub(r"{\1}", rule.rule)
            yield Route(method.lower(), place, view, _description(view))


def _description(view: View) -> Description:
    described: Description = vars(view).get(_NAME, Description())
    return described


def _say(view: View, fails: tuple[int, ...] = (), **said: Any) -> View:
    """Add to what is said of a view."""
    earlier = _description(view)
    vars(view)[_NAME] = replace(earlier, fails=(*earlier.fails, *fails), **said)
    return view
