"""Real messages through the whole server; the folder with them is named by SVC_TEST_DATA."""

from __future__ import annotations

import csv
import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.load import post_all
from tests.e2e.serving import Server, stored

MESSAGES = 1_000
pytestmark = pytest.mark.data
INTENTS = (
    "card_arrival",
    "card_linking",
    "exchange_rate",
    "extra_charge_on_statement",
    "fiat_currency_support",
    "automatic_top_up",
    "lost_or_stolen_card",
    "age_limit",
    "pin_blocked",
    "direct_debit_payment_not_recognised",
)
INTENT = {
    "type": "choice",
    "instructions": "What does the customer of the bank write about?",
    "options": dict.fromkeys(INTENTS, ""),
}
BOOKING = {
    "people": {
        "type": "integer",
        "instructions": "How many people is the table for?",
        "min": 1,
        "max": 1_000,
        "nullable": True,
    },
    "date": {
        "type": "text",
        "instructions": "For which date is the table?",
        "max_length": 50,
        "nullable": True,
    },
}


@pytest.fixture
def folder() -> Path:
    return Path(os.environ["SVC_TEST_DATA"])


@pytest.mark.slow
def test_a_thousand_messages_to_a_bank_are_all_answered_and_stored(db: Path, folder: Path) -> None:
    with (folder / "banking77-train.csv").open(encoding="utf-8", newline="") as file:
        ours = (row for row in csv.DictReader(file) if row["category"] in INTENTS)
        rows = list(islice(ours, MESSAGES))
    assert len(rows) == MESSAGES
    bodies = [{"state": row["text"], "questions": {"intent": INTENT}} for row in rows]
    with Server(db, "--demo") as server:
        answered = post_all(server.url, bodies)
        assert server.stop() == 0
    answers = [body["answers"]["intent"] for body in answered]
    assert all(a["choice"] in (*INTENTS, "none_of_these") for a in answers)
    assert all(sum(a["probabilities"].values()) == pytest.approx(1) for a in answers)
    right = sum(a["choice"] == row["category"] for a, row in zip(answers, rows, strict=True))
    assert right > MESSAGES / len(INTENTS)  # better than a guess: the message did arrive
    kept = stored(db)
    assert sorted(body["id"] for body in answered) == list(kept)
    assert all(json.loads(kept[body["id"]]) == body["answers"] for body in answered)


def test_bookings_of_a_restaurant_give_values_of_the_right_shape(db: Path, folder: Path) -> None:
    lines = (folder / "restaurant8k-train.jsonl").read_text(encoding="utf-8").splitlines()
    bodies = [{"state": json.loads(line)["text"], "questions": BOOKING} for line in lines]
    assert len(bodies) == 256
    with Server(db, "--demo") as server:
        answered = post_all(server.url, bodies)
        assert server.stop() == 0
    for body in answered:
        assert body["mode"] == "verbal" and body["debiased"] is False
        assert list(body["answers"]) == ["people", "date"]
        assert_valid_booking(**body["answers"])
    values = [body["answers"] for body in answered]
    assert any(v["people"]["value"] is None for v in values)
    assert any(v["people"]["value"] is not None for v in values)
    assert any(v["date"]["value"] is not None for v in values)
    assert stored(db).keys() == {body["id"] for body in answered}


def assert_valid_booking(people: dict[str, Any], date: dict[str, Any]) -> None:
    for answer in (people, date):
        assert 0 <= answer["confidence"] <= 1
        assert answer["calibrated"] is False
    number, text = people["value"], date["value"]
    assert number is None or (type(number) is int and 1 <= number <= 1_000)
    assert text is None or (isinstance(text, str) and 1 <= len(text) <= 50)
