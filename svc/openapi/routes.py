"""Every route: what it takes, what it answers, and how it can fail."""

from __future__ import annotations

from dataclasses import dataclass

from svc import limits
from svc.openapi import errors
from svc.openapi.examples import of_route
from svc.openapi.shapes import OBJECT, TEXT, Json, array, ref

JSON, HTML = "application/json", "text/html"
PROMETHEUS = ("text/plain", "application/openmetrics-text")  # by the request's Accept
GUARDED = (401, 403, 429)  # of every route that needs a key
EVERY = (400, 413, 500)  # of all: what is no HTTP, too long a head, what fails here
BODY = (408, 415, 422)
MODELS = (502, 504)


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route; `fails` are its statuses besides those of all, `takes` names a component."""

    method: str
    path: str
    id: str
    summary: str
    answers: Json
    media: tuple[str, ...] = (JSON,)
    description: str = ""
    takes: str | None = None
    query: tuple[Json, ...] = ()
    fails: tuple[int, ...] = ()
    guarded: bool = True  # whether it needs a key, once there are keys
    headers: tuple[str, ...] = ("x-request-id",)

    def operation(self) -> Json:
        """The operation object."""
        guards = GUARDED if self.guarded else ()
        failing = sorted({*EVERY, *guards, *self.fails})
        described = {"description": self.description} if self.description else {}
        return {
            "operationId": self.id,
            "summary": self.summary,
            **described,
            "parameters": ["x-request-id", *self.query],  # the first by its name as a component
            **self._body(),
            "responses": {
                "200": self._answer(),
                **{str(status): _error(status) for status in failing},
            },
            **({} if self.guarded else {"security": []}),
        }

    def _body(self) -> Json:
        if self.takes is None:
            return {}
        examples = {
            one.name: {"summary": one.summary, "value": one.request} for one in of_route(self.path)
        }
        media = {"schema": ref(self.takes), "examples": examples}
        return {"requestBody": {"required": True, "content": {JSON: media}}}

    def _answer(self) -> Json:
        examples = {
            one.name: {"summary": one.summary, "value": one.answer} for one in of_route(self.path)
        }
        media = {"schema": self.answers, **({"examples": examples} if examples else {})}
        return {
            "description": self.summary,
            "headers": {name: errors.header(name) for name in self.headers},
            "content": dict.fromkeys(self.media, media),
        }


def paths() -> dict[str, Json]:
    """The path items of the document."""
    items: dict[str, Json] = {}
    for route in ROUTES:
        items.setdefault(route.path, {})[route.method] = route.operation()
    return items


def _error(status: int) -> Json:
    return {"$ref": f"#/components/responses/{errors.name(status)}"}


def _query(name: str, schema: Json, meaning: str, required: bool = False) -> Json:
    return {
        "name": name,
        "in": "query",
        "schema": schema,
        "description": meaning,
        "required": required,
    }


def _whole(bounds: tuple[int, int], default: int) -> Json:
    low, high = bounds
    return {"type": "integer", "minimum": low, "maximum": high, "default": default}


_QUESTION = _query("question", {"type": "string", "minLength": 1}, "A question's key.", True)
_PROJECT = _query(
    "project",
    TEXT,
    "The project; without it `default`, or the project of a key that is for one alone.",
)
_PAGE = (
    _PROJECT,
    _query("limit", _whole(limits.AUDIT_PAGE, limits.AUDIT_PAGE_DEFAULT), "Entries on the page."),
    _query("before", TEXT, "Only decisions older than this one: `next_before` of a page."),
)
_WEEKS = _query(
    "weeks",
    _whole(limits.DRIFT_WEEKS, limits.DRIFT_WEEKS_DEFAULT),
    "How many weeks, the current one included.",
)

ROUTES = (
    Route(
        method="post",
        path="/v1/decide",
        id="decide",
        summary="Answer typed questions about a state.",
        description=(
            f"At most {limits.MODEL_CALLS} model calls and {limits.REQUEST_DEADLINE_S:g} seconds "
            "a request. Equal requests may be served from a cache."
        ),
        takes="DecisionRequest",
        answers=ref("DecisionResponse"),
        fails=(*BODY, *MODELS),
    ),
    Route(
        method="post",
        path="/v1/systemone",
        id="systemone",
        summary="Answer typed questions given in the criteria shape.",
        description="An alias of `/v1/decide` for clients that speak of `criteria`.",
        takes="CriteriaRequest",
        answers=ref("CriteriaResponse"),
        fails=(*BODY, *MODELS),
    ),
    Route(
        method="post",
        path="/v1/feedback",
        id="feedback",
        summary="Give the true answer to a question of a decision.",
        description=(
            "A further label for the same decision and question replaces the earlier one. From "
            f"{limits.MIN_LABELS} labels on, a calibrator is fitted where it clearly helps."
        ),
        takes="FeedbackRequest",
        answers=ref("FeedbackResponse"),
        fails=(404, *BODY),
    ),
    Route(
        method="get",
        path="/v1/calibration",
        id="calibration",
        summary="Report how well a question's probabilities match the labels given for it.",
        description="Of the most recent wording of the question in the project.",
        query=(_QUESTION, _PROJECT),
        answers=ref("CalibrationReport"),
        fails=(404, 422),
    ),
    Route(
        method="get",
        path="/v1/audit",
        id="audit",
        summary="List a project's decisions, newest first, a page at a time.",
        query=_PAGE,
        answers=ref("AuditPage"),
        fails=(404, 422),
    ),
    Route(
        method="get",
        path="/v1/drift",
        id="drift",
        summary="Report a question's answers week by week, and whether they drift.",
        query=(_QUESTION, _PROJECT, _WEEKS),
        answers=ref("DriftReport"),
        fails=(404, 422),
    ),
    Route(
        method="get",
        path="/v1/models",
        id="models",
        summary="List every config that a request may name.",
        answers=ref("ConfigList"),
    ),
    Route(
        method="get",
        path="/health",
        id="health",
        summary="Say that the server answers, and its version.",
        answers=ref("Health"),
        guarded=False,
    ),
    Route(
        method="get",
        path="/metrics",
        id="metrics",
        summary="Counters since the start, in the Prometheus text format.",
        query=(_query("name[]", array(TEXT), "Only these samples."),),
        answers=TEXT,
        media=PROMETHEUS,
    ),
    Route(
        method="get",
        path="/dashboard",
        id="dashboard",
        summary="A page that shows metrics, decisions, calibration and drift.",
        description="It holds no data: it asks for a key and reads the other routes with it.",
        answers=TEXT,
        media=(HTML,),
        guarded=False,
        headers=("x-request-id", "Content-Security-Policy"),
    ),
    Route(
        method="get",
        path="/openapi.json",
        id="openapi",
        summary="Describe this interface in OpenAPI 3.1.",
        answers=OBJECT,
        guarded=False,
    ),
)
