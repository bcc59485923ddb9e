from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from svc.errors import SettingsError
from svc.evals.page import natural, page, write_page
from svc.evals.runs import Run, SavedRow
from svc.evals.scoring import Scored
from svc.evals.sets import load_set
from tests.evals.samples import scored, write_set

HOSTILE = "</td><script>alert('1')</script><img src=x onerror=alert(1)>"
RUN = Run(f"@own/{HOSTILE}", "auto", True, "svc-1.2.0")


def saved(*what: Scored, content: str = "") -> Sequence[SavedRow]:
    return [SavedRow(RUN, "late", n, "q", content, one) for n, one in enumerate(what, 1)]


class Tags(HTMLParser):
    """Collects the tags, and checks that they close in order."""

    VOID = {"meta"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_nothing_in_the_data_becomes_part_of_the_page(tmp_path: Path) -> None:
    write_set(tmp_path, "late", rows=[{"state": HOSTILE, "label": True}])
    content = load_set(str(tmp_path), "late").rows[0].digest
    rows = saved(scored(HOSTILE, "b"), scored("b", HOSTILE), content=content)
    text = page([(RUN, {"late": rows, HOSTILE: rows})], str(tmp_path))
    assert "script" not in Tags(text).found and "img" not in Tags(text).found
    assert "&lt;script&gt;" in text


def test_it_asks_nobody_for_anything() -> None:
    text = page([(RUN, {"late": saved(scored("a", "a"))})], "none")
    assert "default-src 'none'" in text
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!#)|@import|url\(|https?://""", text) == []


def test_it_has_a_diagram_a_matrix_and_the_surest_mistakes(tmp_path: Path) -> None:
    write_set(tmp_path, "late", rows=[{"state": "Parcel 7", "label": True}])
    content = load_set(str(tmp_path), "late").rows[0].digest
    rows = saved(*[scored("a", "a")] * 3, scored("a", "b", 0.97), content=content)
    text = page([(RUN, {"late": rows})], str(tmp_path))
    assert "Accuracy by confidence" in text and "75.0%" in text
    assert re.search(r'<td class="right"[^>]*>3<small>75%</small></td>', text)
    assert re.search(r'<td class="wrong"[^>]*>1<small>25%</small></td>', text)
    assert "0.970" in text and "<pre>Parcel 7</pre>" in text


def test_the_surest_mistakes_come_first_and_the_least_sure_not_at_all() -> None:
    sure = [n / 100 for n in (60, 90, 70, 95, 65, 85, 75, 80, 55)]
    rows = saved(*[scored("a", "b", confidence) for confidence in sure])
    text = page([(RUN, {"late": rows})], "none")
    shown = re.findall(r">(0\.\d\d0)</td><td class=\"left text\"", text)
    assert shown == [f"{confidence:.3f}" for confidence in sorted(sure, reverse=True)[:8]]


def test_mistakes_are_shown_without_their_states_when_the_set_is_gone() -> None:
    text = page([(RUN, {"late": saved(scored("a", "b"))})], "none")
    assert "not in the eval set any more" in text


def test_of_very_many_labels_the_most_frequent_confusions_are_listed() -> None:
    rows = saved(*[scored(f"label {n}", f"label {n // 2}") for n in range(40)])
    text = page([(RUN, {"late": rows})], "none")
    assert "Most frequent confusions" in text and 'class="matrix' not in text


def test_values_have_no_matrix_and_failures_no_diagram() -> None:
    values = saved(scored("4", "5", comparable=False))
    failures = saved(Scored(error="model_error: no"))
    text = page([(RUN, {"people": values, "late": failures})], "none")
    assert 'class="matrix' not in text and text.count("Accuracy by confidence") == 1
    assert "1</b> failed" in text


def test_levels_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["10", "b", "9", "a"], key=natural) == ["a", "b", "9", "10"]


def test_a_page_behind_a_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to("p.html")
    write_page(str(tmp_path / "link.html"), [(RUN, {"late": saved(scored("a", "a"))})], "none")
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "p.html").is_file()


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"page .*no such file"):
        write_page(str(tmp_path / "no" / "p.html"), [(RUN, {"late": saved()})], "none")
    write_page(str(tmp_path / "p.html"), [(RUN, {"late": saved(scored("a", "a"))})], "none")
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]


def test_a_promised_confidence_is_shown_whole() -> None:
    """Cut to two digits it is a lower one, which is no promise."""
    sure = [replace(scored("a", "a"), confidence=0.992163) for _ in range(400)]
    doubtful = [replace(scored("a", "b"), confidence=0.9905) for _ in range(200)]
    text = page([(RUN, {"late": saved(*sure, *doubtful)})], "none")
    assert "<td>0.992163</td>" in text
