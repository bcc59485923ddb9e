from svc.engine.call_bytes import CallBytes

MB = 1024 * 1024


def test_a_caller_has_its_share_and_all_have_the_whole() -> None:
    room = CallBytes(most=10 * MB, most_of_caller=4 * MB)
    assert room.take("a", 3 * MB)
    assert not room.take("a", 2 * MB)
    assert room.take("b", 4 * MB)
    assert room.take(None, 3 * MB)
    assert not room.take("c", MB)
    room.give_back("b", 4 * MB)
    assert room.take("c", MB)


def test_small_calls_are_not_counted() -> None:
    room = CallBytes(most=MB, most_of_caller=MB)
    assert all(room.take("a", 1_000) for _ in range(10_000))
    assert room.take("a", MB)


def test_a_call_larger_than_the_bounds_goes_alone() -> None:
    room = CallBytes(most=10 * MB, most_of_caller=4 * MB)
    assert room.take("a", 12 * MB)
    assert not room.take("b", MB)
    room.give_back("a", 12 * MB)
    assert room.take("b", MB)
