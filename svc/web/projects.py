"""`GET /v1/projects` and `GET /v1/questions`."""

from __future__ import annotations

import json
import sys

from flask import Blueprint, g

from svc import limits
from svc.jsontext import JsonObject
from svc.learning import calibrator_kind
from svc.schemas import ResponseSchema, Shown
from svc.shapes import AMOUNT, COUNT, OBJECT, TEXT, array, nullable
from svc.store import Overview, ProjectOverview, QuestionOverview
from svc.web.decorators import query, report, response
from svc.web.query import QueryText, QueryWhole, StrictQuerySchema, project_field

# A place in the list is a key, or so many bytes of a longer one and a further character: each byte
# may take three characters of a URL.
_PLACE_BYTES, _LAST = 400, chr(sys.maxunicode)

_NEXT = "`after` of the next page; null where there is none."


class _PageQuerySchema(StrictQuerySchema):
    limit = QueryWhole(
        *limits.AUDIT_PAGE, description="Entries on the page.", load_default=limits.AUDIT_PAGE[1]
    )
    after = QueryText("Only those after this one: `next_after` of a page.", load_default="")


class ProjectsQuerySchema(_PageQuerySchema):
    pass


class QuestionsQuerySchema(_PageQuerySchema):
    project = project_field()


class ProjectOverviewSchema(ResponseSchema):
    """What is stored of a project."""

    project = Shown(TEXT)
    decisions = Shown(COUNT)
    labels = Shown(COUNT)
    last_seen = Shown(COUNT, "The newest decision, in milliseconds since the epoch.")
    cost_usd = Shown(AMOUNT, "What its decisions cost, in dollars.")


class ProjectsSchema(ResponseSchema):
    """The projects that have decisions, by name."""

    projects = Shown(array(ProjectOverviewSchema, 0, limits.AUDIT_PAGE[1]))
    next_after = Shown(nullable(TEXT), _NEXT)


class QuestionOverviewSchema(ResponseSchema):
    """What is stored of the newest wording of a question."""

    question = Shown(TEXT, "The question's key.")
    type = Shown(TEXT, "Its type.")
    wording = Shown(
        OBJECT,
        "The exact question: `type`, `instructions`, and such as `options` with their descriptions "
        "or the words of the `levels`.",
    )
    wording_id = Shown(
        COUNT, "Its number: decisions with this one among their `wording_ids` were asked just so."
    )
    decisions = Shown(COUNT, "Answers of models to this exact question in the project.")
    labels = Shown(COUNT, "Labels of this exact question in the project.")
    calibrator = Shown(nullable(TEXT), "The kind of calibrator in effect; null without any.")
    last_seen = Shown(
        nullable(COUNT),
        "When it was asked last, in milliseconds since the epoch, up to a minute too early; null "
        "where that was not noted.",
    )


class QuestionsSchema(ResponseSchema):
    """The questions that a project was asked, by key."""

    project = Shown(TEXT)
    questions = Shown(array(QuestionOverviewSchema, 0, limits.AUDIT_PAGE[1]))
    next_after = Shown(nullable(TEXT), _NEXT)


def blueprint(overview: Overview) -> Blueprint:
    """The routes that say which projects and questions there are."""
    routes = Blueprint("projects", __name__)

    @routes.get("/v1/projects")
    @query(ProjectsQuerySchema)
    @report
    @response(ProjectsSchema)
    def projects(limit: int, after: str) -> JsonObject:
        """List the projects that have decisions, with what these add up to.

        A key that is for one project sees that one alone.
        """
        found = overview.projects(g.access.only, after, limit)
        more = found and overview.projects(g.access.only, found[-1].project, 1)
        next_after = found[-1].project if more else None
        return {"projects": [_project(one) for one in found], "next_after": next_after}

    @routes.get("/v1/questions")
    @query(QuestionsQuerySchema)
    @report
    @response(QuestionsSchema)
    def questions(limit: int, after: str, project: str | None = None) -> JsonObject:
        """List the questions that a project was asked, each in its newest wording.

        A page also ends after about 2 MB, or where its questions had over a million different
        answers, counted anew each week; `next_after` leads on. Of keys that begin with the same 397
        to 400 bytes, cut between characters, those after the last one of a page are on no other.
        """
        project = g.access.reading(project)
        found = overview.questions(project, _first(after), limit, limits.PAGE_BYTES)
        place = _place(found[-1].key) if found else None
        more = place is not None and overview.questions(project, _first(place), 1, 0)
        next_after = place if more else None
        shown = [_question(one) for one in found]
        return {"project": project, "questions": shown, "next_after": next_after}

    return routes


def _place(key: str) -> str | None:
    """Where a page that ends with this key leads on to; None where nothing can follow."""
    beginning = key.encode()[:_PLACE_BYTES].decode(errors="ignore")
    if beginning == key:
        return key
    return beginning + _LAST if beginning.strip(_LAST) else None


def _first(place: str) -> str:
    """The first text behind a place, which is a key or stands for all keys that begin alike."""
    beginning = place[:-1].rstrip(_LAST)
    if len(place.encode()) <= _PLACE_BYTES or not beginning:
        return place + "\0"
    following = ord(beginning[-1]) + 1
    # U+D800 to U+DFFF are halves of pairs, which stand in no text.
    return beginning[:-1] + chr(0xE000 if following == 0xD800 else following)


def _project(one: ProjectOverview) -> JsonObject:
    return {
        "project": one.project,
        "decisions": one.decisions,
        "labels": one.labels,
        "last_seen": one.last_at,
        "cost_usd": round(one.cost_usd, 9),
    }


def _question(one: QuestionOverview) -> JsonObject:
    wording = json.loads(one.definition)
    return {
        "question": one.key,
        "type": wording["type"],
        "wording": wording,
        "wording_id": one.question_id,
        "decisions": one.decisions,
        "labels": one.labels,
        "calibrator": calibrator_kind(one.calibrator),
        "last_seen": one.last_at,
    }
