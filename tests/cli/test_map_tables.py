"""`svc map` and `svc shadow` over CSV, TSV and lines of text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests
from click.testing import Result

from tests.cli.processes import MODEL, NOUL, YES, inside, lines, svc
from tests.e2e.serving import WAIT_S, Server
from tests.scripted import ScriptedProvider, always

TABLE = 'id,subject,body\nt-1,Hello,"The parcel\nis late."\nt-2,Thanks,All is well.\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.json").write_text(json.dumps(NOUL))
    return tmp_path


def mapped(folder: Path, name: str, content: str | bytes, *options: str, **settings: str) -> Result:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    arguments = ["-q", folder / "q.json", "-o", folder / "out.jsonl", folder / name]
    return inside("map", *(options or ("--demo",)), *arguments, **settings)


def states(folder: Path, name: str, content: str | bytes, *options: str) -> list[str]:
    """What a provider is asked about, in the order of the input."""
    with ScriptedProvider(always(YES)) as provider:
        given = ("--model", MODEL, "--no-debias", "--concurrency", "1", *options)
        ended = mapped(folder, name, content, *given, SVC_PROVIDER_OWN_URL=provider.url)
        assert ended.exit_code == 0, ended.stderr
        return [json.dumps(body, ensure_ascii=False) for body in provider.bodies]


def test_a_row_is_an_object_and_a_column_a_text(folder: Path) -> None:
    first, second = states(folder, "in.csv", "\ufeff" + TABLE)
    assert r"{\"id\":\"t-1\",\"subject\":\"Hello\",\"body\":\"The parcel\\nis late.\"}" in first
    assert "t-2" in second
    chosen, _ = states(folder, "in.csv", TABLE, "--column", "body", "--restart")
    assert "The parcel" in chosen and "subject" not in chosen and "t-1" not in chosen


def test_formats_and_encodings_of_other_names_are_said(folder: Path) -> None:
    tabs = "body\nDer Zug ist spät.\n".encode("cp1252")
    (asked,) = states(folder, "in.dat", tabs, "--format", "tsv", "--encoding", "cp1252")
    assert "Der Zug ist spät." in asked and "body" not in asked
    told = states(folder, "in.txt", "Spät\r\nZu spät\n", "--restart")
    assert "Spät" in told[0] and "Zu spät" in told[1]


def test_results_have_the_row_and_the_ref_and_the_run_is_continued(folder: Path) -> None:
    ended = mapped(folder, "in.csv", TABLE, "--demo", "--ref-column", "id")
    assert ended.exit_code == 0, ended.stderr
    output = folder / "out.jsonl"
    assert [(one["line"], one["ref"]) for one in lines(output)] == [(1, "t-1"), (2, "t-2")]
    whole = output.read_bytes()
    output.write_bytes(whole[: whole.index(b'{"line":2')])
    again = mapped(folder, "in.csv", TABLE, "--demo", "--ref-column", "id")
    assert "2 lines (1 of them before), 0 errors" in again.stderr
    other = mapped(folder, "in.csv", TABLE, "--demo", "--ref-column", "subject")
    assert other.exit_code == 1 and "a different ref_column" in other.stderr


def test_a_row_at_fault_is_an_error_line_and_the_first_is_told_while_the_run_goes_on(
    folder: Path,
) -> None:
    ended = mapped(
        folder, "in.csv", 'id,body\n1,"a\nb"\n2\n3,\n\n4,d\n', "--demo", "--column", "body"
    )
    assert ended.exit_code == 1
    one, two, three, four = lines(folder / "out.jsonl")
    assert two["error"]["message"] == "line 4 of the file has 1 cells, the first line 2"
    assert three["error"]["message"] == "there is no text in the row"
    assert "answers" in one and "answers" in four
    first, summary = ended.stderr.splitlines()
    assert first == f"The first error, of line 2: {two['error']['message']}"
    assert summary.startswith("4 lines, 2 errors")


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("in.csv", "", [], "in.csv': is empty; the first line must name the columns"),
        ("in.csv", b"body\n\xff\n", [], "in.csv', line 2: is not UTF-8; --encoding"),
        ("in.csv", "body\na\0b\n", [], "in.csv', line 2: has a NUL byte"),
        ("in.csv", 'body\n1\n"x\n', [], "in.csv', line 3: a cell of this row begins with a quote"),
        ("in.csv", TABLE, ["--column", "text"], '"id", "subject", "body"'),
        ("in.tsv", TABLE, ["--ref-column", "id"], "--ref-column 'id': the columns of input"),
        ("in.csv", TABLE, ["--encoding", "klingon"], "--encoding is 'klingon'; allowed:"),
        ("in.txt", b"a\n\xff\n", [], "in.txt', line 2: is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_ends_the_run_before_anything_is_asked(
    folder: Path, name: str, content: str | bytes, options: list[str], words: str
) -> None:
    ended = mapped(folder, name, content, "--demo", *options)
    assert ended.exit_code == 1 and ended.stderr.count("\n") == 1
    assert words in ended.stderr
    assert not (folder / "out.jsonl").exists()


def test_a_pipe_that_breaks_in_the_middle_keeps_what_was_answered(folder: Path) -> None:
    arguments = ["-q", folder / "q.json", "-o", folder / "out.jsonl", "--format", "csv", "-"]
    ended = svc("map", "--demo", *arguments, stdin='body\nThe parcel is late.\n"x\n')
    assert ended.returncode == 1
    assert "Stopped after line 1: standard input, line 3: a cell of this row begins" in ended.stderr
    assert [one["line"] for one in lines(folder / "out.jsonl")] == [1]


def test_lines_of_text_have_no_columns(folder: Path) -> None:
    ended = mapped(folder, "in.txt", "a\n", "--demo", "--column", "x")
    assert ended.exit_code == 2 and "do not go with lines of text" in ended.stderr


def test_refs_reach_a_server_so_that_labels_find_their_decisions(folder: Path) -> None:
    with Server(folder / "svc.db", "--demo") as server:
        ended = mapped(folder, "in.csv", TABLE, "--url", server.url, "--ref-column", "id")
        assert ended.exit_code == 0, ended.stderr
        label = {"ref": "t-2", "labels": {"late": False}}
        body = {"labels": [label], "project": "default"}
        answer = requests.post(f"{server.url}/v1/feedback/bulk", json=body, timeout=WAIT_S)
    assert answer.json()["taken"] == 1, answer.text


def test_labels_of_a_table_stand_in_the_columns_of_their_questions(folder: Path) -> None:
    table = "id,body,late\n1,The parcel is late.,TRUE\n2,The parcel is late.,false\n3,Thanks,\n"
    (folder / "in.csv").write_text(table)
    arguments = ["-q", folder / "q.json", "-o", folder / "out.jsonl", folder / "in.csv"]
    ended = inside("shadow", "--demo", "--ref-column", "id", *arguments)
    assert ended.exit_code == 0, ended.stderr
    assert "late: 50.0% agree, 1 of 2" in ended.stdout
    assert (
        "line 2: label false, answer true" in ended.stdout and "The parcel is late." in ended.stdout
    )
    assert [one["ref"] for one in lines(folder / "out.jsonl")] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "content", "options", "status", "words"),
    [
        ("in.csv", "body\nx\n", [], 1, 'called like its question, one of "late"'),
        ("in.csv", "body,late\nx,true\n", ["--compare", "l"], 2, "--compare does not go with"),
        ("in.txt", "x\n", [], 2, "lines of text have no labels"),
    ],
)
def test_an_input_without_labels_is_refused(
    folder: Path, name: str, content: str, options: list[str], status: int, words: str
) -> None:
    (folder / name).write_text(content)
    arguments = ["-q", folder / "q.json", "-o", folder / "out.jsonl", folder / name]
    ended = inside("shadow", "--demo", *options, *arguments)
    assert ended.exit_code == status and words in ended.stderr
