import threading

from svc.providers.quirks import NO_LOGPROBS, Quirks


def test_nothing_is_known_at_first():
    quirks = Quirks()
    assert quirks.of("m") == frozenset()
    assert quirks.has_logprobs("m")


def test_refusals_add_up_per_model():
    quirks = Quirks()
    quirks.refuse("m", "temperature")
    quirks.refuse("m", NO_LOGPROBS)
    assert quirks.of("m") == {"temperature", NO_LOGPROBS}
    assert not quirks.has_logprobs("m")
    assert quirks.of("@p/m") == frozenset()


def test_the_memory_is_bounded_and_forgets_the_oldest_lesson():
    quirks = Quirks(models=2)
    for model in ("a", "b", "a", "c"):
        quirks.refuse(model, f"seed-of-{model}")
    assert [bool(quirks.of(model)) for model in ("a", "b", "c")] == [True, False, True]


def test_lessons_of_many_threads_are_all_kept():
    quirks = Quirks()
    threads = [
        threading.Thread(target=lambda n=n: [quirks.refuse("m", f"{n}.{i}") for i in range(200)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(quirks.of("m")) == 800
