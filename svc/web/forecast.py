"""`POST /v1/forecast`: what many rows will take, before any model is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

from flask import Blueprint, g

from svc.engine.forecast import Forecaster
from svc.jsontext import JsonObject
from svc.schemas import (
    DecisionRequest,
    ForecastRequest,
    ForecastRequestSchema,
    ResponseSchema,
    Shown,
)
from svc.shapes import AMOUNT, COUNT, TEXT, array, nullable
from svc.web.decorators import body, brief, fails, response


class ModelForecastSchema(ResponseSchema):
    """What the rows take of one model that is asked about each of them."""

    model = Shown(TEXT, "The model's id.")
    provider = Shown(TEXT)
    calls = Shown(COUNT, "Its calls, each in one attempt.")
    calls_a_minute = Shown(nullable(COUNT), "What its provider allows; null without a limit.")
    minutes = Shown(nullable(AMOUNT), "How long the calls take at that rate; null without one.")
    input_tokens = Shown(COUNT, "Estimated at 4 characters a token.")
    output_tokens = Shown(COUNT, "The usual ones of such a reply.")
    price = Shown(
        nullable(array(AMOUNT, 2, 2)),
        "Dollars per million tokens of input and of output; null where no price is known.",
    )
    cost_usd = Shown(nullable(AMOUNT), "The tokens at that price; null where there is none.")


class ForecastSchema(ResponseSchema):
    """What a run takes at most, and what this was computed from."""

    rows = Shown(COUNT, "As in the request.")
    sampled = Shown(COUNT, "How many of them were looked at.")
    refused = Shown(COUNT, "How many of these cannot be asked.")
    refused_because = Shown(nullable(TEXT), "What is wrong with the first of them; or null.")
    asked = Shown(COUNT, "How many of all rows can be asked, by the share of the sample.")
    state_chars = Shown(COUNT, "Characters of a sampled row's state, on average.")
    calls = Shown(COUNT, "Calls of all models together.")
    minutes = Shown(
        nullable(AMOUNT),
        "How long the calls take at the providers' rates, side by side; null where none has one.",
    )
    job_minutes = Shown(nullable(AMOUNT), "The same for a job, which takes half of each rate.")
    cost_usd = Shown(
        nullable(AMOUNT), "Dollars of all models together; null where a price is not known."
    )
    without_price = Shown(array(TEXT), "The providers whose price is not known.")
    models = Shown(array(ModelForecastSchema), "Each model by itself.")


def blueprint(asked: Callable[[DecisionRequest, bool], Forecaster]) -> Blueprint:
    """The route that says what rows take; `asked` gives who says it, in batches or not."""
    routes = Blueprint("forecast", __name__)

    @routes.post("/v1/forecast")
    @body(ForecastRequestSchema, held=True)
    @brief
    @response(ForecastSchema)
    @fails(502, 504)
    def say(given: ForecastRequest) -> JsonObject:
        """Say how many calls, minutes and dollars many rows will take, before any is asked.

        No model is asked, and nothing is kept. It holds for every way in which rows are asked: one
        by one, as a job, from Ray or Spark. Of the sample, conditions and rules on the input are
        looked at, and their calls left out; of long states or many rules, in the first rows alone.
        Everything else is what is asked at most: of a chain, a cascade or a race every model, of
        `debias` both orders.
        """
        project = g.access.project(given.template.project)
        forecaster = asked(replace(given.template, project=project), given.batched)
        return asdict(forecaster.forecast(given.sample, given.rows, g.deadline))

    return routes
