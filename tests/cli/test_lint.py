from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from svc.wording import FAULTS
from tests.cli.processes import svc
from tests.wording.planted import PLANTED, TEAM

BAD, SOUND = PLANTED["leading"]


def written(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value))
    return str(path)


def lint(*arguments: str) -> tuple[int, str]:
    ended = CliRunner().invoke(main, ["lint", *arguments])
    return ended.exit_code, ended.output


def test_a_recipe_goes_by_its_name() -> None:
    assert lint("sentiment", "support-triage") == (
        0,
        "sentiment: 0 findings\nsupport-triage: 0 findings\n",
    )


def test_a_finding_says_where_what_why_and_what_instead(tmp_path: Path) -> None:
    status, output = lint(written(tmp_path / "q.json", BAD))
    assert status == 1
    head, finding, *advice = output.splitlines()
    assert head.endswith("q.json: 1 finding")
    assert finding == 'q instructions: "surely" says which answer is wanted [leading]'
    assert " ".join(" ".join(advice).split()) == (
        "The answer follows the hint instead of the input. "
        "Leave the hint out, and ask in neutral words."
    )


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (BAD, "q"),
        ({"state": "x", "model": "a", "questions": BAD}, "q"),
        ({"description": "A recipe", "questions": BAD}, "q"),
        ({"about": "A set", "question": BAD["q"], "rows": [{"state": "x", "label": True}]}, "file"),
    ],
)
def test_questions_are_found_in_every_form_of_file(tmp_path: Path, value: Any, key: str) -> None:
    path = written(tmp_path / "file.json", value)
    status, output = lint("--json", path)
    (finding,) = json.loads(output)
    assert status == 1
    assert (finding["source"], finding["question"], finding["code"]) == (path, key, "leading")


def test_a_question_may_be_called_questions(tmp_path: Path) -> None:
    path = written(tmp_path / "q.json", {"questions": BAD["q"], "team": TEAM})
    assert [one["question"] for one in json.loads(lint("--json", path)[1])] == ["questions"]


def test_without_findings_the_json_is_empty(tmp_path: Path) -> None:
    assert lint("--json", written(tmp_path / "q.json", SOUND)) == (0, "[]\n")


def test_what_is_looked_for_can_be_listed() -> None:
    status, output = lint("--faults")
    assert status == 0
    assert [line.split()[0] for line in output.splitlines()] == list(FAULTS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "there is no such file, and no recipe of that name"),
        ("{", "the file is not JSON"),
        ("[]", "questions: must be an object"),
        ('{"q": {"type": "noul"}}', 'question "q" instructions: is required'),
    ],
)
def test_what_is_no_question_is_said_on_one_line(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    path = tmp_path / "q.json"
    if text is not None:
        path.write_text(text)
    ended = svc("lint", path)
    assert ended.returncode == 1 and ended.stdout == ""
    assert problem in ended.stderr and ended.stderr.count("\n") == 1


def test_a_key_with_escapes_of_a_terminal_is_harmless(tmp_path: Path) -> None:
    options = {**TEAM["options"], "other\x1b[31m": "x"}
    _, output = lint(written(tmp_path / "q.json", {"q": {**TEAM, "options": options}}))
    assert "\x1b" not in output


def test_without_questions_it_ends_with_2() -> None:
    assert lint()[0] == 2
