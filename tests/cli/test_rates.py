from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main
from svc.learning import Learner
from svc.questions import TYPES
from svc.records import AskedQuestion
from svc.schemas.feedback import Feedback
from svc.store import Labels, QuestionVersions
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.store.records import record

HEAD = ("answer", "share", "95%", "interval", "naive", "labels", "alone", "power")
NOUL = TYPES["noul"].load({"type": "noul", "instructions": "?"})


def svc(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["rates", *map(str, arguments)], env={"SVC_DB": None})


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Forty decisions that say yes, of which twenty have labels, half of them no."""
    path = tmp_path / "svc.db"
    database = Database.open(path)
    decisions = Decisions(database)
    learner = Learner(decisions, QuestionVersions(database), Labels(database))
    for number in range(40):
        question = AskedQuestion("refund", NOUL.digest, NOUL.definition_json, {"p": [0.9]})
        decision_id = decisions.add(record(question, project="support"))
        if number < 20:
            learner.label(Feedback(decision_id, "refund", number % 2 == 0))
    learner.close()
    database.close()
    return path


def test_the_table_has_each_answer_with_its_interval(db: Path) -> None:
    shown = svc("--question", "refund", "--project", "support", "--db", db)
    assert shown.exit_code == 0, shown.output
    head, _, columns, no, yes, _, meaning = shown.stdout.splitlines()
    assert head.startswith("refund in support since 20")
    assert head.endswith(": 40 decisions, 20 labels")
    assert tuple(columns.split()) == HEAD
    assert no.split()[:2] == ["false", "50.0%"] and " 0.0% " in no
    assert yes.split()[:2] == ["true", "50.0%"] and " 100.0% " in yes
    assert meaning.startswith("Nobody said how decisions were picked")


def test_json_is_what_the_server_answers(db: Path) -> None:
    shown = svc(
        "--question", "refund", "--project", "support", "--weeks", "1", "--json", "--db", db
    )
    report = json.loads(shown.stdout)
    assert (report["decisions"], report["labels"]) == (40, 20)
    assert [one["naive"] for one in report["rates"]] == [0.0, 1.0]


def test_without_labels_there_are_dashes(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "svc.db")
    question = AskedQuestion("q", NOUL.digest, NOUL.definition_json, {"p": [0.9]})
    Decisions(database).add(record(question))
    database.close()
    shown = svc("--question", "q", "--db", tmp_path / "svc.db")
    assert shown.stdout.splitlines()[4].split() == ["true", "-", "-", "100.0%", "-", "-"]
    assert shown.stdout.splitlines()[-1] == "Without labels only the naive share is known."


def test_what_cannot_be_told_is_one_line(db: Path) -> None:
    never = svc("--question", "nothing", "--db", db)
    assert (never.exit_code, never.stderr) == (
        1,
        'Error: project "default" was never asked a question "nothing"\n',
    )
    absent = svc("--question", "q", "--db", db.with_name("none.db"))
    assert absent.exit_code == 1 and "there is no such file" in absent.stderr
    assert svc("--question", "q", "--weeks", "54", "--db", db).exit_code == 2
