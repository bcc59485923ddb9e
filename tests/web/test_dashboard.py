"""`GET /dashboard` as it is served; tests/browser opens it."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from werkzeug.test import TestResponse

from svc import assets
from tests.web.conftest import Start

_NAMED = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


@pytest.fixture
def response(start: Start) -> TestResponse:
    return start().test_client().get("/dashboard")


def test_the_page_is_served(response: TestResponse) -> None:
    assert response.status_code == 200
    assert response.content_type == "text/html; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_the_address_of_the_server_alone_shows_the_page(start: Start) -> None:
    client = start().test_client()
    alone, page = client.get("/"), client.get("/dashboard")
    assert (alone.status_code, alone.text) == (200, page.text)
    policy = "content-security-policy"
    assert alone.headers[policy] == page.headers[policy]


def test_nothing_is_loaded_from_elsewhere(response: TestResponse) -> None:
    loaded = re.findall(r'<[^>]*\b(?:src|href)="([^"]*)"', response.text)
    assert [url for url in loaded if not url.startswith(("#", "data:"))] == []


def test_every_file_of_the_page_is_in_it(response: TestResponse) -> None:
    for path in assets.folder("static").glob("*.[cj]s*"):
        assert path.read_text("utf-8") in response.text, path.name


def test_no_name_of_one_file_is_taken_by_another() -> None:
    # The scripts of the page share one scope, in which the later one would win.
    scripts = [path.read_text("utf-8") for path in assets.folder("static").glob("*.js")]
    names = [name for script in scripts for name in _NAMED.findall(script)]
    assert sorted(names) == sorted(set(names))


def test_the_policy_allows_what_is_in_the_page_and_no_other_script(response: TestResponse) -> None:
    policy = dict(
        part.partition(" ")[::2] for part in response.headers["Content-Security-Policy"].split("; ")
    )
    scripts = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", response.text, re.DOTALL)
    assert scripts and styles
    assert policy["script-src"].split() == [source(text) for text in scripts]
    assert policy["style-src"].split() == [source(text) for text in styles]
    assert (policy["default-src"], policy["connect-src"]) == ("'none'", "'self'")
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in str(policy)


def test_the_page_needs_no_inline_attributes(response: TestResponse) -> None:
    assert re.findall(r"<[^>]*\s(?:style|on\w+)=", response.text.partition("<script>")[0]) == []


def source(text: str) -> str:
    """The policy's name for an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
