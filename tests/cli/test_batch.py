"""`svc batch`: jobs on a running server, from the shell."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc import limits
from svc.batch import Input, InputLine
from svc.cli.job_body import job_body
from svc.errors import SettingsError
from tests.cli.answers import Answers
from tests.cli.processes import NOUL, inside, lines, started, svc
from tests.e2e.serving import WAIT_S, Server
from tests.scripted import Reply

ID = "job_0123456789abcdef01234567"
JOB = {
    "id": ID,
    "status": "waiting",
    "project": "default",
    "created_at": 1_763_823_600_000,
    "expires_at": 1_763_910_000_000,
    "ended_at": None,
    "rows": 2,
    "answered": 0,
    "failed": 0,
    "cost_usd": 0.0,
    "ends_at": None,
    "waiting_for": None,
    "reason": None,
}
DONE = {**JOB, "status": "done", "answered": 2, "cost_usd": 0.5, "ended_at": 1_763_823_660_000}
LINES = [
    '{"row":1,"id":"1","decision":{"id":"dec_1","answers":{}}}\n',
    '{"row":2,"id":"2","error":{"type":"model_error","message":"none"}}\n',
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    db = tmp_path_factory.mktemp("jobs") / "svc.db"
    with Server(db, "--demo", SVC_MASTER_KEY="for jobs") as running:
        yield running


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(NOUL))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text('"Parcel 1 is late."\n"Parcel 2 is late."\n')
    return path


def test_a_table_is_handed_in_waited_for_and_fetched(
    server: Server, questions: Path, tmp_path: Path
) -> None:
    table, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    table.write_text("id,body\n" + "".join(f"t-{n},Parcel {n} is late.\n" for n in range(1, 6)))
    named = ("-q", questions, "--column", "body", "--ref-column", "id", table)
    ended = svc("batch", "submit", *named, "--url", server.url, "--wait", "-o", output)
    assert ended.returncode == 0, ended.stderr
    assert "done: 5 of 5 rows" in ended.stderr
    found = lines(output)
    assert [(one["row"], one["id"], one["decision"]["ref"]) for one in found] == [
        (n, f"t-{n}", f"t-{n}") for n in range(1, 6)
    ]
    shown = server.get(f"/v1/decisions/{found[0]['decision']['id']}").json()
    assert shown["answers"] == found[0]["decision"]["answers"]


def test_the_same_command_finds_the_same_job_and_asks_nothing_again(
    server: Server, questions: Path, texts: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    given = ("batch", "submit", "-q", questions, texts, "--url", server.url)
    first = svc(*given, "--wait", "-o", output)
    assert first.returncode == 0, first.stderr
    before = output.read_bytes()
    again = svc(*given)
    job = again.stdout.strip()
    assert job in first.stderr
    assert "handed in before, and is done; nothing is asked twice" in again.stderr
    assert f"svc batch results {job} -o FILE --url {server.url} writes" in again.stderr
    assert svc(*given, "--wait", "-o", output).returncode == 0
    assert output.read_bytes() == before
    assert svc(*given, "--expires-after", "2").stdout.strip() != job


def test_results_go_on_where_the_file_ends(
    server: Server, questions: Path, texts: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    given = ("-q", questions, texts, "--url", server.url, "--limit", "2", "--no-debias")
    assert svc("batch", "submit", *given, "--wait", "-o", output).returncode == 0
    whole = output.read_bytes()
    output.write_bytes(whole[: whole.index(b"\n") + 20])
    job = svc("batch", "submit", *given).stdout.strip()
    ended = svc("batch", "results", job, "-o", output, "--url", server.url)
    assert ended.returncode == 0, ended.stderr
    assert output.read_bytes() == whole
    printed = svc("batch", "results", job, "--url", server.url)
    assert printed.stdout.encode() == whole


def test_a_job_is_shown_listed_and_cancelled(
    server: Server, questions: Path, tmp_path: Path
) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"Parcel {n} is late.\n" for n in range(3_000)))
    given = ("batch", "submit", "-q", questions, many, "--url", server.url)
    job = svc(*given, "--project", "shop").stdout.strip()
    cancelled = svc("batch", "cancel", job, "--url", server.url)
    assert "cancelled" in cancelled.stdout
    assert svc("batch", "cancel", job, "--url", server.url).returncode == 0
    shown = svc("batch", "status", job, "--url", server.url)
    assert shown.stdout.splitlines()[1].split() == ["status", "cancelled"]
    assert "of 3,000" in shown.stdout
    as_json = svc("batch", "status", job, "--json", "--url", server.url)
    assert json.loads(as_json.stdout)["project"] == "shop"
    listed = svc("batch", "list", "--project", "shop", "--url", server.url)
    assert listed.stdout.splitlines()[1].split()[:2] == [job, "cancelled"]
    fetched = svc("batch", "results", job, "-o", tmp_path / "out.jsonl", "--url", server.url)
    assert (fetched.returncode, "cancelled: " in fetched.stderr) == (1, True)
    another = svc(*given, "--project", "shop").stdout.strip()
    assert another.startswith("job_") and another != job
    assert svc(*given, "--project", "shop").stdout.strip() == another
    svc("batch", "cancel", another, "--url", server.url)


def test_ctrl_c_ends_the_command_and_not_the_job(
    server: Server, questions: Path, tmp_path: Path
) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"Parcel {n} came.\n" for n in range(3_000)))
    given = ("batch", "submit", "-q", questions, many, "--url", server.url)
    with started(*given, "--wait") as running:
        assert running.stderr is not None
        told = running.stderr.readline() + running.stderr.readline()
        running.send_signal(signal.SIGINT)
        _, rest = running.communicate(timeout=WAIT_S)
    assert running.returncode == 130
    assert b"3,000 rows were handed in" in told
    assert b"The job goes on without this command." in rest
    job = told.split()[-1].decode()
    assert server.get(f"/v1/batch/{job}").json()["status"] in ("waiting", "running")
    svc("batch", "cancel", job, "--url", server.url)


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("in.jsonl", '"a"\n{\n\n"b"\n', (), ["line 2: ", "line 3: the line is empty", "2 of 4 li"]),
        (
            "in.csv",
            "id,body\na,x\na,y\n",
            ("--ref-column", "id"),
            ['line 2: "a" is the id of line 1'],
        ),
        (
            "in.csv",
            "id,body\n2,x\n,y\n",
            ("--ref-column", "id"),
            ['line 2: "2" is the id of line 1'],
        ),
        ("in.csv", "id,body\na,x\n", ("--column", "text"), ["--column"]),
        ("in.jsonl", "", (), ["the input has no line to ask about"]),
        ("in.jsonl", "1\n" * 100_001, (), ["over 100,000 lines", "nothing was sent; --limit"]),
    ],
)
def test_what_cannot_be_asked_about_is_told_before_anything_is_sent(
    questions: Path,
    tmp_path: Path,
    name: str,
    content: str,
    options: tuple[str, ...],
    words: list[str],
) -> None:
    (tmp_path / name).write_text(content)
    with Answers(Reply(JOB, 202)) as answers:
        given = ("-q", questions, *options, tmp_path / name, "--url", answers.url)
        ended = inside("batch", "submit", *given)
        assert not answers.asked
    assert ended.exit_code == 1
    assert all(one in ended.stderr for one in words), ended.stderr


def test_too_many_lines_of_a_pipe_are_told_too() -> None:
    many = (InputLine(number, b"1") for number in range(1, limits.JOB_ROWS + 2))
    source = Input(many, None, "", io.BufferedReader(io.BytesIO()))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="over 100,000 lines"):
        job_body({}, source, None)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("status", "dec_1"), 1, "'dec_1' is no id of a job"),
        (("results", "job_1/../../v1/keys"), 1, "is no id of a job"),
        (("list", "--before", "x"), 1, "is no id of a job"),
        (("list", "--limit", "0"), 2, "--limit"),
        (("cancel",), 2, "Missing argument 'JOB'"),
        (("stauts", "x"), 2, "Did you mean 'status'"),
        (("submit", "-q", "spam", "x", "-o", "y"), 2, "-o and --restart go with --wait only"),
        (("submit", "-q", "spam", "x", "--wait", "--restart"), 2, "--restart goes with -o only"),
        (("submit", "-q", "spam", "x", "--expires-after", "169"), 2, "1<=x<=168"),
        (("submit", "-q", "spam", "missing.csv"), 1, "input 'missing.csv': "),
        (("submit", "-q", "no-such-recipe", "x"), 1, "no recipe of that name"),
    ],
)
def test_a_wrong_command_line_is_told(arguments: tuple[str, ...], status: int, words: str) -> None:
    ended = inside("batch", *arguments)
    assert ended.exit_code == status
    assert words in ended.stderr


def test_a_server_without_a_master_key_says_what_it_needs(
    questions: Path, texts: Path, tmp_path: Path
) -> None:
    with Server(tmp_path / "svc.db", "--demo") as running:
        ended = inside("batch", "submit", "-q", questions, texts, "--url", running.url)
    assert ended.exit_code == 1
    assert "jobs need SVC_MASTER_KEY on the server" in ended.stderr


def test_where_no_answer_comes_the_same_command_can_be_repeated(
    questions: Path, texts: Path
) -> None:
    given = ("-q", questions, texts, "--url", "http://127.0.0.1:1")
    ended = inside("batch", "submit", *given)
    assert ended.exit_code == 1
    assert "No server answers at http://127.0.0.1:1" in ended.stderr
    assert "The same command again makes no second job." in ended.stderr


@pytest.mark.parametrize(
    "value",
    [
        "<html>",
        {},
        {**JOB, "rows": "many"},
        {**JOB, "created_at": 10**30},
        {**JOB, "cost_usd": 10**400},
        {**JOB, "failed": True},
        {**JOB, "id": "job_\x1b[2J"},
        {**JOB, "id": "../keys"},
    ],
)
def test_what_is_no_job_is_told(value: Any) -> None:
    with Answers(Reply(value)) as answers:
        ended = inside("batch", "status", ID, "--url", answers.url)
    assert ended.exit_code == 1
    assert "something that is no job; see --url" in ended.stderr


@pytest.mark.parametrize("value", ["\x1b[2J", {**JOB, "id": "job_1"}])
def test_what_is_no_job_is_not_printed_as_json_either(value: Any) -> None:
    with Answers(Reply(value)) as answers:
        ended = inside("batch", "status", ID, "--json", "--url", answers.url)
    assert (ended.exit_code, ended.stdout) == (1, "")


def test_status_says_in_words_why_a_job_does_not_move() -> None:
    waiting = {**JOB, "status": "running", "answered": 1, "waiting_for": "the daily limit"}
    with Answers(Reply({**waiting, "ends_at": 0})) as answers:
        ended = inside("batch", "status", ID, "--url", answers.url)
    assert ended.stdout.splitlines() == [
        ID,
        "status     running",
        "waits for  the daily limit",
        "rows       1 of 2",
        "cost       $0.0000",
        "project    default",
        "handed in  2025-11-22T15:00:00Z",
        "may end    1970-01-01T00:00:00Z, in 0 s",
        "expires    2025-11-23T15:00:00Z",
    ]


def test_waiting_bears_a_server_at_a_limit_and_says_what_the_job_waits_for(
    questions: Path, texts: Path
) -> None:
    limited = Reply({"error": {"type": "rate_limited", "message": "too many"}}, 429)
    running = Reply({**JOB, "status": "running", "waiting_for": "a provider's rate"})
    replies = (Reply(JOB, 202), running, limited, Reply({**DONE, "failed": 1, "answered": 1}))
    with Answers(*replies) as answers:
        ended = inside("batch", "submit", "-q", questions, texts, "--wait", "--url", answers.url)
    assert ended.exit_code == 1
    assert "The job waits for a provider's rate." in ended.stderr
    assert "done: 2 of 2 rows, 1 of them with an error, $0.5000, 1 min 0 s" in ended.stderr


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "exists already, and there is no 'o.run.json' beside it"),
        ({"command": "map", "questions": "q"}, "belongs to a run with a different command"),
    ],
)
def test_a_file_that_cannot_take_the_results_is_told_before_the_job_is_handed_in(
    questions: Path, texts: Path, tmp_path: Path, record: Any, words: str
) -> None:
    output = tmp_path / "o"
    output.write_text("mine\n")
    if record is not None:
        Path(f"{output}.run.json").write_text(json.dumps(record))
    replies = (Reply(DONE, 202), Reply("".join(LINES)))
    with Answers(*replies) as answers:
        given = ("-q", questions, texts, "--wait", "--url", answers.url)
        refused = inside("batch", "submit", *given, "-o", output)
        assert (refused.exit_code, answers.asked) == (1, [])
        nowhere = inside("batch", "submit", *given, "-o", tmp_path / "none" / "o")
        assert (nowhere.exit_code, answers.asked) == (1, [])
        assert output.read_text() == "mine\n"
        assert inside("batch", "submit", *given, "-o", output, "--restart").exit_code == 0
    assert words in refused.stderr and "no such file or directory" in nowhere.stderr
    assert output.read_text() == "".join(LINES)


def test_results_do_not_overwrite_what_they_are_about(questions: Path, texts: Path) -> None:
    before = questions.read_bytes(), texts.read_bytes()
    with Answers() as answers:
        given = ("-q", questions, texts, "--wait", "--url", answers.url, "--restart", "-o")
        for output in (questions, texts):
            refused = inside("batch", "submit", *given, output)
            assert refused.exit_code == 1 and "is also read from" in refused.stderr
        assert answers.asked == []
    assert (questions.read_bytes(), texts.read_bytes()) == before


def test_a_file_of_another_job_is_told_before_the_new_one_is_waited_for(
    questions: Path, texts: Path, tmp_path: Path
) -> None:
    output = tmp_path / "o"
    with Answers(Reply(DONE), Reply("".join(LINES)), Reply(DONE)) as answers:
        assert inside("batch", "results", ID, "-o", output, "--url", answers.url).exit_code == 0
    other = {"id": f"{ID[:-1]}8"}
    with Answers(Reply({**JOB, **other}, 202), Reply({**DONE, **other})) as answers:
        given = ("-q", questions, texts, "--wait", "-o", output, "--url", answers.url)
        refused = inside("batch", "submit", *given)
        assert len(answers.asked) == 1
    assert refused.exit_code == 1
    assert f"{ID[:-1]}8" in refused.stderr
    assert "belongs to a run with a different job" in refused.stderr
    assert output.read_text() == "".join(LINES)


def test_results_of_a_job_that_runs_are_those_so_far(tmp_path: Path) -> None:
    running = Reply({**JOB, "status": "running", "answered": 1})
    page = Reply(LINES[0], 200, {"x-next-after": "1"})
    nothing = Reply("", 200, {"x-next-after": "1"})
    with Answers(running, page, nothing, running) as answers:
        ended = inside("batch", "results", ID, "-o", tmp_path / "o", "--url", answers.url)
    assert ended.exit_code == 1
    assert "the same command continues from there" in ended.stderr
    assert (tmp_path / "o").read_text() == LINES[0]


@pytest.mark.parametrize("told", ["9" * 5_000, "0", "-1", "x"])
def test_a_page_that_leads_nowhere_is_an_error(tmp_path: Path, told: str) -> None:
    page = Reply(LINES[0], 200, {"x-next-after": "1"})
    odd = Reply(LINES[1], 200, {"x-next-after": told})
    with Answers(Reply(DONE), page, odd, Reply(DONE)) as answers:
        ended = inside("batch", "results", ID, "-o", tmp_path / "o", "--url", answers.url)
    assert ended.exit_code != 0
    assert "the server's answer is not one of svc" in ended.stderr


def test_rows_that_are_missing_in_the_end_are_an_error(tmp_path: Path) -> None:
    with Answers(Reply(DONE), Reply(LINES[0]), Reply(DONE)) as answers:
        ended = inside("batch", "results", ID, "-o", tmp_path / "o", "--url", answers.url)
    assert ended.exit_code != 0
    assert "1 of 2 rows came; the same command fetches the others" in ended.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LINES[0] * 2, "line 2 is not the result of a further row"),
        ("{}\n", "line 1 is not the result of a further row"),
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str, words: str) -> None:
    output = tmp_path / "o"
    with Answers(Reply(DONE), Reply("".join(LINES)), Reply(DONE)) as answers:
        given = ("batch", "results", ID, "-o", output, "--url", answers.url)
        assert inside(*given).exit_code == 0
        assert output.read_text() == "".join(LINES)
        output.write_text(content)
        refused = inside(*given)
    assert refused.exit_code == 1
    assert words in refused.stderr
    assert output.read_text() == content


def test_a_file_of_another_job_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    output = tmp_path / "o"
    replies = (Reply(DONE), Reply("".join(LINES)), Reply(DONE))
    with Answers(*replies * 3) as answers:
        assert inside("batch", "results", ID, "-o", output, "--url", answers.url).exit_code == 0
        other = ("batch", "results", f"{ID[:-1]}8", "-o", output, "--url", answers.url)
        refused = inside(*other)
    assert refused.exit_code == 1
    assert "belongs to a run with a different job; --restart starts again" in refused.stderr
    with Answers(*replies) as answers:
        again = (*other[:-1], answers.url, "--restart")
        assert inside(*again).exit_code == 0
    assert output.read_text() == "".join(LINES)


def test_a_job_that_was_given_up_is_handed_in_again_under_one_further_key(
    questions: Path, texts: Path
) -> None:
    old = Reply(JOB, 202, {"Idempotent-Replayed": "true"})
    cancelled = Reply({**JOB, "status": "cancelled"})
    new = Reply({**JOB, "id": f"{ID[:-1]}8"}, 202)
    keys = []
    for _ in range(2):
        with Answers(old, cancelled, new) as answers:
            ended = inside("batch", "submit", "-q", questions, texts, "--url", answers.url)
        assert ended.stdout.strip() == f"{ID[:-1]}8"
        posted = [one for one in answers.asked if one.method == "POST"]
        keys.append([one.headers["idempotency-key"] for one in posted])
        assert len({one.body for one in posted}) == 1
    assert keys[0] == keys[1]
    assert keys[0][0] != keys[0][1]


def test_the_rows_go_as_lines_behind_what_they_share(questions: Path, tmp_path: Path) -> None:
    table = tmp_path / "in.tsv"
    table.write_text("id\tbody\na\tx\n\ty\n")
    given = ("-q", questions, "--ref-column", "id", "--no-debias", "--model", "@a/m", table)
    with Answers(Reply(JOB, 202)) as answers:
        more = ("--project", "shop", "--expires-after", "48", "--api-key", "svc_1")
        inside("batch", "submit", *given, *more, "--url", answers.url)
    (asked,) = answers.asked
    assert asked.headers["content-type"] == "application/x-ndjson"
    assert asked.headers["authorization"] == "Bearer svc_1"
    shared, *rows = map(json.loads, asked.body.splitlines())
    assert shared == {
        "questions": NOUL,
        "model": "@a/m",
        "mode": shared["mode"],
        "debias": False,
        "project": "shop",
        "expires_after_hours": 48,
    }
    assert rows == [{"id": "a", "state": "x", "ref": "a"}, {"id": "2", "state": "y"}]


def test_a_job_in_batches_of_the_provider_says_so(questions: Path, texts: Path) -> None:
    with Answers(Reply(JOB, 202)) as answers:
        inside("batch", "submit", "-q", questions, texts, "--provider-batch", "--url", answers.url)
    shared = json.loads(answers.asked[0].body.splitlines()[0])
    assert shared["batch"] == "provider"
