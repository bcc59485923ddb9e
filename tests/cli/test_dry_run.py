"""Every door says the same about the same rows, before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.bulk.rows import asking
from svc.bulk.survey import forecast_of, surveyed
from svc.client import Client, YesNo
from tests.cli.processes import svc
from tests.e2e.serving import Server

ROWS = 300
ASKED = "Is the parcel late?"
SETTINGS = {
    "SVC_MODEL": "@own/m",
    "SVC_PROVIDER_OWN_URL": "https://models.invalid",
    "SVC_PROVIDER_OWN_RPM": "100",
    "SVC_PROVIDER_OWN_PRICE": "100,200",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("dry") / "svc.db", **SETTINGS) as running:
        yield running


@pytest.fixture
def files(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options of questions and rows, whose texts are of many lengths."""
    questions, rows = tmp_path / "questions.json", tmp_path / "rows.csv"
    questions.write_text(json.dumps({"late": {"type": "noul", "instructions": ASKED}}))
    rows.write_text("id,text\n" + "".join(f"t-{n},{text_of(n)}\n" for n in range(ROWS)))
    return ("-q", questions, "--column", "text", "--ref-column", "id", rows)


def text_of(n: int) -> str:
    return "late " * (1 + n % 83)


def test_all_doors_say_the_same_of_the_same_rows(
    server: Server, files: tuple[str | Path, ...], tmp_path: Path
) -> None:
    output = ("-o", tmp_path / "out.jsonl")
    here = svc("map", "--dry-run", *output, *files, **SETTINGS)
    assert here.returncode == 0, here.stderr
    there = svc("map", "--dry-run", "--url", server.url, *output, *files)
    assert there.stdout == here.stdout
    job = svc("batch", "submit", "--dry-run", "--url", server.url, *files)
    assert job.returncode == 0, job.stderr
    of_jobs = "A job takes half of a provider's rate, so that it takes 12 min 0 s at least."
    assert [line for line in job.stdout.splitlines() if line != of_jobs] == (
        here.stdout.splitlines()
    )
    columns = {"id": [f"t-{n}" for n in range(ROWS)], "text": list(map(text_of, range(ROWS)))}
    asked = asking({"late": YesNo(ASKED)}, state="text", row_id="id", url=server.url)
    said = forecast_of(asked, [surveyed(asked, columns)])
    chars = said.fields["state_chars"]
    head = f"{ROWS} lines to ask, about {chars} characters each, by 100 of them"
    assert here.stdout.splitlines()[0] == head
    assert (said.calls, said.minutes) == (2 * ROWS, 6)
    assert f"${said.cost_usd:,.2f}" in here.stdout
    assert not (tmp_path / "out.jsonl").exists()
    assert server.get("/v1/batch").json()["jobs"] == []


def test_a_program_shows_some_states_and_says_how_many_there_are(server: Server) -> None:
    questions = {"late": YesNo(ASKED)}
    with Client(server.url) as client:
        some = client.forecast(["late " * 10], questions, rows=1_000_000)
        whole = client.forecast(["late"], questions)
    assert (some.rows, some.calls, some.minutes) == (1_000_000, 2_000_000, 20_000)
    assert some.fields["sampled"] == 1
    assert whole.rows == 1


def test_a_job_that_would_be_refused_has_no_forecast(
    server: Server, files: tuple[str | Path, ...]
) -> None:
    rows = Path(files[-1])
    rows.write_text(rows.read_text() + "t-1,twice\n")
    refused = svc("batch", "submit", "--dry-run", "--url", server.url, *files)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is the id of line 2 too" in refused.stderr


def test_another_server_gives_no_forecast(files: tuple[str | Path, ...]) -> None:
    refused = svc("batch", "submit", "--dry-run", "--url", "http://127.0.0.1:9", *files)
    assert refused.returncode == 1 and "No server answers" in refused.stderr
