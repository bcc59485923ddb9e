from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from svc.logs import FIELDS, JsonFormatter, TextFormatter, configure

FORGED = "/a\n2026-01-01 ERROR forged\r\x1b[31m\u2028\x85\x00\ud800"
FORMATTERS = [TextFormatter(), JsonFormatter()]


def record(message: str, *args: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("svc.x", logging.INFO, "f.py", 1, message, args, None)
    made.__dict__[FIELDS] = fields
    return made


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_nothing_that_is_logged_can_begin_a_line_of_its_own(formatter: logging.Formatter) -> None:
    line = formatter.format(record("said %s", FORGED, path=FORGED))
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert line.count("forged") == 2


def test_a_blank_in_a_value_cannot_begin_a_field_of_its_own() -> None:
    line = TextFormatter().format(record("request", path='/a status=500 "x', status=404))
    assert line.endswith(r' path="/a status=500 \"x" status=404')


def test_a_text_line_has_time_level_logger_message_and_fields() -> None:
    line = TextFormatter().format(record("hello %d", 5, method="GET", status=200))
    time, rest = line.split(" ", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)
    assert rest == "INFO svc.x: hello 5 method=GET status=200"


def test_a_json_line_is_one_object() -> None:
    parsed = json.loads(JsonFormatter().format(record("hello %d", 5, method="GET", status=200)))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", parsed.pop("time"))
    assert parsed == {
        "level": "INFO",
        "logger": "svc.x",
        "message": "hello 5",
        "method": "GET",
        "status": 200,
    }


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_of_an_exception_type_and_place_are_logged_but_never_its_words(
    formatter: logging.Formatter,
) -> None:
    made = record("failed")
    try:
        try:
            int("a wombat")
        except ValueError:
            raise KeyError("a tungsten wombat") from None
    except KeyError:
        made.exc_info = sys.exc_info()
    line = formatter.format(made)
    assert "KeyError" in line and "test_logs.py:" in line
    assert "wombat" not in line


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back as it was afterwards."""
    loggers = [logging.getLogger(), logging.getLogger("urllib3")]
    before = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    yield loggers[0]
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def test_configure_sends_everything_to_standard_error_once(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(True, "warning")
    configure(False, "warning")
    logging.getLogger("any.where").warning("seen")
    logging.getLogger("any.where").info("not seen")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("seen") == 1 and " WARNING any.where: seen\n" in told.err


def test_libraries_that_quote_addresses_stay_silent_at_debug(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(False, "debug")
    logging.getLogger("urllib3.connectionpool").debug("http://host/?key=secret")
    logging.getLogger("urllib3.connectionpool").warning("http://host/?key=secret")
    logging.getLogger("svc.any").debug("seen")
    assert capsys.readouterr().err.count("\n") == 1
