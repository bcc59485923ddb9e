from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser
from tests.browser.seeding import decide, seed
from tests.e2e.serving import Server
from tests.e2e.test_access import make_key
from tests.scripted import Reply, ScriptedProvider
from tests.web.labelled import obeying
from tests.web.models import ANIMAL

Keys = dict[str, str]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser; afterwards nothing of the page may have gone wrong."""
    yield chromium
    console, _ = chromium.drain()
    assert [line for line in console if "Failed to load resource" not in line] == []


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without keys, with something for every view to show."""
    db = tmp_path_factory.mktemp("browser") / "svc.db"
    with ScriptedProvider(obeying) as provider:
        with Server(db, "--demo", SVC_PROVIDER_SCRIPTED_URL=provider.url) as started:
            seed(started, db)
            yield started


@pytest.fixture(scope="package")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a daily limit, one of whose two decisions its provider refused."""
    db = tmp_path_factory.mktemp("troubled") / "svc.db"
    with ScriptedProvider(lambda *_: Reply({"error": "no"}, 400)) as provider:
        settings = {"SVC_PROVIDER_REFUSING_URL": provider.url, "SVC_DAILY_LIMIT": "500"}
        with Server(db, "--demo", **settings) as started:
            decide(started, "A cat.", {"q": ANIMAL})
            body = {"state": "A dog.", "questions": {"q": ANIMAL}, "model": "@refusing/m"}
            assert started.post(body).status_code == 502
            assert started.get("/nowhere").status_code == 404
            yield started


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Keys]]:
    """A server that is empty and wants a key; one for all, one for a project, a slow one."""
    db = tmp_path_factory.mktemp("guarded") / "svc.db"
    with Server(db, "--demo") as started:
        options = {"all": (), "shop": ("--project", "shop"), "slow": ("--rpm", "6")}
        yield started, {name: make_key(db, name, *more)[1] for name, more in options.items()}
