from __future__ import annotations

import errno
import os

from svc.phrases import NAMES, address, listed, quoted, reason


def test_a_name_is_quoted_and_a_long_one_is_cut() -> None:
    assert quoted("a") == '"a"'
    assert len(quoted("k" * 500)) == 62
    assert quoted("abcd", limit=3) == '"ab…"'


def test_a_name_cannot_break_the_line_of_its_message() -> None:
    assert quoted("a\n\x1b[31mb") == '"a��[31mb"'


def test_of_many_names_the_first_ones_are_listed() -> None:
    assert listed(["a", "b"]) == '"a", "b"'
    names = [str(number) for number in range(NAMES + 1)]
    assert listed(names[:NAMES]).endswith('"19"')
    assert listed(names).endswith('"19", …')


def test_a_systems_reason_is_in_lower_case() -> None:
    assert reason(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) == "no space left on device"
    assert reason(TimeoutError("timed out")) == "timed out"
    assert reason(ConnectionResetError()) == "the system did not say why"


def test_a_url_is_shown_without_what_may_be_a_secret() -> None:
    assert address("https://shop.example/svc") == "https://shop.example/svc"
    assert address("http://ann:hun@ter2@shop.example/svc") == "…@shop.example/svc"
    assert address("http://shop.example/?token=a#b") == "http://shop.example/"
