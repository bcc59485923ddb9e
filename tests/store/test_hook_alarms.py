"""What lasts is told once, from its beginning to its end."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from svc.store.database import Database
from svc.store.hook_alarms import SAME_FOR_MS, Alarm, HookAlarms, Place
from svc.store.hook_events import HookEvents
from svc.store.hooks import PROMISE_KEPT, HookKind, Hooks, OpenedHook

HOUR_S = SAME_FOR_MS / 1000
PLACE = Place("question team", "drift 1")
OPENED = OpenedHook("https://example.com/", "whsec_", False)


class World:
    def __init__(self, database: Database) -> None:
        self.now = 10_000.0
        self.database = database
        self.hooks = Hooks(database, "master", self.clock)
        self.alarms = HookAlarms(database, self.shape, self.clock)
        self.events = HookEvents(database, self.clock)

    def clock(self) -> float:
        return self.now

    @staticmethod
    def shape(alarm: Alarm) -> str:
        return f"{alarm.since} {alarm.data}"

    def add_hook(self, *kinds: HookKind) -> None:
        self.hooks.add("shop", kinds or set(HookKind), "https://example.com", OPENED)

    def drifts(self, does: bool = True) -> None:
        self.alarms.note("shop", {HookKind.DRIFT: {PLACE: {"n": 1}} if does else {}})

    @property
    def told(self) -> list[str]:
        rows = self.database.rows("SELECT body FROM hook_events ORDER BY seq")
        return [row[0] for row in rows]


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_what_goes_on_is_told_once(world: World) -> None:
    world.add_hook()
    for _ in range(3):
        world.drifts()
        world.now += HOUR_S
    assert world.told == ['10000000 {"n": 1}']


def test_what_ended_and_comes_again_after_an_hour_is_another(world: World) -> None:
    world.add_hook()
    world.drifts()
    world.now += HOUR_S
    world.drifts(False)
    world.drifts()
    assert len(world.told) == 2


def test_what_comes_again_within_the_hour_is_the_same(world: World) -> None:
    world.add_hook()
    world.drifts()
    for _ in range(5):
        world.now += 60
        world.drifts(False)
        world.now += 60
        world.drifts()
    assert len(world.told) == 1


def test_what_stopped_for_a_moment_goes_on_after_the_hour_as_the_same(world: World) -> None:
    world.add_hook()
    for does in (True, False, True):
        world.drifts(does)
        world.now += 60
    world.now += HOUR_S
    world.drifts()
    assert len(world.told) == 1


def test_what_ended_within_the_hour_and_comes_again_after_it_is_another(world: World) -> None:
    world.add_hook()
    world.drifts()
    world.now += 60
    world.drifts(False)
    world.now += HOUR_S
    world.drifts()
    assert len(world.told) == 2


def test_a_hook_that_is_added_later_hears_of_what_goes_on_and_not_of_what_ended(
    world: World,
) -> None:
    world.drifts()
    other = {Place("question team", "drift 2"): {"n": 2}}
    world.alarms.note("shop", {HookKind.DRIFT: {PLACE: {"n": 1}, **other}})
    world.drifts()
    world.add_hook()
    world.add_hook(HookKind.BATCH_DONE)
    world.alarms.tell()
    world.alarms.tell()
    assert world.told == ['10000000 {"n": 1}']


def test_events_that_are_forgotten_do_not_come_again_while_it_goes_on(world: World) -> None:
    world.add_hook()
    world.drifts()
    world.events.delivered(world.events.due()[0])
    world.now += 400 * 86_400
    world.events.forget_old()
    world.drifts()
    world.alarms.tell()
    assert len(world.told) == 1


def test_what_is_told_stands_in_the_same_transaction_as_the_alarm(world: World) -> None:
    def fails(alarm: Alarm) -> str:
        raise ValueError

    world.add_hook()
    broken = HookAlarms(world.database, fails, world.clock)
    with pytest.raises(ValueError):
        broken.note("shop", {HookKind.DRIFT: {PLACE: {}}})
    assert world.alarms.known("shop", HookKind.DRIFT) == set()
    world.drifts()
    assert len(world.told) == 1


def test_projects_and_kinds_do_not_mix(world: World) -> None:
    world.add_hook()
    world.drifts()
    world.alarms.note("bank", {HookKind.DRIFT: {}})
    world.alarms.note("shop", {HookKind.REVIEW_DUE: {}})
    assert world.alarms.known("shop", HookKind.DRIFT) == {PLACE}


def test_a_look_of_a_day_is_noted_also_where_nothing_was_found(world: World) -> None:
    assert not world.alarms.looked("shop", "2026-11-23")
    world.alarms.note("shop", {HookKind.DRIFT: {}}, "2026-11-23")
    assert world.alarms.looked("shop", "2026-11-23")
    assert not world.alarms.looked("shop", "2026-11-24")
    assert not world.alarms.looked("bank", "2026-11-23")


def test_without_a_change_nothing_is_written(world: World, path: Path) -> None:
    world.add_hook()
    world.drifts()
    with closing(sqlite3.connect(path)) as connection:

        def version() -> int:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])

        before = version()
        world.drifts()
        world.alarms.tell()
        assert version() == before
        world.drifts(False)
        assert version() != before


def test_what_went_on_is_forgotten_once_no_hook_is_told_of_it(world: World) -> None:
    world.add_hook(HookKind.DRIFT, HookKind.PROMISE_BROKEN)
    world.add_hook(HookKind.PROMISE_BROKEN)
    world.drifts()
    world.alarms.note("shop", {PROMISE_KEPT: {PLACE: {}}})
    world.hooks.remove(world.hooks.all()[0].id)
    assert world.alarms.known("shop", HookKind.DRIFT) == set()
    assert world.alarms.known("shop", PROMISE_KEPT) == {PLACE}
    world.hooks.remove(world.hooks.all()[0].id)
    assert world.alarms.known("shop", PROMISE_KEPT) == set()
