from __future__ import annotations

import pytest

from svc.server.lane import Lane, watches

END = b" HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("path", [b"/health", b"/ready", b"/metrics", b"/metrics?name[]=x"])
def test_requests_that_look_at_the_server_are_told_by_their_head(path: bytes) -> None:
    assert watches(b"GET " + path + END + b"\r\n")
    assert watches(b"HEAD " + path + END + b"\r\n")


@pytest.mark.parametrize(
    "head",
    [
        b"POST /health" + END + b"\r\n",
        b"GET /healthy" + END + b"\r\n",
        b"GET /v1/audit" + END + b"Referer: GET /health \r\n\r\n",
        b"GET /health" + END + b"content-length: 10\r\n\r\n",
        b"GET /health" + END + b"Transfer-Encoding: chunked\r\n\r\n",
        b"",
    ],
)
def test_all_others_are_not_nor_those_with_a_body(head: bytes) -> None:
    assert not watches(head)


def test_who_finds_no_place_gets_the_first_that_is_given_back() -> None:
    lane = Lane(2)
    assert [lane.enter(name) for name in "abcd"] == [True, True, False, False]
    assert [lane.leave() for _ in range(4)] == ["c", "d", None, None]
    assert lane.enter("e")
