"""What the pages say of the program is so: links, errors, fields, prices, names."""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from svc import errors
from svc.assets import recipes
from svc.errors import ApiError
from svc.providers import build_catalog
from svc.providers.prices import LIST_PRICES
from svc.settings import load
from svc.wording import FAULTS
from tests.docs import fields
from tests.docs.pages import PAGES, ROOT, blocks
from tests.openapi.judge import document

README_LINES = 180
_LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def markdown() -> list[Path]:
    """Every page of the project."""
    folders = ("docs", "deploy", "evals", "benchmarks", "tests")
    found = (page for folder in folders for page in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *found])


@cache
def anchors(page: Path) -> set[str]:
    """The names that headings of a page are linked by."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", markdown(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / unquote(name) if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text("utf-8")
    pages = {page.name for page in PAGES if page.parent.name == "docs"} - {"README.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_what_it_is_for(page: Path) -> None:
    title, blank, first, *_ = page.read_text("utf-8").splitlines()
    assert title.startswith("# ")
    assert blank == ""
    assert first[:1].isalpha() or first.startswith("`")


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES


def test_the_table_of_errors_has_each_of_them_once() -> None:
    text = (ROOT / "docs/errors.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)
    kinds = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    raised = {(str(kind.status), kind.type) for kind in kinds if issubclass(kind, ApiError)}
    assert len(rows) == len(raised)
    assert set(rows) == raised


def test_the_fields_are_those_of_the_openapi_document() -> None:
    """Where it fails: `python -m tests.docs.fields` makes the page anew."""
    assert fields.PAGE.read_text("utf-8") == fields.page()


def test_every_route_is_asked_with_curl() -> None:
    sent = "".join(one.text for one in blocks(ROOT / "docs/curl.md") if one.language == "bash")
    asked = set(re.findall(r"127\.0\.0\.1:7777(/[\w/.…]*)", sent))
    names = {"{decision_id}": "dec_…", "{job_id}": "job_…"}
    routes = {re.sub(r"{\w+}", lambda part: names[part[0]], path) for path in document()["paths"]}
    assert asked == routes


def test_the_dollars_are_tokens_times_list_prices() -> None:
    text = (ROOT / "docs/costs.md").read_text("utf-8")
    row = r"^\| \w+ \| `@(\w+)/([\w.-]+)` \| \w+ \| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \|$"
    found = re.findall(row, text, re.MULTILINE)
    assert len(found) == 6
    for provider, model, *figures in found:
        sent, received, dollars = (float(figure.replace(",", "")) for figure in figures)
        per_sent, per_received = LIST_PRICES[provider][model]
        assert round((sent * per_sent + received * per_received) / 1e6, 2) == dollars


def test_the_numbers_of_kinds_and_recipes_are_told() -> None:
    measuring = (ROOT / "docs/measuring.md").read_text("utf-8")
    assert f"It knows {len(FAULTS)} kinds" in measuring
    assert f"{len(recipes())} ready question sets" in measuring
    assert f"shows {len(recipes())} sets of questions" in (ROOT / "README.md").read_text("utf-8")


def test_every_variable_is_on_a_page() -> None:
    source = (ROOT / "svc/settings.py").read_text("utf-8")
    variables = set(re.findall(r'"(SVC_[A-Z_]+[A-Z])"', source))
    kinds = re.findall(r"_\(([A-Z|_]+)\)", source)[0].split("|")
    pages = [ROOT / "docs/operating.md", ROOT / "docs/providers.md"]
    told = "".join(page.read_text("utf-8") for page in pages)
    assert len(variables) > 10
    needed = variables | {f"SVC_PROVIDER_<NAME>_{kind}" for kind in kinds}
    assert {name for name in needed if f"`{name}`" not in told} == set()


def test_the_built_in_providers_are_on_their_page() -> None:
    text = (ROOT / "docs/providers.md").read_text("utf-8")
    source = (ROOT / "svc/providers/catalog.py").read_text("utf-8")
    keys = dict.fromkeys(re.findall(r'"([A-Z]+_API_KEY)"', source), "k")
    assert {name for name in build_catalog(load(keys)) if f"`{name}`" not in text} == {"openrouter"}


def test_what_is_said_of_a_failed_call_is_what_the_program_says() -> None:
    text = (ROOT / "docs/providers.md").read_text("utf-8")
    table = text.partition("## When no answer comes")[2].partition("\n## ")[0]
    said = re.findall(r"^\| (the [^|]+) \|", table, re.MULTILINE)
    source = (ROOT / "svc/providers/failures.py").read_text("utf-8")
    assert len(said) == 8
    assert [words for words in said if f'"{words}"' not in source] == []
