from __future__ import annotations

import threading

from svc.lazy import lazy

WAIT_S = 10.0


class Slow:
    def __init__(self, name: str, met: threading.Barrier) -> None:
        self.name, self._met, self.times = name, met, 0

    @lazy
    def value(self) -> str:
        """Worked out at the same time for two objects."""
        self.times += 1
        self._met.wait(WAIT_S)
        return self.name


def test_values_of_different_objects_are_worked_out_side_by_side() -> None:
    """`functools.cached_property` holds a lock for all of them up to Python 3.11."""
    met = threading.Barrier(2)
    objects = [Slow(name, met) for name in "ab"]
    threads = [threading.Thread(target=lambda one=one: one.value) for one in objects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.value for one in objects] == ["a", "b"]


def test_a_value_is_worked_out_once() -> None:
    one = Slow("a", threading.Barrier(1))
    assert (one.value, one.value, one.times) == ("a", "a", 1)
    assert Slow.value.__doc__ == "Worked out at the same time for two objects."
