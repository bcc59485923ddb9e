"""The options and markers of the test run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.engines import programs
from tests.real import servers

DATA = "SVC_TEST_DATA"  # names the folder of real data
NO_DATA = f"{DATA} names no folder: tests of real data did not run"
NO_WHEEL = "builds a wheel; run with --wheel"
NO_SLOW = "watches real processes and clocks for long; run with --slow"
NO_BROWSER = "opens a browser; run with --browser"
NO_REAL = "asks real models; run with --real"
NO_ENGINES = "runs real engines; run with --engines"
NO_ENGINE = "an engine is missing, and its tests did not run"
NO_MODELS = "SVC_REAL_PYTHON names no interpreter with the models: no real model was asked"


# How long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheel", action="store_true", help="run the tests that build a wheel")
    parser.addoption("--slow", action="store_true", help="run the tests that take long, too")
    parser.addoption("--browser", action="store_true", help="run the tests in Chromium")
    parser.addoption("--real", action="store_true", help="run the tests with real models")
    parser.addoption("--engines", action="store_true", help="run the tests on Ray and Spark")


def pytest_configure() -> None:
    """Ctrl-C reaches the processes that tests start, also when a script runs them with `&`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("wheel") and not config.getoption("--wheel"):
            item.add_marker(pytest.mark.skip(reason=NO_WHEEL))
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason=NO_SLOW))
        if item.get_closest_marker("browser") and not config.getoption("--browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
        if item.get_closest_marker("real") and not config.getoption("--real"):
            item.add_marker(pytest.mark.skip(reason=NO_REAL))
        elif item.get_closest_marker("real") and servers.python() is None:
            item.add_marker(pytest.mark.skip(reason=NO_MODELS))
        if engines := item.get_closest_marker("engines"):
            _skip_without_engine(item, engines.args[0], chosen=config.getoption("--engines"))
        if item.get_closest_marker("data") and not has_data():
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


def _skip_without_engine(item: pytest.Item, engine: str, chosen: bool) -> None:
    if not chosen:
        item.add_marker(pytest.mark.skip(reason=NO_ENGINES))
    elif missing := programs.missing(engine):
        item.add_marker(pytest.mark.skip(reason=f"{NO_ENGINE}: {missing}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tried."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for loud in (NO_DATA, NO_MODELS, NO_ENGINE):
        if count := sum(loud in reason for reason in skipped):
            terminalreporter.write_sep("!", f"{loud} ({count})", yellow=True, bold=True)


def has_data() -> bool:
    folder = os.environ.get(DATA)
    return bool(folder) and Path(folder).is_dir()


@pytest.fixture
def frozen_heap() -> Iterator[None]:
    """Time that is measured has no collections of what other tests left in this process.

    A server's process freezes its heap as well, before it begins workers.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
