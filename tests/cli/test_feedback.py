"""`svc feedback` and `svc export`: labels of a file to a server, and decisions out of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from svc.cli.label_files import Line, read
from svc.questions import TYPES
from tests.cli.answers import Answers
from tests.cli.processes import svc
from tests.e2e.serving import WAIT_S, Server
from tests.scripted import Reply

QUEUE = {"type": "choice", "instructions": "Which?", "options": {"true": "", "billing": ""}}
QUESTIONS: dict[str, Any] = {
    "refund": {"type": "noul", "instructions": "Is a refund wanted?"},
    "queue": QUEUE,
    "anger": {"type": "score", "instructions": "How angry?", "levels": ["calm", "furious"]},
    "topics": {"type": "multi", "instructions": "Which?", "options": {"a": "", "b": ""}},
    "name": {"type": "text", "instructions": "Which name?"},
}
LOADED = {key: TYPES[one["type"]].load(one) for key, one in QUESTIONS.items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("feedback")
    with Server(folder / "svc.db", "--demo") as running:
        for number in range(3):
            body = {
                "state": f"Ada wants her money back, {number}",
                "questions": QUESTIONS,
                "project": "shop & co",
                "ref": f"ticket {number}",
            }
            decided = requests.post(f"{running.url}/v1/decide", json=body, timeout=WAIT_S)
            assert decided.status_code == 200
        yield running


def labels(server: Server, ref: str) -> dict[str, Any]:
    """The labels of a decision, by question."""
    query = {"project": "shop & co", "ref": ref, "format": "jsonl"}
    answer = requests.get(f"{server.url}/v1/export", params=query, timeout=WAIT_S)
    return {one["question"]: one["label"] for one in json.loads(answer.text)["labels"]}


def loaded(path: Path, text: str) -> list[Line]:
    path.write_text(text, "utf-8")
    return list(read(path, LOADED))


def test_a_table_labels_several_questions(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "\ufeffref,refund,queue,anger,topics,name,sampled,chance\r\n"
        'ticket 0,TRUE,true,1,"[""b"",""a""]",12,random,0.5\r\n'
        "\r\n"
        "ticket 1,,billing,,,,,\r\n",
        "utf-8",
    )
    ended = svc("feedback", path, "--project", "shop & co", "--url", server.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "6 labels of 2 lines taken, 0 errors\n"
    assert labels(server, "ticket 0") == {
        "anger": 1,
        "name": "12",
        "queue": "true",
        "refund": True,
        "topics": ["a", "b"],
    }
    assert labels(server, "ticket 1") == {"queue": "billing"}


def test_wrong_lines_are_told_by_their_numbers_and_the_others_are_taken(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("ref,queue\nticket 2,billing\nticket 2,shipping\nticket 9,true\nticket 2\n")
    ended = svc("feedback", path, "--project", "shop & co", "--url", server.url)
    assert ended.returncode == 1
    first, second, third = ended.stderr.splitlines()
    assert first.startswith('line 3: labels.queue: question "queue": the label must be one of')
    assert second == "line 4: ref: there is no such decision"
    assert third == "line 5: has 1 cells, the first line has 2"
    assert labels(server, "ticket 2") == {"queue": "billing"}


def test_json_lines_have_labels_beside_the_ref_or_in_an_object(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "labels.jsonl"
    lines = [
        '{"ref":"ticket 2","refund":false}',
        "",
        '{"ref":"ticket 2","labels":{"anger":0}}',
        "{",
    ]
    path.write_text("\n".join(lines))
    ended = svc("feedback", path, "--project", "shop & co", "--url", server.url)
    assert ended.returncode == 1
    assert ended.stderr.startswith("line 4: the line is not JSON: ")
    found = labels(server, "ticket 2")
    assert (found["refund"], found["anger"]) == (False, 0)


def test_an_export_has_every_answer_and_no_state(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    ended = svc("export", "--project", "shop & co", "--url", server.url, "-o", path)
    assert (ended.returncode, ended.stderr) == (0, "")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(QUESTIONS)
    assert {row["ref"] for row in rows} == {"ticket 0", "ticket 1", "ticket 2"}
    # But for what an answer took out of it.
    assert all("money back" not in str(row) for row in rows if row["question"] != "name")


def test_an_export_is_filtered_and_goes_to_standard_output(server: Server) -> None:
    query = ("--project", "shop & co", "--ref", "ticket 1", "--question", "name", "--unlabelled")
    ended = svc("export", *query, "--format", "jsonl", "--url", server.url)
    (line,) = ended.stdout.splitlines()
    assert json.loads(line)["ref"] == "ticket 1"


def test_an_export_that_fails_half_way_leaves_an_older_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("id,ref\r\nolder,1\r\n")
    page = Reply("id,ref\r\ndec_2,2\r\n", headers={"X-Next-Before": "dec_2"})
    failed = Reply({"error": {"type": "internal_error", "message": "no"}}, 500)
    with Answers(page, failed, page, Reply("dec_1,1\r\n")) as server:
        given = ("export", "--url", server.url, "-o", path)
        ended = svc(*given)
        assert ended.returncode == 1 and "the server answered 500: no" in ended.stderr
        assert path.read_bytes() == b"id,ref\r\nolder,1\r\n"
        assert svc(*given).returncode == 0
    assert path.read_bytes() == b"id,ref\r\ndec_2,2\r\ndec_1,1\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_to_where_no_file_can_be_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    ended = svc("export", "--url", "http://127.0.0.1:1", "-o", tmp_path / "none" / "out.csv")
    assert ended.returncode == 1
    assert "out.csv': no such file or directory" in ended.stderr


@pytest.mark.parametrize("command", [("export",), ("feedback", "README.md")])
def test_a_server_that_is_not_there_is_one_line(command: tuple[str, ...]) -> None:
    ended = svc(*command, "--url", "http://127.0.0.1:1")
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: No server answers at http://127.0.0.1:1;")


def test_a_filter_that_is_wrong_is_told_in_the_servers_words(server: Server) -> None:
    ended = svc("export", "--answer", "x", "--url", server.url)
    assert ended.returncode == 1
    assert "the server answered 422: answer: needs a question" in ended.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queue\nbilling\n", "id or ref"),
        ("ref,queue,queue\na,b,c\n", "each once"),
        ('ref,queue\na,"b', "is not CSV"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    server: Server, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    ended = svc("feedback", path, "--url", server.url)
    assert ended.returncode == 1
    assert words in ended.stderr


def test_what_an_export_guards_is_read_back_as_it_was(tmp_path: Path) -> None:
    (line,) = loaded(tmp_path / "x.csv", "ref,name\n'=1+1,'-x\n")
    assert line.value == {"ref": "=1+1", "labels": {"name": "-x"}}


def test_a_column_of_an_unknown_question_is_json_where_it_can_be(tmp_path: Path) -> None:
    (line,) = loaded(tmp_path / "x.csv", "id,a,b,c\ndec_1,12,words,false\n")
    assert line.value == {"id": "dec_1", "labels": {"a": 12, "b": "words", "c": False}}
