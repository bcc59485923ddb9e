"""What the tests of both decision protocols share: a client in front of a scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.protocol import DecisionCall
from svc.providers.replies import Completion
from svc.questions.kit.base import CHOICE, SCORE, YES_NO, PlainQuestion
from svc.records import Model
from tests.scripted import Reply, ScriptedProvider, always

MODEL = Model("@t/decider/1", "t", "decider/1")
TEAM = PlainQuestion(
    CHOICE, "Which team?", (("billing", "Invoices"), ("access", ""), ("other", " ")), (0, 1, 2)
)
TURNED = PlainQuestion(CHOICE, "Which team?", TEAM.options[::-1], (2, 1, 0))
BAD = PlainQuestion(SCORE, "How bad?", (("low", ""), ("mid", ""), ("high", "")), (0, 1, 2))
URGENT = PlainQuestion(YES_NO, "Is it urgent?")
ALL = (TEAM, TURNED, BAD, URGENT)


def asking(*questions: PlainQuestion, **facts: Any) -> DecisionCall:
    return DecisionCall(questions or ALL, "charged twice", **facts)


@contextmanager
def serving(kind: str, reply: Any, status: int = 200) -> Iterator[tuple[ScriptedProvider, Client]]:
    """A server of a kind whose every reply is the same."""
    with ScriptedProvider(always(Reply(reply, status))) as server:
        provider = Provider("t", server.url, key="k-1", local=True, kind=kind)
        with closing(Client({"t": provider}, pool_size=2)) as client:
            yield server, client


def decide(kind: str, reply: Any, call: DecisionCall, status: int = 200) -> Completion:
    """What one reply to one call is read as."""
    with serving(kind, reply, status) as (_, client):
        return client.call(MODEL, call, 30.0)
