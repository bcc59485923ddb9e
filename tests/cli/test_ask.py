from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc.cli.answer_table import answer_table
from svc.schemas import load_questions
from tests.cli.processes import NOUL, inside
from tests.e2e.serving import Server
from tests.e2e.test_access import make_key

TEXT = "My parcel never arrived, I want my money back!"


def test_a_recipe_is_asked_about_a_text_and_answers_stand_in_a_table() -> None:
    ended = inside("ask", "--demo", TEXT, "-r", "support-triage")
    assert ended.exit_code == 0, ended.stderr
    head, *rows = ended.stdout.splitlines()
    assert head.split() == ["question", "answer", "probability", "others"]
    assert [row.split()[0] for row in rows] == ["queue", "urgency", "angry", "answerable"]
    assert rows[0].split()[1] == "shipping"


def test_a_file_of_questions_is_asked_and_the_text_may_come_from_standard_input(
    tmp_path: Path,
) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps(NOUL))
    typed = inside("ask", "--demo", "--json", "-q", path, "The parcel is late.")
    piped = inside("ask", "--demo", "--json", "-q", path, "-", stdin="\ufeffThe parcel is late.\n")
    answers = [json.loads(one.stdout)["answers"] for one in (typed, piped)]
    assert answers[0] == answers[1]
    assert answers[0]["late"]["noul"] > 0.5


def test_a_running_server_answers_and_keeps_the_decision(tmp_path: Path) -> None:
    _, key = make_key(tmp_path / "svc.db", "ada", "--project", "shop")
    with Server(tmp_path / "svc.db", "--demo") as server:
        arguments = ("ask", TEXT, "-r", "spam", "--url", server.url)
        ended = inside(*arguments, "--project", "shop", "--json", SVC_API_KEY=key)
        assert json.loads(ended.stdout)["project"] == "shop", ended.stderr
        refused = inside(*arguments)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Error: the server answered 401") and not refused.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["-r", "sentimnet"], 1, "no recipe of that name; did you mean 'sentiment'?"),
        (["-r", "zzz"], 1, "`svc recipe list` shows all"),
        (["-q", "zzz"], 1, "there is no such file, and no recipe of that name"),
        ([], 2, "either -r"),
        (["-r", "spam", "-q", "spam"], 2, "either -r"),
        (["-r", "spam", "--project", "p"], 2, "--project goes with --url only"),
        (["-r", "spam", "--demo", "--url", "http://x"], 2, "exclude each other"),
        (["-r", "spam", "--url", "x"], 1, "--url is 'x'; allowed:"),
    ],
)
def test_what_cannot_be_asked_is_one_line(arguments: list[str], status: int, words: str) -> None:
    ended = inside("ask", TEXT, *arguments)
    assert (ended.exit_code, ended.stdout) == (status, "")
    assert words in ended.stderr and ended.stderr.count("\n") == 1


def test_every_kind_of_answer_has_a_row() -> None:
    options = {"a": "angry", "b": "bored"}
    questions = {
        "team": {"type": "choice", "instructions": "Who?", "options": options},
        "both": {"type": "multi", "instructions": "Which?", "options": options},
        "bad": {"type": "score", "instructions": "How bad?", "levels": ["low", "high"]},
        "order": {"type": "text", "instructions": "Which order?"},
        "late": {**NOUL["late"]},
        "vip": {**NOUL["late"]},
        "left": {**NOUL["late"]},
        "lost": {**NOUL["late"]},
    }
    answers = {
        "team": {
            "choice": "a",
            "probabilities": {"a": 0.6, "b": 0.396, "none_of_these": 0.004},
            "confidence": 0.6,
            "abstain": True,
        },
        "both": {"selected": ["a"], "probabilities": {"a": 0.9, "b": 0.2}},
        "bad": {"score": 0.75, "probabilities": [0.25, 0.75], "confidence": 0.75},
        "order": {"value": "A-17", "confidence": 0.9},
        "late": {"noul": 0.2},
        "vip": {"noul": 1.0, "rule": 0},
        "left": {"skipped": True},
        "lost": {"skipped": True, "refused": True},
    }
    _, *rows = answer_table(load_questions(questions), answers)
    assert [" ".join(row.split()) for row in rows] == [
        "team a (unsure) 0.60 b 0.40",
        "both a 0.80 b 0.20",
        "bad high 0.75 low 0.25",
        "order A-17 0.90",
        "late no 0.80",
        "vip yes - by a rule",
        "left (skipped) -",
        "lost (no model answered) -",
    ]
