"""Rows by the group that each is in."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from svc.stats.calibrators import Ints


def numbered(names: Iterable[str]) -> tuple[list[str], Ints]:
    """All distinct names, sorted, and for each of the given ones its place among them.

    An array of texts, as `numpy.unique` makes one, has room for the longest in each row.
    """
    given = list(names)
    distinct = sorted(set(given))
    places = {name: place for place, name in enumerate(distinct)}
    return distinct, np.array([places[name] for name in given], dtype=np.int64)


def by_number(groups: Ints, count: int) -> list[Ints]:
    """The places of the rows of each of `count` groups, which are numbered from 0, in order.

    They are found for all groups at once: there may be as many groups as rows.
    """
    places = np.argsort(groups, kind="stable")
    return np.split(places, np.searchsorted(groups[places], np.arange(1, count)))[:count]
