"""`POST /v1/lint`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from flask import Blueprint, g
from marshmallow import Schema

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Question
from svc.schemas import QuestionsField, ResponseSchema, Shown, any_question
from svc.shapes import TEXT, array, one_of
from svc.web.decorators import body, report, response
from svc.wording import FAULTS, lint


class LintRequestSchema(Schema):
    """Questions whose wording is to be looked at."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    questions = QuestionsField(any_question)


class FindingSchema(ResponseSchema):
    """One fault in the wording of one question."""

    question = Shown(TEXT, "The key of the question.")
    code = Shown(one_of(FAULTS), "The kind of fault.")
    where = Shown(TEXT, "The part of the question, such as `instructions` or `options.billing`.")
    what = Shown(TEXT, "What is at fault there.")
    why = Shown(TEXT, "Why it hurts.")
    instead = Shown(TEXT, "What to write instead.")


class LintResponseSchema(ResponseSchema):
    """What was found, in the order of the questions."""

    findings = Shown(array(FindingSchema))


def blueprint() -> Blueprint:
    """The route that finds faults in the wording of questions."""
    routes = Blueprint("lint", __name__)

    @routes.post("/v1/lint")
    @body(LintRequestSchema)
    @report
    @response(LintResponseSchema)
    def look(given: Mapping[str, Mapping[str, Question]]) -> JsonObject:
        """Find faults in the wording of questions.

        No model is asked, and nothing is kept. A finding is advice: faults of options, levels,
        bounds, examples and conditions are found in any language, those of single words in English.
        At most {LINT_FINDINGS} are listed, and fewer where names are very long.
        """
        most, chars = limits.LINT_FINDINGS, limits.LINT_CHARS
        found = lint(given["questions"], most, chars, g.deadline.check)
        return {"findings": [asdict(finding) for finding in found]}

    return routes
