"""Commands that ask a server which answers with what ours never does, or what a model wrote."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.answers import Answers
from tests.cli.processes import SVC, svc
from tests.e2e.serving import ROOT, WAIT_S, environment
from tests.openapi import judge
from tests.scripted import Reply

# What moves a terminal's cursor, names its window, or turns the order of letters around.
OBEYED = "\x1b]0;x\x07 \x1b[2J \u009b2J \u202e"
LEADS_NOWHERE = "the server's answer is not one of svc: it leads on to itself"

# Commands that ask a server, and files that they are given.
FILES = {
    "questions.json": '{"late": {"type": "noul", "instructions": "Is it late?"}}',
    "body.json": '{"state": "x", "questions": {"late": {"type": "noul", "instructions": "?"}}}',
    "lines.jsonl": '"One."\n"Two."\n',
    "labels.jsonl": '{"id":"dec_1","labels":{"late":true}}\n',
    "texts.jsonl": '{"id":"dec_1","text":"One."}\n',
}
QUESTIONS = "-q questions.json"
COMMANDS = [
    f"ask One. {QUESTIONS}",
    "audit",
    "batch cancel job_1",
    "batch list",
    "batch results job_1",
    "batch status job_1",
    f"batch submit lines.jsonl {QUESTIONS}",
    f"batch submit lines.jsonl {QUESTIONS} --dry-run",
    "calibration --question late",
    "decide body.json",
    "drift --question late",
    "export",
    "feedback labels.jsonl",
    "label texts.jsonl --question late --reviewer ada",
    f"map lines.jsonl {QUESTIONS} --restart",
    f"map lines.jsonl {QUESTIONS} --dry-run",
]
# What stands in all of them.
STRANGE = [None, "x", 10**400, [None], {"late": None}]


def names_of_ours(schema: Any) -> Iterator[str]:
    """The names of all fields in a schema and those within it."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from names_of_ours(part)


def on_a_terminal(*arguments: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*SVC, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=environment(),
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                written += os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
        process.wait(WAIT_S)
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("export",), f'id,answer\r\n"dec_1","{OBEYED}"\r\n'),
        (("export", "--format", "jsonl"), '{"id":"dec_1","answer":"\u009b2J\u202e"}\n'),
        (("audit", "--json"), '{"entries":[{"answer":"\u009b2J\u202e"}]}'),
        (("calibration", "--question", "k", "--json"), '{"reason":"\u009b2J\u202e"}'),
        (("drift", "--question", "k", "--json"), '{"mix":{"\u009b2J\u202e":1}}'),
    ],
)
def test_a_terminal_obeys_nothing_that_a_model_wrote(
    arguments: tuple[str, ...], answer: str
) -> None:
    with Answers(Reply(answer)) as server:
        written = on_a_terminal(*arguments, "--url", server.url)
        piped = svc(*arguments, "--url", server.url)
    assert "2J" in written and not set(written) & set("\x1b\x07\u009b\u202e")
    assert "\\u009b2J" in written
    assert piped.stdout.strip() == answer.replace("\r\n", "\n").strip()


def test_a_terminal_obeys_no_id_of_a_decision(tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text(FILES["body.json"])
    decided = {"id": f"dec_1{OBEYED}", "answers": {"late": {"noul": 0.9}}}
    with Answers(Reply(decided)) as server:
        written = on_a_terminal("decide", str(body), "--url", server.url)
    assert "\n\nid: dec_1" in written and not set(written) & set("\x1b\x07\u009b\u202e")


def test_a_terminal_obeys_no_progress_of_labels(tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text(FILES["texts.jsonl"])
    item = {"id": "dec_1", "question": "late", "ref": None, "tags": {}, "state_hash": "0" * 64}
    progress = {"labels": 0, "thresholds": [{"labels_needed": 7, "target": OBEYED}]}
    wording = {"type": "noul", "instructions": "?"}
    page = Reply({"definition": wording, "items": [item], "progress": progress})
    asked = ("label", str(texts), "--question", "late", "--reviewer", "ada")
    with Answers(page) as server:
        written = on_a_terminal(*asked, "--url", server.url)
    assert "about 7 more until a promise at ?]0;x?" in written
    assert not set(written) & set("\x07\u009b\u202e")


def test_a_terminal_obeys_no_questions_that_lint_lists(tmp_path: Path) -> None:
    wording = {"type": "noul", "instructions": "Is it late? Is it broken?"}
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps({"q\u202e": wording}))
    written = on_a_terminal("lint", "--json", str(questions))
    assert '"q\\u202e"' in written and "\u202e" not in written


def test_pages_that_lead_on_to_themselves_end_a_command(tmp_path: Path) -> None:
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"id":"dec_1","labels":{"late":true}}\n')
    with Answers(Reply("id\r\n", headers={"X-Next-Before": "dec_1"})) as server:
        ended = svc("export", "--url", server.url)
    assert ended.returncode == 1 and LEADS_NOWHERE in ended.stderr
    with Answers(Reply({"questions": [], "next_after": "a"})) as server:
        ended = svc("feedback", str(lines), "--url", server.url)
    assert ended.returncode == 1 and LEADS_NOWHERE in ended.stderr
    assert len(server.asked) == 2


def test_a_question_in_no_shape_of_ours_is_told_of_as_the_servers(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text(FILES["labels.jsonl"])
    question = {"question": "late", "wording": {"type": "noul", "instructions": -1}}
    with Answers(Reply({"questions": [question], "next_after": None})) as server:
        ended = svc("feedback", str(labels), "--url", server.url)
    assert ended.returncode == 1 and "answered in a way that this version" in ended.stderr


def test_a_table_with_a_cell_of_any_length_is_told_of_as_the_servers() -> None:
    with Answers(Reply("id,ref\r\n" + "x" * 200_000)) as server:
        ended = svc("audit", "--url", server.url)
    assert ended.returncode == 1 and "answered in a way that this version" in ended.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_in_no_shape_of_ours_is_told_of_as_the_servers(
    command: str, tmp_path: Path
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    names = set(names_of_ours(judge.document()))
    arguments = [str(tmp_path / one) if one in FILES else one for one in command.split()]
    for shape in ([], *(dict.fromkeys(names, strange) for strange in STRANGE)):
        with Answers(Reply(json.dumps(shape))) as server:
            ended = svc(*arguments, "--url", server.url)
        assert "svc itself failed" not in ended.stderr, (shape, ended.stderr)
        assert "Traceback" not in ended.stderr, (shape, ended.stderr)
