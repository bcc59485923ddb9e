"""A client of the service for programs: typed questions in, decisions and feedback out.

    from svc.client import Choice, Client, YesNo

    client = Client("http://127.0.0.1:7777")
    decision = client.decide(text, team=Choice("Which team?", ["billing", "tech"]))
    if decision.team.confidence < 0.9:
        decision.feedback(team="billing")

It imports nothing of the rest of this project, and of other packages `requests` alone.
"""

from __future__ import annotations

from svc.client.client import Client
from svc.client.decisions import Answer, Decision, Label
from svc.client.errors import (
    Forbidden,
    InvalidRequest,
    ModelFailed,
    NoAnswer,
    NotFound,
    RateLimited,
    Refused,
    ServerFailed,
    ServiceError,
    Unauthorized,
)
from svc.client.forecasts import Forecast
from svc.client.questions import Choice, Integer, Multi, Number, Question, Score, Text, YesNo

__all__ = [
    "Answer",
    "Choice",
    "Client",
    "Decision",
    "Forbidden",
    "Forecast",
    "Integer",
    "InvalidRequest",
    "Label",
    "ModelFailed",
    "Multi",
    "NoAnswer",
    "NotFound",
    "Number",
    "Question",
    "RateLimited",
    "Refused",
    "Score",
    "ServerFailed",
    "ServiceError",
    "Text",
    "Unauthorized",
    "YesNo",
]
