"""`svc decide|audit|calibration|drift` against a running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.processes import NOUL, inside
from tests.e2e.serving import Server
from tests.e2e.test_access import make_key


@dataclass(frozen=True)
class Running:
    """A server with keys and one decision, whose body is in a file."""

    url: str
    key: str
    body: Path

    def svc(self, *arguments: str | Path, key: str | None = None) -> Result:
        named = ("--url", self.url, "--api-key", self.key if key is None else key)
        return inside(*arguments, *named)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("remote")
    body = folder / "request.json"
    body.write_text(json.dumps({"state": "The parcel is late.", "questions": NOUL, "ref": "t-1"}))
    _, key = make_key(folder / "svc.db", "ada")
    with Server(folder / "svc.db", "--demo") as server:
        made = Running(server.url, key, body)
        assert made.svc("decide", body).exit_code == 0
        yield made


def test_a_request_is_sent_and_its_answers_stand_in_a_table(running: Running) -> None:
    ended = running.svc("decide", running.body, "--project", "shop")
    head, row, _, id_ = ended.stdout.splitlines()
    assert head.split()[0] == "question" and row.split()[:2] == ["late", "yes"]
    assert id_.startswith("id: dec_")
    decision = json.loads(running.svc("decide", "--json", running.body).stdout)
    assert decision["ref"] == "t-1"


def test_the_latest_decisions_have_a_row_for_each_answer(running: Running) -> None:
    head, row, *_ = running.svc("audit", "--ref", "t-1", "--limit", "1").stdout.splitlines()
    assert head.split() == ["at", "id", "ref", "model", "question", "answer", "confidence", "label"]
    assert "t-1" in row.split() and "@demo/lexical" in row
    page = json.loads(running.svc("audit", "--json", "--question", "late").stdout)
    assert page["entries"][0]["ref"] == "t-1"
    nothing = running.svc("audit", "--ref", "t-2")
    assert nothing.exit_code == 0 and len(nothing.stdout.splitlines()) == 1


def test_a_question_has_figures_promises_and_weeks(running: Running) -> None:
    shown = running.svc("calibration", "--question", "late").stdout
    assert "late in default: 0 labels, no calibrator is in effect" in shown
    assert "needs at least 44 labels" in shown
    report = json.loads(running.svc("calibration", "--question", "late", "--json").stdout)
    assert report["labels"] == 0
    weeks = running.svc("drift", "--question", "late").stdout.splitlines()
    assert weeks[0].startswith("week") and weeks[-1].endswith(": no alarm")
    assert json.loads(running.svc("drift", "--question", "late", "--json").stdout)["weeks"]


def test_the_weeks_of_values_have_no_mix(running: Running, tmp_path: Path) -> None:
    body = tmp_path / "request.json"
    questions = {"city": {"type": "text", "instructions": "Which city?"}}
    body.write_text(json.dumps({"state": "from Rome", "questions": questions, "project": "trips"}))
    assert running.svc("decide", body).exit_code == 0
    weeks = running.svc("drift", "--question", "city", "--project", "trips")
    assert weeks.exit_code == 0 and weeks.stdout.splitlines()[-1].endswith(": no alarm")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calibration", "--question", "nobody"], "the server answered 404"),
        (["drift", "--question", "nobody"], "the server answered 404"),
        (["audit", "--from", "yesterday"], "the server answered 422"),
    ],
)
def test_what_the_server_refuses_is_one_line(
    running: Running, arguments: list[str], words: str
) -> None:
    ended = running.svc(*arguments)
    assert ended.exit_code == 1 and words in ended.stderr and ended.stderr.count("\n") == 1


def test_a_wrong_key_and_an_absent_server_say_what_to_do(running: Running) -> None:
    assert "see --api-key" in running.svc("audit", key="svc_wrong").stderr
    absent = inside("audit", "--url", "http://127.0.0.1:9")
    assert absent.exit_code == 1 and "start one with `svc serve`" in absent.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"state": 1}'])
def test_what_is_no_request_is_not_sent(running: Running, tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    ended = running.svc("decide", path)
    assert ended.exit_code == 1 and "the request " in ended.stderr
    absent = running.svc("decide", tmp_path / "absent.json")
    assert absent.exit_code == 2 and "No such file" in absent.stderr
