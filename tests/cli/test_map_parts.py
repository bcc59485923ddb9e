"""`svc map` over a part of its input: the first lines, or those that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.processes import MODEL, NOUL, YES, inside, lines
from tests.scripted import Reply, ScriptedProvider, always, sequence

REFUSAL = Reply({"error": {"message": "no"}}, status=400)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.json").write_text(json.dumps(NOUL))
    states = "".join(f'"Parcel {number} is late."\n' for number in range(8))
    (tmp_path / "in.jsonl").write_text(states)
    return tmp_path


def mapped(folder: Path, *options: str, **settings: str) -> Result:
    arguments = ["-q", folder / "q.json", "-o", folder / "out.jsonl", folder / "in.jsonl"]
    return inside("map", *options, *arguments, **settings)


def by(provider: ScriptedProvider, folder: Path, *options: str) -> Result:
    given = ("--model", MODEL, "--no-debias", "--mode", "logprobs", "--concurrency", "1")
    return mapped(folder, *given, *options, SVC_PROVIDER_OWN_URL=provider.url)


def test_a_limit_asks_the_first_lines_and_a_further_run_goes_on_behind_them(folder: Path) -> None:
    first = mapped(folder, "--demo", "--limit", "3")
    assert first.exit_code == 0 and first.stderr.startswith("3 lines, 0 errors"), first.stderr
    assert "3 lines (3 of them before), 0" in mapped(folder, "--demo", "--limit", "2").stderr
    rest = mapped(folder, "--demo")
    assert rest.exit_code == 0 and "8 lines (3 of them before)" in rest.stderr
    assert [one["line"] for one in lines(folder / "out.jsonl")] == list(range(1, 9))


def test_only_lines_with_an_error_are_asked_again(folder: Path) -> None:
    outcomes = [YES, YES, REFUSAL, YES, REFUSAL, YES, YES, YES]
    with ScriptedProvider(sequence(*outcomes)) as provider:
        ended = by(provider, folder)
        assert ended.exit_code == 1 and "2 errors" in ended.stderr
        assert "--retry-failed asks them again" in ended.stderr
    before = lines(folder / "out.jsonl")
    with ScriptedProvider(always(YES)) as provider:
        again = by(provider, folder, "--retry-failed")
        assert len(provider.bodies) == 2
    assert again.exit_code == 0, again.stderr
    assert again.stderr.startswith("2 lines asked again, 0 errors")
    after = lines(folder / "out.jsonl")
    assert [one["line"] for one in after] == list(range(1, 9))
    assert [one for one in after if one in before] == [one for one in before if "answers" in one]
    assert all("answers" in one for one in after)
    nothing = mapped(
        folder, "--model", MODEL, "--no-debias", "--mode", "logprobs", "--retry-failed"
    )
    assert nothing.exit_code == 1


def test_what_fails_again_keeps_an_error_and_what_was_not_reached_its_own(folder: Path) -> None:
    with ScriptedProvider(sequence(YES, *[REFUSAL] * 6, YES)) as provider:
        assert "6 errors" in by(provider, folder).stderr
    before = lines(folder / "out.jsonl")
    with ScriptedProvider(sequence(YES, *[REFUSAL] * 5)) as provider:
        again = by(provider, folder, "--retry-failed")
    assert again.exit_code == 1
    assert "6 lines asked again, 5 errors" in again.stderr
    after = lines(folder / "out.jsonl")
    assert "answers" in after[1] and after[2:7] == before[2:7]
    assert [path.name for path in folder.iterdir() if path.name.endswith(".new")] == []


def test_without_an_earlier_run_there_is_nothing_to_retry(folder: Path) -> None:
    ended = mapped(folder, "--demo", "--retry-failed")
    assert ended.exit_code == 1 and "no such file of an earlier run" in ended.stderr
    assert not (folder / "out.jsonl").exists()
    for other in (["--restart"], ["--limit", "2"]):
        refused = mapped(folder, "--demo", "--retry-failed", *other)
        assert refused.exit_code == 2 and "goes neither with" in refused.stderr


def test_a_dry_run_says_calls_minutes_and_dollars_and_asks_nothing(folder: Path) -> None:
    settings = {
        "SVC_PROVIDER_OWN_URL": "https://models.invalid",
        "SVC_PROVIDER_OWN_RPM": "4",
        "SVC_PROVIDER_OWN_PRICE": "100,200",
    }
    ended = mapped(folder, "--model", MODEL, "--dry-run", **settings)
    assert ended.exit_code == 0, ended.stderr
    head, _, _, row, *_ = ended.stdout.splitlines()
    assert head == "8 lines to ask, about 17 characters each"
    model, calls, rate, *time, cost = row.split()
    assert (model, calls, rate, " ".join(time)) == (MODEL, "16", "4", "4 min 0 s")
    # Each call has about 150 tokens at 100 dollars per million.
    assert 0.1 < float(cost.removeprefix("$")) < 0.5
    assert not (folder / "out.jsonl").exists()


def test_a_dry_run_says_what_is_not_known_and_what_cannot_be_asked(folder: Path) -> None:
    (folder / "in.jsonl").write_text('"a"\n{\n"b"\n"c"\n')
    models = ("--council", "@own/a,@other/b", "--dry-run", "--limit", "3")
    urls = {f"SVC_PROVIDER_{name}_URL": "https://models.invalid" for name in ("OWN", "OTHER")}
    ended = mapped(folder, *models, **urls, SVC_PROVIDER_OTHER_PRICE="1,1")
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.startswith("2 lines to ask, about 1 characters each\n1 lines that cannot")
    assert "the first, line 2: the line is not JSON" in ended.stdout
    assert "SVC_PROVIDER_OWN_PRICE sets it" in ended.stdout
    assert "SVC_PROVIDER_OTHER_PRICE" not in ended.stdout
    assert "All of them together: at most 8 calls" in ended.stdout
