"""The options and markers of the test run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

DATA = "SVC_TEST_DATA"  # names the folder of real data
NO_DATA = f"{DATA} names no folder: tests of real data did not run"
NO_WHEEL = "builds a wheel; run with --wheel"
NO_BROWSER = "opens a browser; run with --browser"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheel", action="store_true", help="run the tests that build a wheel")
    parser.addoption("--browser", action="store_true", help="run the tests in Chromium")


def pytest_configure() -> None:
    """Ctrl-C reaches the processes that tests start, also when a script runs them with `&`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("wheel") and not config.getoption("--wheel"):
            item.add_marker(pytest.mark.skip(reason=NO_WHEEL))
        if item.get_closest_marker("browser") and not config.getoption("--browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
        if item.get_closest_marker("data") and not has_data():
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tried."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    if count := sum(NO_DATA in reason for reason in skipped):
        terminalreporter.write_sep("!", f"{NO_DATA} ({count})", yellow=True, bold=True)


def has_data() -> bool:
    folder = os.environ.get(DATA)
    return bool(folder) and Path(folder).is_dir()
