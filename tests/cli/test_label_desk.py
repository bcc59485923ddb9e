"""Labels of `svc label` on their way to a server that is not always there."""

from __future__ import annotations

from typing import Any

import pytest

from svc.cli.label_desk import LONGEST_PAUSE_S, PAUSES_S, Desk
from svc.cli.label_texts import Texts
from svc.cli.server import Answer, Unreachable
from svc.cli.server_lines import ServerError

NOUL = {"type": "noul", "instructions": "Is it late?"}
ITEM = {"id": "dec_1", "question": "late", "ref": "T-1", "tags": {}, "state_hash": "0" * 64}
PAGE = {"definition": NOUL, "items": [ITEM], "progress": {"labels": 0, "thresholds": []}}


class Scripted:
    """A server that gives answers, or fails, in the order of a list."""

    def __init__(self, *answers: Answer | Unreachable) -> None:
        self._answers, self.asked = list(answers), 0

    def ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        self.asked += 1
        answer = self._answers.pop(0)
        if isinstance(answer, Unreachable):
            raise answer
        return answer


def given(value: Any, status: int = 200, retry_after: str | None = None) -> Answer:
    return Answer(status, value, "", retry_after)


def error(message: str) -> dict[str, Any]:
    return {"error": {"type": "x", "message": message}}


def desk(server: Any, told: list[str], slept: list[float]) -> Desk:
    query = {"question": "late", "reviewer": "ada"}
    return Desk(server, query, Texts([("T-1", "A text")]), told.append, slept.append)


def test_a_label_is_sent_until_it_is_saved() -> None:
    away, busy = Unreachable("No server answers."), given(error("too many"), 429, "7")
    server = Scripted(given(PAGE), away, away, busy, given({"labels": 1}))
    told: list[str] = []
    slept: list[float] = []
    reviewing = desk(server, told, slept)
    item = reviewing.next()
    assert item is not None and item.text == "A text"
    reviewing.label(item, True)
    assert slept == [*PAUSES_S[:2], 7.0] and server.asked == 5
    assert told[0] == "Not saved yet: No server answers. Trying again in 1 s."
    assert reviewing.labels == 1 and reviewing.saved == {("dec_1", "late")}


def test_between_two_tries_there_is_a_pause() -> None:
    server = Scripted(given(PAGE), given(error("too many"), 429, "0"), given({"labels": 1}))
    slept: list[float] = []
    reviewing = desk(server, [], slept)
    item = reviewing.next()
    assert item is not None
    reviewing.label(item, True)
    assert slept == [PAUSES_S[0]]


def test_a_server_that_names_no_seconds_or_too_many_is_asked_again_all_the_same() -> None:
    date = given(error("too many"), 429, "Sun, 22 Nov 2026 12:00:00 GMT")
    server = Scripted(
        given(PAGE), date, given(error("too many"), 429, "80000"), given({"labels": 1})
    )
    slept: list[float] = []
    reviewing = desk(server, [], slept)
    item = reviewing.next()
    assert item is not None
    reviewing.label(item, True)
    assert slept == [PAUSES_S[0], LONGEST_PAUSE_S]


def test_a_label_that_is_refused_is_not_sent_again() -> None:
    server = Scripted(given(PAGE), given(error("the API key is unknown"), 401))
    reviewing = desk(server, [], [])
    item = reviewing.next()
    assert item is not None
    with pytest.raises(ServerError, match="the API key is unknown"):
        reviewing.label(item, True)
    assert not reviewing.on_its_way and not reviewing.saved


def test_what_went_to_somebody_else_is_no_trouble() -> None:
    server = Scripted(given(PAGE), given(error("not in the hands"), 422))
    reviewing = desk(server, [], [])
    item = reviewing.next()
    assert item is not None
    reviewing.skip(item)


def test_each_item_keeps_the_wording_with_which_it_was_handed_out() -> None:
    anew = {**PAGE, "definition": {**NOUL, "instructions": "Is it in time?"}}
    second = {**ITEM, "id": "dec_2"}
    server = Scripted(given(PAGE), given({**anew, "items": [second]}))
    reviewing = desk(server, [], [])
    items = [reviewing.next(), reviewing.next()]
    assert [one.asked.instructions for one in items if one] == ["Is it late?", "Is it in time?"]
