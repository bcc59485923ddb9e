"""Pages of decisions, of which a process puts only a few together at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import g

from svc import limits
from svc.costly import CostlyWork, held
from svc.errors import NotFound
from svc.store import QuestionVersions, UnknownDecision
from svc.store.decisions import AuditPage, Decisions
from svc.web.decorators import FREE, RESTS_OF_STORED, UNNOTICED_S, paced
from svc.web.filters import Filters, FiltersSchema
from svc.web.query import QueryText, QueryWhole


class PageQuerySchema(FiltersSchema):
    limit = QueryWhole(
        *limits.AUDIT_PAGE,
        description="Decisions on the page, where they have no more than about 2 MB.",
        load_default=limits.AUDIT_PAGE_DEFAULT,
    )
    before = QueryText("Only decisions older than this one: `next_before` of a page.")


class Pages:
    """Finds pages; the routes that list decisions share it."""

    def __init__(
        self, decisions: Decisions, versions: QuestionVersions, turns: CostlyWork | None = None
    ) -> None:
        """`turns` are those of keys, by default with a pause after what is noticed."""
        self._decisions = decisions
        self.versions = versions
        # A page takes several times its bytes while it is made.
        self._making = threading.BoundedSemaphore(limits.PAGES_AT_ONCE)
        # A key that asks for many pages at once leaves room for others.
        self._turns = turns or CostlyWork(
            0, unnoticed_s=UNNOTICED_S, rests=RESTS_OF_STORED, free=FREE
        )

    @contextmanager
    def page(
        self, project: str, filters: Filters, limit: int, before: str | None
    ) -> Iterator[AuditPage]:
        """A page, as long as it is being written; one at a time for each key.

        Raises `NotFound`, `Timeout` and `StorageError`.
        """
        bounds = (limit, before, limits.PAGE_BYTES)
        key_id, deadline = g.access.key_id, g.deadline
        turn = self._turns.turn(key_id, 1, deadline)
        with paced(key_id, deadline), turn, held(self._making, deadline):
            try:
                matches = filters.matching(self.versions)
                page = self._decisions.page(project, *bounds, filters.wanted, matches)
            except UnknownDecision as error:
                raise NotFound(f"before: {error.message}") from None
            yield page
