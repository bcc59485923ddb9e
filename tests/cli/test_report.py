from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from tests.cli.processes import svc
from tests.evals.samples import TEAM, write_set

ROWS = [{"state": "an <b>error</b>", "label": "billing"}, {"state": "errors", "label": "technical"}]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs over one set, saved; the second one asks in one order."""
    folder = tmp_path_factory.mktemp("evals")
    write_set(folder, "team", TEAM, ROWS)
    path = folder / "runs.jsonl"
    for options in ([], ["--no-debias"]):
        ended = svc("bench", "--demo", "--dir", folder, "--save", path, *options)
        assert ended.returncode == 0, ended.stderr
    return path


def test_it_prints_every_run_as_bench_did(saved: Path) -> None:
    bench = svc("bench", "--demo", "--dir", saved.parent, "--save", saved).stdout
    report = svc("report", saved).stdout
    assert report.startswith(bench)
    assert "@demo/lexical, mode auto, one option order, svc-1.3.0" in report[len(bench) :]


def test_the_page_has_the_states_of_mistakes_and_nothing_of_them_is_markup(saved: Path) -> None:
    page = saved.parent / "report.html"
    ended = svc("report", "--dir", saved.parent, "--html", page, saved)
    assert ended.returncode == 0 and f"wrote {page}" in ended.stderr
    text = page.read_text()
    assert "an &lt;b&gt;error&lt;/b&gt;" in text and "<b>error" not in text


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"line": 1}\n')
    (tmp_path / "empty.jsonl").write_text("")
    for name, problem in (
        ("other.jsonl", "line 1 is not a row that `svc bench --save` wrote"),
        ("empty.jsonl", "it has no scored row"),
        ("none.jsonl", "no such file or directory"),
    ):
        ended = svc("report", tmp_path / name)
        assert ended.returncode == 1 and problem in ended.stderr
        assert ended.stderr.count("\n") == 1 and ended.stdout == ""


def test_a_page_over_the_file_that_is_read_is_refused(saved: Path) -> None:
    ended = CliRunner().invoke(main, ["report", "--html", str(saved), str(saved)])
    assert ended.exit_code == 2 and "names the file that is read" in ended.output


def test_what_a_terminal_would_act_on_is_not_printed(saved: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "runs.jsonl"
    hostile.write_text(saved.read_text().replace("@demo/lexical", "\\u001b[2Jmodel"))
    assert svc("report", hostile).stdout.startswith("?[2Jmodel, mode auto")


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["report", "--help"])
    assert "Examples:" in shown.output and "svc report runs.jsonl" in shown.output
