"""`svc challenger`: set, shown, compared, promoted and removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main
from svc.cli.wording_files import read_question
from svc.errors import SettingsError
from svc.questions import TYPES, Question
from svc.records import AskedQuestion, ChallengerAnswer
from svc.schemas import load_questions
from svc.store import (
    Challengers,
    Database,
    Labels,
    NewLabel,
    QuestionVersions,
)
from svc.store.decisions import Decisions
from tests.store.records import record

FIELDS = {"type": "noul", "instructions": "Is it urgent?"}
WHICH = ("--project", "shop", "--question", "urgent")
RIVAL = ("--model", "@demo/rival")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "svc.db"
    decide(path, 1)
    return path


def urgent(instructions: str = "Is it urgent?") -> Question:
    return load_questions({"q": {**FIELDS, "instructions": instructions}})["q"]


def decide(path: Path, count: int, instructions: str = "Is it urgent?") -> list[str]:
    """The ids of decisions that said no."""
    question = urgent(instructions)
    database = Database.open(path)
    asked = AskedQuestion(
        "urgent", question.digest, question.definition_json, {"p": [0.2], "by": "@demo/m logprobs"}
    )
    made = [Decisions(database).add(record(asked, project="shop")) for _ in range(count)]
    database.close()
    return made


def teach(path: Path, ids: list[str]) -> None:
    """The challenger says yes to all of these decisions, and so do their labels."""
    database = Database.open(path)
    stored, labels = Challengers(database), Labels(database)
    (challenger,) = stored.running("shop")
    version = QuestionVersions(database).latest("shop", "urgent")
    assert version is not None
    for decision_id in ids:
        fields = {"type": "noul", "noul": 0.9}
        stored.answered(ChallengerAnswer(challenger.id, decision_id, (0.9,), fields, 0.001, 40.0))
        decision = Decisions(database).get(decision_id)
        assert decision is not None
        place = (decision.seq, "urgent", "shop", version.digest, version.question_id)
        labels.add(NewLabel(*place, True, 1, (0.2,), "@demo/m logprobs", 0))
    database.close()


def svc(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["challenger", *arguments, "--db", str(db)])


def listed(db: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(svc(db, "list", "--json").stdout)
    return found


def test_a_challenger_is_set_shown_and_removed(db: Path) -> None:
    said = svc(db, "set", *WHICH, *RIVAL, "--usd", "5", "--per", "day")
    assert said.stdout == (
        "10.0% of the decisions are also asked of @demo/rival, for at most $5.0000 a day\n"
    )
    (found,) = listed(db)
    assert (found["model"], found["state"], found["share"]) == ("@demo/rival", "running", 0.1)
    assert (found["limit_usd"], found["per"], found["spent_usd"]) == (5, "day", 0)
    assert "$5.0000 a day" in svc(db, "list").stdout
    teach(db, decide(db, 2))
    assert svc(db, "remove", *WHICH).exit_code == 0
    assert listed(db) == []


def test_a_question_has_one_challenger_at_a_time(db: Path) -> None:
    svc(db, "set", *WHICH, *RIVAL)
    again = svc(db, "set", *WHICH, "--model", "@demo/other")
    assert (again.exit_code, "svc challenger remove" in again.stderr) == (1, True)


def test_a_question_that_was_never_asked_has_none(db: Path) -> None:
    said = svc(db, "set", "--project", "shop", "--question", "other", *RIVAL)
    assert (said.exit_code, "never asked" in said.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--model and --wording"),
        ((*RIVAL, "--usd", "5"), "go together"),
        ((*RIVAL, "--per", "day"), "go together"),
        ((*RIVAL, "--usd", "0", "--per", "day"), "--usd is 0"),
        ((*RIVAL, "--share", "0"), "--share"),
        ((*RIVAL, "--share", "1.1"), "--share"),
        (("--model", " m"), "--model is ' m'"),
        (("--wording", "absent.json"), "absent.json"),
    ],
)
def test_what_cannot_be_is_refused(db: Path, arguments: tuple[str, ...], message: str) -> None:
    said = svc(db, "set", *WHICH, *arguments)
    assert said.exit_code and message in said.stderr
    assert listed(db) == []


def test_another_wording_of_a_multi_has_the_same_options(tmp_path: Path) -> None:
    multi = {"type": "multi", "instructions": "?", "options": {"x": "", "y": ""}}
    present, path = TYPES["multi"].load(multi), tmp_path / "wording.json"
    path.write_text(json.dumps({**multi, "options": {"p": "", "y": ""}}))
    with pytest.raises(SettingsError, match="the same options"):
        read_question(str(path), present)
    path.write_text(json.dumps({**multi, "options": {"y": "Why?", "x": ""}}))
    assert json.loads(read_question(str(path), present))["options"] == {"y": "Why?", "x": ""}


def test_another_wording_has_the_same_labels(db: Path, tmp_path: Path) -> None:
    wording = tmp_path / "wording.json"
    wording.write_text(json.dumps({**FIELDS, "type": "choice", "options": {"a": "", "b": ""}}))
    said = svc(db, "set", *WHICH, "--wording", str(wording))
    assert (said.exit_code, "a label counts for both" in said.stderr) == (1, True)
    wording.write_text(json.dumps({**FIELDS, "instructions": "Does it hurry?"}))
    said = svc(db, "set", *WHICH, "--wording", str(wording))
    assert "the same model in another wording" in said.stdout
    (found,) = listed(db)
    assert found["wording"] == {**FIELDS, "instructions": "Does it hurry?"}
    promoted = svc(db, "promote", *WHICH)
    assert (promoted.exit_code, "change it there" in promoted.stderr) == (1, True)


@pytest.fixture
def compared(db: Path) -> Path:
    svc(db, "set", *WHICH, *RIVAL)
    teach(db, decide(db, 40))
    return db


def test_the_report_compares_both(compared: Path) -> None:
    found = json.loads(svc(compared, "report", *WHICH, "--json").stdout)
    assert (found["asked"], found["labelled"], found["verdict"]) == (40, 40, "better")
    assert (found["present"]["accuracy"], found["challenger"]["accuracy"]) == (0, 1)
    assert (found["dropped"], found["refused"], found["asked_still"]) == (0, 0, True)
    text = svc(compared, "report", *WHICH).stdout
    assert "The challenger is right more often" in text
    (line,) = (line for line in text.splitlines() if line.startswith("accuracy"))
    assert line.split()[:4] == ["accuracy", "0.0%", "100.0%", "+100.0%"]


def test_the_report_says_when_callers_changed_the_question(compared: Path) -> None:
    decide(compared, 1, "Is it very urgent?")
    assert "in another wording now" in svc(compared, "report", *WHICH).stdout
    assert not json.loads(svc(compared, "report", *WHICH, "--json").stdout)["asked_still"]


def test_a_challenger_is_promoted_and_removed_again(compared: Path) -> None:
    said = svc(compared, "promote", *WHICH)
    assert said.stdout == (
        "@demo/rival answers requests of project 'shop' that ask 'urgent' and name no model (the "
        "comparison said: better)\n"
    )
    assert [one["state"] for one in listed(compared)] == ["promoted"]
    assert svc(compared, "remove", *WHICH).exit_code == 1
    assert svc(compared, "remove", *WHICH, "--promoted").exit_code == 0
    assert listed(compared) == []


def test_the_next_one_that_is_promoted_takes_its_place(compared: Path) -> None:
    svc(compared, "promote", *WHICH)
    svc(compared, "set", *WHICH, "--model", "@demo/third")
    svc(compared, "promote", *WHICH)
    states = {str(one["model"]): one["state"] for one in listed(compared)}
    assert states == {"@demo/rival": "retired", "@demo/third": "promoted"}
    removed = svc(compared, "remove", *WHICH, "--retired")
    assert removed.stdout.startswith("@demo/rival is removed")
    assert [one["model"] for one in listed(compared)] == ["@demo/third"]
