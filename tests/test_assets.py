from __future__ import annotations

import json

from svc.assets import folder


def test_the_sample_has_a_question_of_each_type_of_label() -> None:
    sample = json.loads((folder("templates") / "demo_request.json").read_text("utf-8"))
    types = [question["type"] for question in sample["questions"].values()]
    assert types == ["choice", "score", "noul", "multi"]


def test_the_static_files_are_found() -> None:
    assert (folder("static") / "favicon.svg").is_file()
