from __future__ import annotations

import io
import os
import pty
import termios

import pytest

from svc.batch.progress import PLAIN_S, Progress, duration, rate_text
from tests.clock import Clock


def test_a_plain_line_is_shown_now_and_then() -> None:
    clock, stream = Clock(0.0), io.StringIO()
    progress = Progress(stream, 1_000, 0, drawn=False, clock=clock)
    for second in range(1, 25):
        clock.now = second
        progress.show(second * 20, 0, second * 0.01)
    progress.end()
    assert stream.getvalue().splitlines() == [
        "200 of 1,000 lines, 20/s, $0.1000, 40 s left",
        "400 of 1,000 lines, 20/s, $0.2000, 30 s left",
    ]


def test_lines_done_before_do_not_count_towards_the_rate() -> None:
    clock, stream = Clock(0.0), io.StringIO()
    progress = Progress(stream, 1_000, 800, drawn=False, clock=clock)
    clock.now = PLAIN_S
    progress.show(900, 3, 0.0)
    assert stream.getvalue() == "900 of 1,000 lines, 10/s, $0.0000, 10 s left, 3 errors\n"


def test_an_input_of_unknown_length_has_no_time_left() -> None:
    clock, stream = Clock(0.0), io.StringIO()
    progress = Progress(stream, None, 0, drawn=False, clock=clock)
    clock.now = PLAIN_S
    progress.show(5, 0, 0.0)
    assert stream.getvalue() == "5 lines, 30/min, $0.0000\n"


def test_a_bar_is_drawn_over_itself_and_gone_at_the_end() -> None:
    clock, stream = Clock(0.0), io.StringIO()
    progress = Progress(stream, 4, 0, drawn=True, clock=clock)
    clock.now = 1.0
    progress.show(1, 0, 0.0)
    progress.show(2, 0, 0.0)  # too soon
    clock.now = 2.0
    progress.show(4, 0, 0.0)
    progress.end()
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown[1].startswith("[#####...............]  25%  1 of 4 lines, 1.0/s")
    assert shown[2].startswith("[####################] 100%  4 of 4 lines, 2.0/s")
    assert shown[3] == ""


@pytest.mark.parametrize(("columns", "bar"), [(49, False), (50, True)])
def test_a_narrow_terminal_has_no_room_for_a_bar(columns: int, bar: bool) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with open(theirs, "w") as stream:
        Progress(stream, 4, 0, drawn=True).show(1, 0, 0.0)
        shown = os.read(ours, 1_000).decode().removeprefix("\r\x1b[K")
    os.close(ours)
    assert ("[" in shown) == bar and "1 of 4 lines" in shown
    assert len(shown) < columns


class Full(io.StringIO):
    def flush(self) -> None:
        raise OSError("no space left on device")


def test_a_stream_that_takes_nothing_ends_nothing() -> None:
    progress = Progress(Full(), 4, 0, drawn=True)
    progress.show(1, 0, 0.0)
    progress.end()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3_599, "59 min 59 s"), (7_500, "2 h 5 min")],
)
def test_durations_are_shown_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("rate", "text"), [(1234.4, "1,234/s"), (2.5, "2.5/s"), (0.5, "30/min")])
def test_rates_are_shown_in_the_unit_that_fits(rate: float, text: str) -> None:
    assert rate_text(rate) == text


def test_a_rate_limit_that_one_waits_for_is_told_while_no_result_comes() -> None:
    clock, stream, left = Clock(0.0), io.StringIO(), [0.0]
    progress = Progress(stream, 10, 0, drawn=False, clock=clock, waiting=lambda: left[0])
    clock.now = PLAIN_S
    progress.show(5, 0, 0.0)
    clock.now, left[0] = 2 * PLAIN_S, 8.0
    progress.refresh()
    progress.refresh()
    first, second = stream.getvalue().splitlines()
    assert first == "5 of 10 lines, 30/min, $0.0000, 10 s left"
    assert second == "5 of 10 lines, waiting for a rate limit, 15/min, $0.0000, 20 s left"


def test_a_line_of_its_own_stands_above_the_bar() -> None:
    stream = io.StringIO()
    progress = Progress(stream, 4, 0, drawn=True, clock=Clock(0.0))
    progress.tell("an error\x1b[2J")
    assert stream.getvalue() == "\r\x1b[Kan error?[2J\n"
