"""A database with hooks, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.hooks import new_secret
from svc.store import Database, HookEvents, HookKind, Hooks, NewEvent, OpenedHook
from tests.store.copies import copied

MASTER = "correct horse"


class World:
    """Hooks of one database, and their events."""

    def __init__(self, database: Database) -> None:
        self.now = 1_795_000_000.0
        self.database = database
        self.hooks = Hooks(database, MASTER, self.clock)
        self.events = HookEvents(database, self.clock)
        self.secret = new_secret()

    def clock(self) -> float:
        return self.now

    def add(
        self,
        url: str = "https://example.com/",
        *kinds: HookKind,
        private: bool = True,
        project: str = "shop",
    ) -> int:
        """A hook of a project; its row."""
        opened = OpenedHook(url, self.secret, private)
        hook_id = self.hooks.add(project, kinds or set(HookKind), "https://example.com", opened)
        return int(self.database.rows("SELECT seq FROM hooks WHERE id = ?", hook_id)[0][0])

    def happens(self, hook: int, *keys: str, subject: str = "a") -> None:
        """Something that a hook is to be told of."""
        body = '{"type": "drift"}'
        self.events.add(NewEvent(hook, key, subject, body, int(self.now * 1000)) for key in keys)

    @property
    def waiting(self) -> int:
        return sum(hook.waiting for hook in self.hooks.all())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database.open(copied(tmp_path / "svc.db"))
    yield World(database)
    database.close()
