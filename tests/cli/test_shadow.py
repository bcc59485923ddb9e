from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from svc.batch.agreement import Agreement, Comparison
from svc.cli.agreement_report import report
from svc.cli.main import main
from tests.cli.processes import MODEL, NOUL, YES, lines, shell, svc
from tests.scripted import Reply, ScriptedProvider, always

LABELLED = [{"state": f"Parcel {n}\nis late", "labels": {"late": n % 4 != 0}} for n in range(20)]


def arguments(folder: Path, labelled: Sequence[Any], *options: str) -> list[str | Path]:
    (folder / "q.json").write_text(json.dumps(NOUL))
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in labelled))
    named = ["-q", folder / "q.json", "-o", folder / "out.jsonl", folder / "in.jsonl"]
    return ["shadow", *options, *named]


def test_the_report_says_how_far_answers_and_labels_agree(tmp_path: Path) -> None:
    with ScriptedProvider(always(YES)) as provider:
        command = arguments(tmp_path, LABELLED, "--model", MODEL, "--examples", "2")
        ended = svc(*command, SVC_PROVIDER_OWN_URL=provider.url)
    assert ended.returncode == 0, ended.stderr
    shown = [line.rstrip() for line in ended.stdout.splitlines()]
    assert shown[1:3] == ["late: 75.0% agree, 15 of 20", "  calibration: ECE 0.150, Brier 0.210"]
    assert "    0.90         100.0%          75.0%" in shown
    assert "    0.95           0.0%              -" in shown
    assert "    label \\ answer  false  true" in shown
    assert "    false               0     5" in shown
    assert "    true                0    15" in shown
    assert shown[-3:] == [
        "  surest disagreements:",
        "    line 1: label false, answer true at 0.90: Parcel 0 is late",
        "    line 5: label false, answer true at 0.90: Parcel 4 is late",
    ]
    first = lines(tmp_path / "out.jsonl")[0]
    assert first["compared"]["late"]["agrees"] is False and "answers" in first


def test_a_rerun_reports_on_all_lines_and_asks_about_what_is_missing(tmp_path: Path) -> None:
    with ScriptedProvider(always(YES)) as provider:
        command = arguments(tmp_path, LABELLED, "--model", MODEL)
        whole = svc(*command, SVC_PROVIDER_OWN_URL=provider.url).stdout
        output = tmp_path / "out.jsonl"
        output.write_bytes(output.read_bytes()[:-700])
        asked = len(provider.bodies)
        again = svc(*command, SVC_PROVIDER_OWN_URL=provider.url)
        assert 0 < len(provider.bodies) - asked < 10
    assert again.stdout == whole and "of them before" in again.stderr


def test_another_field_can_be_compared_with(tmp_path: Path) -> None:
    labelled = [{"state": "late", "labels": {}, "human": {"late": True}}]
    command = arguments(tmp_path, labelled, "--demo", "--compare", "human")
    assert "late: 100.0% agree, 1 of 1" in svc(*command).stdout
    # The same output belongs to a run that compared something else.
    assert svc(*arguments(tmp_path, labelled, "--demo")).returncode == 1


def test_a_line_without_valid_labels_is_an_error_line_and_costs_nothing(tmp_path: Path) -> None:
    labelled: list[Any] = [{"state": "a"}, "a", {"labels": {}}, {"state": 1, "labels": {"x": 1}}]
    with ScriptedProvider(always(YES)) as provider:
        command = arguments(tmp_path, labelled, "--model", MODEL)
        ended = svc(*command, SVC_PROVIDER_OWN_URL=provider.url)
        assert provider.bodies == []
    assert ended.returncode == 1 and "late: no label to compare with" in ended.stdout
    messages = [line["error"]["message"] for line in lines(tmp_path / "out.jsonl")]
    assert messages == [*["the line must be an object with state and labels"] * 3, messages[3]]
    assert messages[3] == 'labels: there is no question "x"'


def test_the_output_of_one_command_is_none_of_the_other(tmp_path: Path) -> None:
    command = arguments(tmp_path, LABELLED[:3], "--demo")
    assert svc(*command).returncode == 0
    refused = svc("map", *command[1:])
    assert refused.returncode == 1 and "a run with a different command" in refused.stderr
    assert svc("map", *command[1:], "--restart").returncode == 0
    refused = svc(*command)
    assert refused.returncode == 1 and "a run with a different command" in refused.stderr


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    command = arguments(tmp_path, LABELLED, "--demo")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f'cat {tmp_path}/in.jsonl > {pipe} & "$@"; status=$?; wait; exit $status'
    ended = shell(script, *command[:-1], pipe)
    assert ended.returncode == 0 and "late: 75.0% agree, 15 of 20" in ended.stdout


def test_a_damaged_output_is_said_so(tmp_path: Path) -> None:
    command = arguments(tmp_path, LABELLED, "--demo")
    svc(*command)
    output = tmp_path / "out.jsonl"
    output.write_bytes(output.read_bytes().replace(b'{"line":3,', b'{"line":3,,'))
    ended = svc(*command)
    assert ended.returncode == 1
    assert "Error: line 3 of the output is damaged; --restart starts again" in ended.stderr


def test_an_outage_stops_it_with_a_report_on_what_is_there(tmp_path: Path) -> None:
    with ScriptedProvider(always(Reply(status=400))) as provider:
        command = arguments(tmp_path, LABELLED, "--model", MODEL)
        ended = svc(*command, SVC_PROVIDER_OWN_URL=provider.url)
    assert ended.returncode == 1
    assert "Stopped after line 0: no model answered 10 lines in a row" in ended.stderr
    assert "late: no label to compare with" in ended.stdout


@pytest.mark.parametrize("options", [["-o", "-"], ["--examples", "-1"], ["--compare"]])
def test_a_wrong_command_line_ends_with_2(tmp_path: Path, options: list[str]) -> None:
    command = [*map(str, arguments(tmp_path, LABELLED, "--demo")), *options]
    ended = CliRunner().invoke(main, command)
    assert ended.exit_code == 2 and options[0] in ended.output


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["shadow", "--help"])
    assert "Examples:" in shown.output and "svc shadow --demo -q" in shown.output


def test_of_many_labels_the_most_frequent_confusions_are_listed() -> None:
    found = Agreement(0)
    for number in range(30):
        said = f"intent-{number}" if number > 2 else "a" * 40
        label = f"intent-{number}"
        compared = Comparison(
            label=label, answer=said, agrees=number > 2, confidence=0.9, brier=0.1
        )
        found.add(number, compared)
    shown = "\n".join(report("q", found, {}))
    assert "most frequent confusions:" in shown
    assert re.search(r"intent-0 +a{15}… +1$", shown, re.M)
    assert "intent-9" not in shown
