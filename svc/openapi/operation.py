"""One route in OpenAPI: the description of its view, and what applies to every route."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema

from svc import limits
from svc.openapi.error_responses import reference
from svc.openapi.examples import Exchange, of_route
from svc.shapes import OBJECT, TEXT, Json

JSON, LINES = "application/json", "application/x-ndjson"
# The error statuses of every route that needs a key, and those of every route.
GUARDED_FAILURES, COMMON_FAILURES = (401, 403, 429), (400, 413, 500)


@dataclass(frozen=True, kw_only=True)
class Description:
    """What the decorators of a view say of it.

    With `lines` its body may be JSON lines too. `status` is that of a success. `fails` are its
    error statuses besides the common ones; `failures` replace all. A `guarded` view needs a key.
    """

    body: type[Schema] | None = None
    lines: bool = False
    query: type[Schema] | None = None
    path: type[Schema] | None = None
    header: type[Schema] | None = None
    answers: Any = None
    status: int = 200
    media: tuple[str, ...] = (JSON,)
    headers: tuple[str, ...] = ()
    fails: tuple[int, ...] = ()
    failures: Json | None = None
    guarded: bool = True


@dataclass(frozen=True)
class Route:
    """A view, and where the application serves it."""

    method: str
    path: str
    view: Callable[..., Any]
    description: Description

    def operation(self) -> Json:
        """The operation object, in which schemas stand in place of components.

        The first line of the view's docstring is the summary, the rest the description, in which
        `{NAME}` stands for a figure of `svc.limits`.
        """
        summary, _, rest = (inspect.getdoc(self.view) or "").partition("\n\n")
        about = " ".join(rest.format_map(vars(limits)).split())
        said = self.description
        failing = {*COMMON_FAILURES, *said.fails, *(GUARDED_FAILURES if said.guarded else ())}
        errors = {f"{one}": reference("responses", f"Error{one}") for one in sorted(failing)}
        return {
            "operationId": self.view.__name__,
            "summary": summary,
            **({"description": about} if about else {}),
            **self._body(),
            "responses": {f"{said.status}": self._answer(summary), **(said.failures or errors)},
            **({} if said.guarded else {"security": []}),
        }

    def _body(self) -> Json:
        if self.description.body is None:
            return {}
        examples = _examples(self.path, lambda example: example.request)
        media = {JSON: {"schema": self.description.body, **examples}}
        if self.description.lines:
            media[LINES] = {"schema": {**TEXT, "description": "A JSON object in each line."}}
        return {"requestBody": {"required": True, "content": media}}

    def _answer(self, summary: str) -> Json:
        examples = _examples(self.path, lambda example: example.answer)
        media = {"schema": self.description.answers or OBJECT, **examples}
        headers = ("x-request-id", *self.description.headers)
        return {
            "description": summary,
            "headers": {name: reference("headers", name) for name in headers},
            "content": dict.fromkeys(self.description.media, media),
        }


def _examples(path: str, part: Callable[[Exchange], Any]) -> Json:
    shown = {one.name: {"summary": one.summary, "value": part(one)} for one in of_route(path)}
    return {"examples": shown} if shown else {}
