"""Values of an object that are worked out when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """A property that is worked out once for each object, and kept among its attributes.

    It is `functools.cached_property` as that is from Python 3.12 on. Before, one lock is held for
    all objects of a class, so that threads stand in line that work for different callers. Threads
    that ask the same object at the same time may each work it out.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | Self:
        """Called for the first time alone: afterwards the object's attribute is found first."""
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._work_out(instance)
        return value
