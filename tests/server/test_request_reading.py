from __future__ import annotations

import contextlib
import io
import socket
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData
from gunicorn.http.message import Request

from svc import limits
from svc.server import request_reading
from svc.server.request_reading import (
    BODY_PIECES,
    FRAMING_BYTES,
    HEAD_LINES,
    PIECE_BYTES,
    PIECE_PAUSE_S,
    PIECES_AT_ONCE,
    REST_PIECES,
    BodyReader,
    CallerReader,
)
from tests.clock import Clock

HEAD = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


class Line:
    """A caller's socket, and the reader at the other end of it."""

    def __init__(self) -> None:
        self.caller, self.sock = socket.socketpair()
        self.clock = Clock()
        self.pauses: list[float] = []
        self.reader = CallerReader(self.sock, self.clock, self.pauses.append)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    with made.caller, made.sock:
        yield made


def test_a_head_is_complete_at_its_empty_line_however_it_came(line: Line) -> None:
    for at in range(len(HEAD)):
        line.caller.sendall(HEAD[at : at + 1])
        assert line.reader.take_head() == (at == len(HEAD) - 1)
    assert line.reader.read(None) == HEAD


def test_more_than_a_few_small_pieces_of_a_body_are_read_with_pauses(line: Line) -> None:
    """Sixty bodies that came byte by byte as fast as that goes took a whole processor."""
    line.reader.begin_body()
    for _ in range(PIECES_AT_ONCE + 20):
        line.caller.sendall(b"x")
        assert line.reader.chunk() == b"x"
    assert line.pauses == [PIECE_PAUSE_S] * 19
    # Of large ones there are any number, and so there are in the next body.
    line.reader.begin_body()
    for _ in range(2 * PIECES_AT_ONCE):
        line.caller.sendall(b"x" * PIECE_BYTES)
        line.reader.chunk()
    assert len(line.pauses) == 19


def test_a_head_of_too_many_lines_is_refused_before_each_is_taken_apart(line: Line) -> None:
    """64 KB of lines took gunicorn's parser 4 ms, and a stranger may send 220 a second."""
    line.caller.sendall(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * HEAD_LINES + b"\r\n")
    assert line.reader.take_head()
    with pytest.raises(LimitRequestHeaders):
        Request(Config(), line.reader, ("127.0.0.1", 1))


def test_requests_that_follow_each_other_may_have_more_lines_together(line: Line) -> None:
    line.caller.sendall(HEAD * HEAD_LINES)
    for _ in range(HEAD_LINES):
        assert line.reader.take_head()
        assert Request(Config(), line.reader, ("127.0.0.1", 1)).path == "/"
        line.reader.begin_body()


def test_nobody_waits_for_a_head_that_does_not_come(line: Line) -> None:
    assert not line.reader.take_head()
    line.caller.close()
    assert line.reader.take_head()
    with pytest.raises(NoMoreData):
        line.reader.read(None)


def test_a_head_without_end_is_refused_as_soon_as_it_is_too_long(line: Line) -> None:
    line.caller.sendall(b"x" * request_reading.HEAD_BYTES)
    assert not line.reader.take_head()
    line.caller.sendall(b"x")
    assert line.reader.take_head()
    assert len(line.reader.read(None)) == request_reading.HEAD_BYTES + 1
    with pytest.raises(LimitRequestHeaders):
        line.reader.read(None)


def test_bare_line_feeds_are_given_to_the_parser_which_refuses_them(line: Line) -> None:
    line.caller.sendall(b"GET / HTTP/1.1\n\n")
    assert line.reader.take_head()


def test_a_second_request_that_was_read_with_the_first_needs_no_further_byte(line: Line) -> None:
    line.caller.sendall(HEAD + HEAD)
    assert line.reader.take_head()
    line.reader.unread(line.reader.read(None)[len(HEAD) :])
    assert line.reader.take_head()


def test_a_body_that_drips_ends_after_its_time(line: Line) -> None:
    line.reader.begin_body()
    for _ in range(int(request_reading.BODY_S)):
        line.caller.sendall(b"x")
        assert line.reader.chunk() == b"x"
        line.clock.now += 1.01
    line.caller.sendall(b"x")
    with pytest.raises(TimeoutError):
        line.reader.chunk()


def test_a_body_that_had_to_wait_for_others_has_its_time_from_then_on(line: Line) -> None:
    line.reader.begin_body()
    line.clock.now += 2 * request_reading.BODY_S
    line.caller.sendall(b"x")
    assert line.reader.chunk() == b"x"
    line.clock.now += limits.REQUEST_DEADLINE_S
    with pytest.raises(TimeoutError):
        line.reader.chunk()


def test_a_body_that_keeps_coming_has_until_the_deadline_of_the_request(line: Line) -> None:
    line.reader.begin_body()
    for _ in range(int(limits.REQUEST_DEADLINE_S)):
        line.caller.sendall(b"x" * request_reading.BODY_BYTES_PER_S)
        assert len(line.reader.chunk()) == request_reading.BODY_BYTES_PER_S
        line.clock.now += 1
    line.caller.sendall(b"x")
    with pytest.raises(TimeoutError):
        line.reader.chunk()


def test_a_thread_that_waits_for_a_body_can_be_freed_and_still_answer(line: Line) -> None:
    outcomes: list[object] = []

    def wait() -> None:
        try:
            outcomes.append(line.reader.chunk())
        except TimeoutError as error:
            outcomes.append(error)

    line.reader.begin_body()
    with line.reader.answering():
        line.caller.sendall(b"x")
        assert line.reader.chunk() == b"x"
        line.clock.now += 3
        assert line.reader.waited() == 0
        thread = threading.Thread(target=wait)
        thread.start()
        while line.reader.waited() != 3:
            pass
        line.reader.cut()
        thread.join(10)
    assert isinstance(outcomes[0], TimeoutError)
    line.sock.sendall(b"HTTP/1.1 408")
    assert line.caller.recv(100) == b"HTTP/1.1 408"


def test_a_thread_that_sends_can_be_freed(line: Line) -> None:
    line.reader.begin_body()
    with line.reader.answering():
        line.clock.now += 3
    line.clock.now += 2
    assert line.reader.waited() == 2
    line.reader.cut()
    with pytest.raises(BrokenPipeError):
        line.sock.sendall(b"x")


def test_a_response_that_takes_long_to_be_made_is_never_cut(line: Line) -> None:
    line.reader.begin_body()
    with line.reader.answering():
        line.clock.now += 1_000
        assert line.reader.waited() == 0
        line.reader.cut()
    line.sock.sendall(b"HTTP/1.1 200")
    assert line.caller.recv(100) == b"HTTP/1.1 200"


def test_a_thread_is_sending_from_the_head_on_until_the_application_is_asked(line: Line) -> None:
    line.reader.begin_body()  # gunicorn says `100 Continue` to who expects it
    line.clock.now += 2
    assert line.reader.waited() == 2


def test_a_body_has_its_own_limit_of_standing_still() -> None:
    class Still:
        given: ClassVar[list[float]] = []

        def settimeout(self, seconds: float) -> None:
            self.given.append(seconds)

        def recv(self, size: int) -> bytes:
            return b"x"

    sock: Any = Still()
    reader = CallerReader(sock)
    reader.begin_body()
    assert reader.chunk() == b"x"
    assert sock.given == [request_reading.STALL_S]


@pytest.mark.parametrize(("part", "reads"), [(2, 2), (100, request_reading.REST_READS)])
def test_a_thread_takes_in_the_rest_of_a_body_only_where_it_comes_at_once(
    line: Line, part: int, reads: int
) -> None:
    class Endless:
        reads = 0

        def read(self, size: int) -> bytes:
            line.clock.now += request_reading.REST_S / part
            line.caller.sendall(b"x")
            self.reads += 1
            return line.reader.chunk()

    line.reader.begin_body()
    body = Endless()
    assert not line.reader.take_rest(body)
    assert body.reads == reads
    assert line.reader.take_rest(io.BytesIO(b"the rest"))


@pytest.mark.parametrize(("after_the_answer", "most"), [(False, BODY_PIECES), (True, REST_PIECES)])
def test_a_body_in_too_many_small_chunks_is_not_read_to_its_end(
    line: Line, after_the_answer: bool, most: int
) -> None:
    body = chunked(line)
    line.caller.sendall(b"1\r\nx\r\n" * 10)
    assert body.read(10) == b"x" * 10
    if after_the_answer:
        body.expect_little()
    with sending(line, b"1\r\nx\r\n" * 2 * most):
        with pytest.raises(OSError, match="too many chunks"):
            while body.read(1_000):
                pass


def test_a_body_in_many_large_chunks_is_read_to_its_end(line: Line) -> None:
    body, count = chunked(line), BODY_PIECES + 10
    with sending(line, b"100\r\n" + b"x" * 256 + b"\r\n", count, b"0\r\n\r\n"):
        assert len(body.read(256 * count)) == 256 * count


@pytest.mark.parametrize(
    ("around", "end"),
    [
        (b';a="' + b"\\y" * 3_000 + b'"', b"0\r\n\r\n"),
        (b"", b"0\r\n" + b"a: b\r\n" * 20_000),
        (b"", b"0\r\n" + b"a: " + b"b" * 200_000),
    ],
    ids=["extensions", "trailers", "one trailer"],
)
def test_a_body_with_much_around_its_chunks_is_not_read_to_its_end(
    line: Line, around: bytes, end: bytes
) -> None:
    body, count = chunked(line), 100
    taken = Counted(line.sock)
    line.reader.sock = taken
    with sending(line, b"100%s\r\n" % around + b"x" * 256 + b"\r\n", count, end):
        with pytest.raises(OSError, match="too much around its chunks"):
            while body.read(1_000):
                pass
    assert taken.bytes_read < 256 * count + 2 * FRAMING_BYTES


def test_what_may_stand_around_chunks_grows_with_them(line: Line) -> None:
    body, count = chunked(line), 2 * FRAMING_BYTES // 16
    with sending(line, b"100;seen=yes\r\n" + b"x" * 256 + b"\r\n", count, b"0\r\n\r\n"):
        assert len(body.read(256 * count)) == 256 * count


def test_a_body_of_known_length_has_nothing_around_it(line: Line) -> None:
    size = 4 * FRAMING_BYTES
    line.caller.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
    body = begun(line)
    with sending(line, b"x" * size):
        assert len(body.read(size)) == size


class Counted:
    """A socket that counts what is read from it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self.bytes_read = sock, 0
        self.settimeout = sock.settimeout

    def recv(self, size: int) -> bytes:
        found = self._sock.recv(size)
        self.bytes_read += len(found)
        return found


@contextlib.contextmanager
def sending(line: Line, data: bytes, times: int = 1, end: bytes = b"") -> Iterator[None]:
    """The caller sends it meanwhile; the reader may stop before all is sent."""

    def send() -> None:
        with contextlib.suppress(OSError):
            line.caller.sendall(data * times + end)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        line.caller.shutdown(socket.SHUT_RDWR)
        thread.join()


def chunked(line: Line) -> BodyReader:
    line.caller.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    return begun(line)


def begun(line: Line) -> BodyReader:
    assert line.reader.take_head()
    request = Request(Config(), line.reader, ("127.0.0.1", 1))
    line.reader.begin_body()
    return BodyReader(request.body.reader, line.reader)


def test_a_head_that_drips_is_looked_through_once(line: Line) -> None:
    class Counted(io.BytesIO):
        bytes_read = 0

        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            self.bytes_read += len(found)
            return found

    line.reader.buf = buffer = Counted()
    line.caller.sendall(b"x" * 30_000)
    assert not line.reader.take_head()
    for _ in range(1_000):
        line.caller.sendall(b"x")
        assert not line.reader.take_head()
    assert buffer.bytes_read < 2 * 31_000
