from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from svc.cli.main import COMMANDS, main
from tests.cli.processes import shell


def offered(*arguments: str, word: str = "") -> list[tuple[str, str]]:
    found = ShellComplete(main, {}, "svc", "_SVC_COMPLETE").get_completions([*arguments], word)
    return [(one.type, one.value) for one in found]


def test_commands_and_options_are_offered() -> None:
    assert offered() == [("plain", name) for name in COMMANDS]
    assert offered(word="ma") == [("plain", "map")]
    assert ("plain", "--retry-failed") in offered("map", word="--r")
    assert offered("keys") == [("plain", name) for name in ("create", "list", "revoke")]
    assert offered("batch", word="s") == [("plain", "status"), ("plain", "submit")]
    assert offered("help", "keys", word="cr") == [("plain", "create")]
    assert offered("nonsense", "x", word="y") == []


@pytest.mark.parametrize(
    "arguments", [("ask", "text", "-r"), ("map", "-q"), ("recipe", "show"), ("lint",), ("probe",)]
)
def test_recipes_are_offered(arguments: tuple[str, ...]) -> None:
    assert offered(*arguments, word="sent") == [("plain", "sentiment")]


def test_files_of_questions_stand_beside_recipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spare.json").write_text("{}")
    assert offered("map", "-q", word="sp") == [("plain", "spare.json"), ("plain", "spam")]
    assert offered("map", "-q", word="./sp") == [("file", "./sp")]
    assert offered("map", "-q", word="zz") == [("file", "zz")]
    assert offered("map", word="tick") == [("file", "tick")]
    assert offered("batch", "submit", word="tick") == [("file", "tick")]
    assert offered("batch", "submit", "-q", word="spa") == [
        ("plain", "spare.json"),
        ("plain", "spam"),
    ]
    assert offered("batch", "results", "JOB", "-o", word="out") == [("file", "out")]
    assert offered("decide", word="r") == [("file", "r")]


def test_eval_sets_of_the_folder_are_offered(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    assert offered("bench", "--dir", str(tmp_path)) == [("plain", "mine")]
    assert ("plain", "support-queue") in offered("tune", word="supp")


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(kind: str) -> None:
    ended = shell('"$@"', _SVC_COMPLETE=f"{kind}_source")
    assert ended.returncode == 0 or "bash" in kind, ended.stderr
