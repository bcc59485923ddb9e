"""What commands print as tables they print as JSON too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svc.wording import FAULTS
from tests.cli.processes import NOUL, inside

ROWS = [
    {"state": f"Parcel {one} is {'late' if one % 2 else 'here'}.", "label": bool(one % 2)}
    for one in range(40)
]


def printed(*arguments: str | Path) -> Any:
    ended = inside(*arguments)
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_lists_of_keys_projects_and_recipes(tmp_path: Path) -> None:
    db = ("--db", tmp_path / "svc.db")
    assert inside("keys", "create", "--name", "ada", "--rpm", "7", *db).exit_code == 0
    (key,) = printed("keys", "list", "--json", *db)
    assert (key["name"], key["rpm"], key["revoked_at"]) == ("ada", 7, None)
    assert not any("svc_" in str(value) for value in key.values())
    assert inside("project", "set", "shop", "--max-bytes", "10", *db).exit_code == 0
    assert printed("project", "list", "--json", *db) == [
        {"project": "shop", "max_bytes": 10, "bytes": 0}
    ]
    recipes = {one["name"]: one["description"] for one in printed("recipe", "list", "--json")}
    assert recipes["sentiment"].startswith("How a text feels")
    faults = printed("lint", "--faults", "--json")
    assert [one["code"] for one in faults] == list(FAULTS)


def test_figures_of_models_and_eval_sets(tmp_path: Path) -> None:
    (tmp_path / "late.json").write_text(json.dumps({"question": NOUL["late"], "rows": ROWS}))
    folder, saved = ("--dir", tmp_path), tmp_path / "runs.jsonl"
    bench = printed("bench", "--demo", "--json", *folder, "--save", saved)
    assert bench["sets"]["late"] == bench["overall"]
    assert bench["overall"]["rows"] == 40 and bench["model"] == "@demo/lexical"
    assert printed("report", "--json", *folder, saved) == [bench]
    out = ("--out", tmp_path / "tuned.json")
    tuned = printed("tune", "--demo", "--json", "--yes", *folder, *out, "late")
    assert {one["mode"] for one in tuned["ways"]} == {"auto", "verbal"}
    assert (tuned["wordings"], tuned["judged"]) == ([], None)
    (spiked,) = printed("spike", "--demo", "--json", "@demo/lexical")
    assert spiked["model"] == "@demo/lexical" and spiked["verdict"].startswith("labels")


def test_the_report_of_a_shadow_run(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps(NOUL))
    lines = [json.dumps({"state": one["state"], "labels": {"late": one["label"]}}) for one in ROWS]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    named = ("-q", tmp_path / "q.json", "-o", tmp_path / "out.jsonl", tmp_path / "in.jsonl")
    late = printed("shadow", "--demo", "--json", *named)["late"]
    assert late["answers"] == 40
    assert sum(one["times"] for one in late["confusion"]) == 40
    assert late["agreeing"] + len(late["examples"]) == 40 or len(late["examples"]) == 5
