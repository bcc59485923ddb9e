"""Rows by the group that each is in."""

from __future__ import annotations

import numpy as np

from svc.stats.calibrators import Ints


def by_number(groups: Ints, count: int) -> list[Ints]:
    """The places of the rows of each of `count` groups, which are numbered from 0, in order.

    They are found for all groups at once: there may be as many groups as rows.
    """
    places = np.argsort(groups, kind="stable")
    return np.split(places, np.searchsorted(groups[places], np.arange(1, count)))[:count]
