"""`svc label`, in a terminal and without one."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from svc.batch import format_of
from svc.cli.label_texts import read_texts
from svc.errors import SettingsError
from tests.cli.processes import SVC, svc
from tests.e2e.serving import ROOT, WAIT_S, Server, environment
from tests.labelling import (
    MADE_OF_TWO,
    MARK,
    NOTE_FILES,
    NOTES,
    TEAM,
    UNFIT,
    Desk,
    seeded,
    spreadsheet,
    tickets,
)

TICKETS = 6
QUESTIONS = {
    "team": TEAM,
    "urgent": {"type": "noul", "instructions": "Does it have to be handled today?"},
    "mood": {"type": "score", "instructions": "How angry?", "levels": ["calm", "cross", "furious"]},
    "topics": {"type": "multi", "instructions": "About what?", "options": {"a": "A", "b": "B"}},
    "amount": {"type": "number", "instructions": "Which amount?", "nullable": True},
}
REVIEWER = ("--reviewer", "ada")
_ITEM = re.compile(r"(T-\d+)   \d+ labelled")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    db = tmp_path_factory.mktemp("label") / "svc.db"
    with Server(db, "--demo") as started:
        yield started, db


@pytest.fixture
def desk(server: tuple[Server, Path], tmp_path: Path) -> Desk:
    """A project of the test's own."""
    return seeded(*server, TICKETS, QUESTIONS, project=tmp_path.name)


@pytest.fixture
def file(desk: Desk, tmp_path: Path) -> Path:
    return spreadsheet(tmp_path / "tickets.csv", desk.texts, ";")


def of(desk: Desk) -> tuple[str, ...]:
    return ("--url", desk.server.url, "--project", desk.project, *REVIEWER)


class Terminal:
    """A context manager: `svc label` in a terminal of its own."""

    def __init__(self, desk: Desk, *arguments: str | Path, **settings: str) -> None:
        self._command = [*SVC, "label", *of(desk), *map(str, arguments)]
        self._settings, self.shown = settings, ""

    def __enter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        self.theirs = theirs
        self.process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=environment(**self._settings),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self.theirs)

    def until(self, text: str) -> str:
        """What is shown up to `text`, from where the last call ended."""
        give_up_at = time.monotonic() + WAIT_S
        while text not in self.shown:
            left_s = max(0.0, give_up_at - time.monotonic())
            assert select.select([self._ours], [], [], left_s)[0], self.shown
            self.shown += os.read(self._ours, 4_096).decode()
        before, _, self.shown = self.shown.partition(text)
        return before

    def item(self) -> str:
        """The ref of the item that is shown next."""
        (ref,) = _ITEM.findall(self.until("q quit > "))
        return str(ref)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())


def test_keys_label_in_a_terminal(desk: Desk, file: Path) -> None:
    with Terminal(desk, "--question", "team", file) as terminal:
        given = {}
        for key, name in (("1", "account"), ("2", "billing"), ("4", "none_of_these")):
            given[terminal.item()] = name
            terminal.type(key)
            terminal.until("The model: ")
        terminal.item()
        terminal.type("q")
        terminal.until("3 labels saved.")
        assert terminal.process.wait(WAIT_S) == 0
    assert desk.labels() == given


def test_undo_replaces_a_label_and_skip_gives_an_item_back(desk: Desk, file: Path) -> None:
    with Terminal(desk, "--question", "team", file) as terminal:
        first = terminal.item()
        terminal.type("1")
        second = terminal.item()
        terminal.type("u")
        assert terminal.item() == first
        terminal.type("3")
        assert terminal.item() == second
        terminal.type("s")
        assert terminal.item() not in (first, second)
        terminal.type("q")
        terminal.until("1 label saved.")
    assert desk.labels() == {first: "technical"}
    page = review(desk, "bob")
    assert page["progress"]["skipped"] == 1


def test_ctrl_c_says_how_many_were_saved_and_leaves_the_terminal_as_it_was(
    desk: Desk, file: Path
) -> None:
    with Terminal(desk, "--question", "team", file) as terminal:
        usual = termios.tcgetattr(terminal.theirs)
        terminal.item()
        assert termios.tcgetattr(terminal.theirs) != usual
        terminal.type("1")
        terminal.item()
        os.killpg(terminal.process.pid, signal.SIGINT)
        terminal.until("1 label saved.")
        assert terminal.process.wait(WAIT_S) == 130
        assert termios.tcgetattr(terminal.theirs) == usual


def test_an_item_that_comes_back_is_labelled_in_the_wording_with_which_it_was_handed_out(
    desk: Desk, tmp_path: Path
) -> None:
    file = spreadsheet(tmp_path / "tickets.csv", {**desk.texts, "T-new": "A new text"})
    with Terminal(desk, "--question", "mood", file) as terminal:
        terminal.until("q quit > ")
        mood: Any = QUESTIONS["mood"]
        turned = {"mood": {**mood, "instructions": "How calm?", "levels": mood["levels"][::-1]}}
        body = {"state": "A new text", "questions": turned, "project": desk.project}
        assert desk.server.post({**body, "ref": "T-new"}).status_code == 200
        for _ in range(TICKETS):
            terminal.type("3")
            terminal.until("q quit > ")
        terminal.type("u")
        assert "How angry?" in terminal.until("You said: furious.")
        terminal.type("q")
        terminal.until(f"{TICKETS} labels saved.")


def test_several_options_are_toggled_and_values_typed(desk: Desk, file: Path) -> None:
    with Terminal(desk, "--question", "topics", file) as terminal:
        topics = terminal.item()
        terminal.type("12\x1b[A1\r")
        terminal.until("you said b.")
    with Terminal(desk, "--question", "amount", file) as terminal:
        amount = terminal.item()
        terminal.type("many\n")
        terminal.until("must be a number")
        terminal.type("12.5\n")
        terminal.until("you said 12.5.")
    assert desk.labels("topics") == {topics: ["b"]}
    assert desk.labels("amount") == {amount: 12.5}


@pytest.mark.parametrize(("settings", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_styles(
    desk: Desk, file: Path, settings: dict[str, str], coloured: bool
) -> None:
    with Terminal(desk, "--question", "team", file, **settings) as terminal:
        assert ("\x1b[1m" in terminal.until("q quit > ")) is coloured


def review(desk: Desk, reviewer: str) -> Any:
    query = f"project={desk.project}&question=team&reviewer={reviewer}"
    return desk.server.get(f"/v1/review?{query}").json()


def label(desk: Desk, question: str, lines: str, *files: str | Path) -> Any:
    return svc("label", *of(desk), "--question", question, *files, stdin=lines)


@pytest.mark.parametrize(
    ("question", "line", "truth"),
    [
        ("team", "tech", "technical"),
        ("urgent", "n", False),
        ("mood", "3", 2),
        ("topics", "a, b", ["a", "b"]),
        ("topics", "-", []),
        ("amount", "12.5", 12.5),
        ("amount", "-", None),
    ],
)
def test_lines_label_where_there_is_no_terminal(
    desk: Desk, file: Path, question: str, line: str, truth: Any
) -> None:
    ended = label(desk, question, f"{line}\n{line}\n", file)
    assert ended.returncode == 0 and ended.stdout.endswith("\n2 labels saved.\n")
    assert list(desk.labels(question).values()) == [truth, truth]


@pytest.mark.parametrize(
    ("names", "lines", "said"),
    [
        (("0", "1"), "0 1 0 1", ["0", "1", "0", "1"]),
        (("3", "1", "2"), "1 2 3 /s", ["1", "2", "3"]),
        (("s", "m", "u"), "s m u /s", ["s", "m", "u"]),
    ],
)
def test_in_lines_a_name_counts_before_a_number_and_a_command(
    server: tuple[Server, Path],
    tmp_path: Path,
    names: tuple[str, ...],
    lines: str,
    said: list[str],
) -> None:
    options = dict.fromkeys(names, "")
    coded = {"type": "choice", "instructions": "Which?", "options": options, "escape": False}
    project = f"coded-{'-'.join(names)}"
    desk = seeded(*server, len(said), {"code": coded}, project)
    file = spreadsheet(tmp_path / "coded.csv", desk.texts)
    ended = label(desk, "code", "\n".join(lines.split()) + "\n", file)
    assert ended.returncode == 0
    assert sorted(desk.labels("code").values()) == sorted(said)


def test_what_is_no_answer_is_asked_again(desk: Desk, file: Path) -> None:
    ended = label(desk, "team", "9\nc\n\nbilling\n", file)
    assert "'9' is no option" in ended.stdout and "'c' fits several options" in ended.stdout
    assert list(desk.labels().values()) == ["billing"]


def test_nothing_is_left_at_the_end(desk: Desk, file: Path) -> None:
    ended = label(desk, "team", "1\n" * 10, file)
    assert "Nothing is left to label." in ended.stdout
    assert ended.stdout.endswith(f"\n{TICKETS} labels saved.\n")


def test_another_file_is_refused_before_anything_is_given_back(desk: Desk, tmp_path: Path) -> None:
    other = spreadsheet(tmp_path / "other.csv", {"X-1": "Another text"})
    ended = label(desk, "team", "1\n", other)
    assert ended.returncode == 1 and "the file has none of the next 6 decisions" in ended.stderr
    assert desk.labels() == {}
    page = review(desk, "ada")
    assert page["progress"]["skipped"] == 0 and len(page["items"]) == TICKETS


def test_what_the_file_lacks_is_told_and_given_back(desk: Desk, tmp_path: Path) -> None:
    some = {ref: text for ref, text in desk.texts.items() if ref in ("T-1", "T-2")}
    ended = label(desk, "team", "1\n" * 9, spreadsheet(tmp_path / "some.csv", some))
    assert "4 not in the file: skipped" in ended.stderr
    assert desk.labels() == {"T-1": "account", "T-2": "account"}


def test_what_svc_map_wrote_is_joined_by_line(desk: Desk, tmp_path: Path) -> None:
    states, answers = tmp_path / "states.jsonl", tmp_path / "answers.jsonl"
    questions = tmp_path / "questions.json"
    texts = list(tickets(4).values())
    states.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    questions.write_text(json.dumps({"team": TEAM}))
    into = ("--url", desk.server.url, "--project", "mapped", "-q", questions, "-o", answers)
    assert svc("map", *into, states).returncode == 0
    options = ("--url", desk.server.url, "--project", "mapped", "--question", "team")
    ended = svc("label", *options, "--reviewer", "ada", states, answers, stdin="2\n" * 9)
    assert ended.stdout.endswith("\n4 labels saved.\n")
    assert all(text.splitlines()[0] in ended.stdout for text in texts)
    assert "body" not in ended.stdout


def test_lines_of_another_form_and_numbers_that_no_float_holds_are_no_trouble(
    tmp_path: Path,
) -> None:
    states, answers = tmp_path / "states.jsonl", tmp_path / "answers.jsonl"
    states.write_text('{"body":1e999}\n"two"\n"three"\n')
    lines = ['{"id":"d1","line":1}', '{"id":"d2","line":"x"}', '{"id":[1],"line":2}']
    answers.write_text("\n".join([*lines, '{"id":"d3","line":1e999}', '{"id":"d4","line":1.5}']))
    texts = read_texts([str(states), str(answers)], None, None)
    assert texts.of({"id": "d1", "ref": None}) == '"1e999"'
    assert all(texts.of({"id": name, "ref": None}) is None for name in ("d2", "d3", "d4"))


@pytest.mark.parametrize(("name", "content"), NOTE_FILES)
def test_a_record_has_the_number_that_svc_map_gives_it(
    tmp_path: Path, name: str, content: str
) -> None:
    path, answers, questions = tmp_path / name, tmp_path / "a.jsonl", tmp_path / "q.json"
    path.write_text(content, newline="")
    questions.write_text(json.dumps({"team": TEAM}))
    svc("map", "--demo", "-q", questions, "-o", answers, path)
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    rows = [{**line, "id": f"dec_{line['line']}"} for line in lines]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = read_texts([str(path), str(answers)], None, None)
    before = len(rows) - len(NOTES)
    for number, note in enumerate(NOTES, before + 1):
        assert (texts.of({"id": f"dec_{number}", "ref": None}) or "") == note


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize(("name", "content"), NOTE_FILES)
def test_a_file_that_was_changed_since_it_was_answered_is_refused(
    tmp_path: Path, name: str, content: str, piped: bool
) -> None:
    """Of a file that came through a pipe only the first line is known."""
    path, answers, questions = tmp_path / name, tmp_path / "a.jsonl", tmp_path / "q.json"
    path.write_text(content, newline="")
    questions.write_text(json.dumps({"team": TEAM}))
    given = ("--format", format_of(name), "-") if piped else (path,)
    stdin = path.read_bytes().decode() if piped else ""
    svc("map", "--demo", "-q", questions, "-o", answers, *given, stdin=stdin)
    read_texts([str(path), str(answers)], None, None)
    path.write_text(content.replace(NOTES[0], "Another note."), newline="")
    if not piped:
        with pytest.raises(SettingsError, match="was made from another file"):
            read_texts([str(path), str(answers)], None, None)


def test_a_file_of_another_encoding_is_taken_once_it_is_utf_8(tmp_path: Path) -> None:
    path, answers, questions = (tmp_path / name for name in ("n.txt", "a.jsonl", "q.json"))
    path.write_text("Grüße\n", "cp1252")
    questions.write_text(json.dumps({"team": TEAM}))
    svc("map", "--demo", "--encoding", "cp1252", "-q", questions, "-o", answers, path)
    path.write_text("Grüße\n", "utf-8")
    read_texts([str(path), str(answers)], None, None)


@pytest.mark.parametrize(("name", "content", "message"), UNFIT)
def test_texts_of_which_no_decision_can_be_told_are_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path, answers = tmp_path / name, tmp_path / "answers.jsonl"
    path.write_text(content)
    answers.write_text(MADE_OF_TWO)
    with pytest.raises(SettingsError, match=message):
        read_texts([str(path)] if name == "alone.txt" else [str(path), str(answers)], None, None)


def test_no_text_of_the_file_reaches_the_server(desk: Desk, file: Path) -> None:
    label(desk, "team", "1\n2\ns\nu\n3\n", file)
    kept = b"".join(path.read_bytes() for path in desk.db.parent.glob("svc.db*"))
    assert kept and MARK.encode() not in kept and MARK not in desk.server.log


def test_characters_that_a_terminal_obeys_are_not_shown(desk: Desk, tmp_path: Path) -> None:
    hostile = {ref: f"\x1b[2Jred {ref}" for ref in desk.texts}
    ended = label(desk, "team", "1\n", spreadsheet(tmp_path / "hostile.csv", hostile))
    assert "\x1b" not in ended.stdout and "?[2Jred T-" in ended.stdout


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", 'ref,text\nT-1,"open', "line 2: a cell of this row begins with a quote"),
        ("b.csv", "number,words\nT-1,a\n", "which column has the refs"),
        ("c.csv", "ref,text\n", "holds no records"),
        ("d.jsonl", '{"ref": "T-1"}\n{"ref"\n', "line 2: "),
    ],
)
def test_a_file_that_cannot_be_read_is_told(
    desk: Desk, tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    ended = label(desk, "team", "", path)
    assert ended.returncode == 1 and message in ended.stderr


def test_a_file_that_is_not_utf_8_is_told(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("ref,text\nT-1,Gr\xfc\xdfe\n".encode("latin-1"))
    assert "is not UTF-8" in label(desk, "team", "", path).stderr
