"""Long replies wait for room, and are read one after the other."""

from __future__ import annotations

import gzip
import threading
import time
from contextlib import ExitStack

import pytest

from svc import limits
from svc.deadline import Deadline, Effort, ModelsAllowance
from svc.providers.failures import BadReply, CallTimedOut, Unread
from svc.providers.long_replies import TOO_MUCH, LongReplies
from svc.providers.transport import TooMuch, unpacked
from svc.records import Model
from tests.busy import use_processor

LONG = b"[" + b"1," * limits.REPLY_PARTS_ALWAYS_READ + b"1]"
SHORT = b'{"a": 1}'


def model(provider: str) -> Model:
    return Model(f"@{provider}/m", provider, "m")


M, HONEST = model("there"), model("honest")


def deadline(caller: str | None = "one", seconds: float = 60.0) -> Deadline:
    made = Deadline(seconds)
    made.effort.caller = caller
    return made


def test_long_replies_are_read_one_after_the_other_and_short_ones_at_once() -> None:
    long = LongReplies()
    with long.reading(LONG, M, deadline()):
        for other in ("one", "other", None):
            with long.reading(SHORT, M, deadline(other)):
                pass
            with pytest.raises(CallTimedOut), long.reading(LONG, M, deadline(other, 0.05)):
                pass
    with long.reading(LONG, M, deadline("other")):
        pass


def test_who_waits_to_read_hears_that_nobody_wants_it_any_more() -> None:
    long, left = LongReplies(), deadline("other")
    with long.reading(LONG, M, deadline()):
        threading.Timer(0.05, left.cancel).start()
        with pytest.raises(CallTimedOut), long.reading(LONG, M, left):
            pass


def test_the_bytes_of_a_reply_count_once() -> None:
    """Those beyond the first were taken while they came in."""
    parts = 10 * limits.REPLY_PARTS_ALWAYS_READ
    body = b'"' + b"x" * (parts * limits.REPLY_BYTES_A_PART - 2) + b'"'
    long, asked = LongReplies(), Deadline(60.0, effort=Effort(ModelsAllowance(2 * parts, parts)))
    with long.coming(M, asked) as coming:
        assert coming.take(lambda: True, len(body) * 9 // 10)
        with long.reading(body, M, asked):
            pass
    assert not asked.effort.parts.take(M.id, 1)


@pytest.mark.parametrize("parts", [(limits.REPLY_PARTS_ALWAYS_READ, 10**6), (10**6, 10)])
def test_what_a_request_may_read_bounds_it_too(parts: tuple[int, int]) -> None:
    asked = Deadline(60.0, effort=Effort(ModelsAllowance(*parts)))
    with pytest.raises(BadReply, match=TOO_MUCH), LongReplies().reading(LONG, M, asked):
        pass


def test_a_reply_of_far_too_many_parts_is_not_read() -> None:
    body = b"[" + b"[]," * limits.REPLY_PARTS + b"1]"
    with pytest.raises(Unread, match=TOO_MUCH), LongReplies().reading(body, M, deadline()):
        pass


@pytest.mark.parametrize("separator", [b"2c", b"2C", b"5b", b"5B", b"7b", b"7B"])
def test_commas_and_brackets_that_are_written_as_escapes_count(separator: bytes) -> None:
    """A reply's text is JSON itself, in which they separate members."""
    count = 2 * limits.REPLY_PARTS_ALWAYS_READ
    asked = Deadline(60.0, effort=Effort(ModelsAllowance(count, count)))
    body = b'{"content": "' + b"\\u00%b" % separator * count + b'"}'
    with pytest.raises(BadReply, match=TOO_MUCH), LongReplies().reading(body, M, asked):
        pass


def test_a_model_that_lies_leaves_enough_for_those_asked_after_it() -> None:
    parts = 2 * limits.REPLY_PARTS_ALWAYS_READ
    long, asked = LongReplies(), Deadline(60.0, effort=Effort(ModelsAllowance(2 * parts, parts)))
    with long.coming(M, asked) as lying:
        assert lying.take(lambda: True, parts * limits.REPLY_BYTES_A_PART)
        assert not lying.take(lambda: True, limits.REPLY_BYTES_A_PART)
    with long.reading(LONG, HONEST, asked):
        pass


def no_time_left() -> Deadline:
    return Deadline(60.0, effort=Effort(replies_s=ModelsAllowance(0.0, 0.0)))


def test_where_no_time_is_left_short_replies_are_read_alone() -> None:
    long, asked = LongReplies(), no_time_left()
    with long.reading(SHORT, M, asked):
        pass
    with pytest.raises(Unread, match="longer"), long.reading(LONG, M, asked):
        pass
    with pytest.raises(Unread, match="longer"), long.coming(M, asked) as coming:
        coming.take(lambda: True, 1)


def test_what_a_reply_takes_counts_while_it_comes_in() -> None:
    """Many that drip at the same time are not all received before any of them counts."""
    asked = Deadline(60.0, effort=Effort(replies_s=ModelsAllowance(0.05)))
    with LongReplies().coming(M, asked) as coming:
        coming.meter.go_on()
        assert coming.take(lambda: True, 1)
        assert asked.effort.replies_s.has_left(M.id)
        use_processor(0.05)
        with pytest.raises(Unread, match="longer"):
            coming.take(lambda: True, 1)


def test_a_reply_whose_turn_comes_once_the_time_is_used_up_is_not_read() -> None:
    long, asked = LongReplies(), deadline()
    ended: list[type[Exception]] = []

    def read() -> None:
        try:
            with long.reading(LONG, M, asked):
                pass
        except Unread as error:
            ended.append(type(error))

    waiting = threading.Thread(target=read)
    with long.reading(LONG, M, asked):
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        asked.effort.replies_s.use(M.id, limits.REPLIES_PROCESSOR_S)
    waiting.join(30)
    assert ended == [Unread]


def test_replies_of_one_model_leave_time_to_those_of_others() -> None:
    asked = Deadline(60.0)
    asked.effort.share(2)
    asked.effort.replies_s.use(M.id, limits.REPLIES_PROCESSOR_S / 2)
    assert not asked.effort.replies_s.has_left(M.id)
    with LongReplies().reading(LONG, HONEST, asked):
        pass
    asked.effort.replies_s.use(HONEST.id, limits.REPLIES_PROCESSOR_S)
    assert not asked.effort.replies_s.has_left("another")


def test_replies_of_one_model_leave_what_is_read_to_those_of_others() -> None:
    asked, most = Deadline(60.0), limits.REPLIES_PARTS
    asked.effort.share(3)
    assert not any(asked.effort.parts.take(name, most // 3 + 1) for name in ("a", "b", "c"))
    assert all(asked.effort.parts.take(name, most // 3) for name in ("a", "b", "c"))
    assert Deadline(60.0).effort.parts.take("alone", most)


def test_no_more_is_kept_than_the_models_of_a_request_have_together() -> None:
    long, asked, most = LongReplies(), Deadline(60.0), limits.REPLIES_KEPT
    asked.effort.share(2)
    with long.coming(M, asked) as first, long.coming(HONEST, asked) as second:
        first.keep(most // 2)
        with pytest.raises(Unread):
            first.keep(limits.REPLY_KEPT_ALWAYS + 1)
        first.keep(limits.REPLY_KEPT_ALWAYS)
        second.keep(most // 2)


def test_a_reply_that_is_there_already_takes_its_bytes_and_no_time() -> None:
    """A row of a job is replayed in each round, and each has to come to the same."""
    parts = limits.REPLY_PARTS_ALWAYS_READ
    effort = Effort(ModelsAllowance(3 * parts), replies_s=ModelsAllowance(0.02))
    long, asked = LongReplies(), Deadline(60.0, effort=effort)
    with long.coming(M, asked) as there:
        there.take_whole(3 * parts * limits.REPLY_BYTES_A_PART)
        use_processor(0.1)
    assert effort.replies_s.has_left(M.id)
    with long.coming(M, asked) as more, pytest.raises(Unread):
        more.take_whole(3 * parts * limits.REPLY_BYTES_A_PART)
    with long.coming(M, asked) as short:
        short.take_whole(parts * limits.REPLY_BYTES_A_PART)


def test_what_a_model_takes_beyond_its_part_leaves_the_parts_of_others() -> None:
    effort = Effort()
    effort.share(2)
    effort.replies_s.use(M.id, 10 * limits.REPLIES_PROCESSOR_S)
    assert not effort.replies_s.has_left(M.id) and effort.replies_s.has_left(HONEST.id)
    effort.replies_s.use(HONEST.id, limits.REPLIES_PROCESSOR_S / 2)
    assert not effort.replies_s.has_left(HONEST.id)
    assert not effort.replies_s.has_left("another")


def test_a_provider_whose_replies_drip_leaves_room_to_others() -> None:
    long = LongReplies(room_bytes=8 * limits.REPLY_BYTES)
    with ExitStack() as there:
        for caller in ("one", "two", "three", "four"):
            assert there.enter_context(long.coming(M, deadline(caller))).take(lambda: True, 1)
        fifth = there.enter_context(long.coming(M, deadline("five", 0.05)))
        assert not fifth.take(lambda: True, 1)
        other = there.enter_context(long.coming(HONEST, deadline("five")))
        assert other.take(lambda: True, 1)


def test_a_long_reply_waits_for_room_while_it_comes_in() -> None:
    long = LongReplies(room_bytes=4 * limits.REPLY_BYTES)
    with ExitStack() as there:
        for name in ("one", "two", "three", None):
            one = there.enter_context(long.coming(model(str(name)), deadline(name)))
            # It has the room for all that a reply may hold, once.
            assert one.take(lambda: True, 100) and one.take(lambda: True, 100)
        with long.coming(M, deadline("c", 0.05)) as late:
            assert not late.take(lambda: True, 100)
        with long.coming(M, deadline("c")) as unwanted:
            assert not unwanted.take(lambda: False, 100)
        with long.coming(M, deadline("c")) as waiting:
            looks = iter([True, True])
            assert not waiting.take(lambda: next(looks, False), 100)
            there.close()
            assert waiting.take(lambda: True, 100)


def test_one_caller_leaves_room_to_others() -> None:
    long = LongReplies(room_bytes=8 * limits.REPLY_BYTES)
    with ExitStack() as there:
        for n in range(4):
            nth = there.enter_context(long.coming(model(f"p{n}"), deadline()))
            assert nth.take(lambda: True, 1)
        fifth = there.enter_context(long.coming(M, deadline("one", 0.05)))
        assert not fifth.take(lambda: True, 1)
        assert there.enter_context(long.coming(M, deadline("other"))).take(lambda: True, 1)


@pytest.mark.parametrize("beyond", [-1, 1])
def test_what_becomes_long_as_it_is_unpacked_waits_for_room(beyond: int) -> None:
    size = limits.REPLY_BYTES_ALWAYS_READ + beyond
    asked: list[int] = []

    def take(more: int) -> bool:
        asked.append(more)
        return True

    assert unpacked(gzip.compress(b"x" * size), "gzip", take) == b"x" * size
    assert bool(asked) == (size >= limits.REPLY_BYTES_ALWAYS_READ)
    if asked:
        with pytest.raises(TooMuch):
            unpacked(gzip.compress(b"x" * size), "gzip", lambda _: False)


def test_after_one_that_took_long_its_caller_waits_and_others_do_not() -> None:
    long, began = LongReplies(), time.monotonic()
    with long.reading(LONG, M, deadline()):
        use_processor(0.1)
    with long.reading(LONG, M, deadline("other")):
        pass
    with pytest.raises(CallTimedOut), long.reading(LONG, M, deadline("one", 0.05)):
        pass
    assert time.monotonic() - began < 30.0
