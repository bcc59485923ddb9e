"""Hooks are kept with their secrets encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc import limits
from svc.errors import SettingsError
from svc.store.database import Database
from svc.store.errors import TooManyHooks
from svc.store.hooks import HookKind, Hooks, OpenedHook

MASTER = "correct horse"
OPENED = OpenedHook("https://example.com/services/rosebud", "whsec_cm9zZWJ1ZA==", False)
PLACE = "https://example.com"


@pytest.fixture
def hooks(database: Database) -> Hooks:
    return Hooks(database, MASTER, clock=lambda: 1_000.0)


def add(hooks: Hooks, project: str = "shop", *kinds: HookKind) -> str:
    return hooks.add(project, kinds or set(HookKind), PLACE, OPENED)


def seq_of(database: Database, hook_id: str) -> int:
    return int(database.rows("SELECT seq FROM hooks WHERE id = ?", hook_id)[0][0])


def test_a_hook_is_listed_without_secret_and_path(hooks: Hooks) -> None:
    hook_id = add(hooks, "shop", HookKind.DRIFT, HookKind.BATCH_DONE)
    (one,) = hooks.all()
    assert (one.id, one.project, one.place) == (hook_id, "shop", PLACE)
    assert one.kinds == [HookKind.BATCH_DONE, HookKind.DRIFT]
    assert (one.waiting, one.given_up, one.created_at) == (0, 0, 1_000_000)
    assert one.disabled is one.failure is one.delivered_at is None


def test_what_it_takes_to_send_comes_back(database: Database, hooks: Hooks) -> None:
    seq = seq_of(database, add(hooks))
    assert hooks.opened(seq) == OPENED
    assert Hooks(database, MASTER).opened(seq) == OPENED


@pytest.mark.parametrize("master", [None, "another horse"])
def test_without_the_right_master_key_there_is_nothing_to_send_with(
    database: Database, hooks: Hooks, master: str | None
) -> None:
    assert Hooks(database, master).opened(seq_of(database, add(hooks))) is None


def test_a_removed_hook_has_nothing_to_send_with(database: Database, hooks: Hooks) -> None:
    hook_id = add(hooks)
    seq = seq_of(database, hook_id)
    assert hooks.remove(hook_id) and not hooks.remove(hook_id)
    assert hooks.all() == [] and hooks.opened(seq) is None


def test_adding_needs_a_master_key(database: Database) -> None:
    with pytest.raises(SettingsError, match="SVC_MASTER_KEY is not set"):
        add(Hooks(database, None))
    assert Hooks(database).all() == []


def test_a_second_master_key_is_refused(database: Database, hooks: Hooks) -> None:
    add(hooks)
    with pytest.raises(SettingsError, match="not the one"):
        add(Hooks(database, "another horse"), "bank")


def test_the_file_holds_neither_secret_nor_path(
    path: Path, database: Database, hooks: Hooks
) -> None:
    add(hooks)
    database.close()
    stored = path.read_bytes()
    assert b"example.com" in stored
    assert not any(word in stored for word in (b"rosebud", b"cm9zZWJ1ZA", MASTER.encode()))
    assert "rosebud" not in repr(OPENED) and "whsec" not in repr(OPENED)


def test_a_project_has_so_many_hooks_at_most(hooks: Hooks) -> None:
    for _ in range(limits.HOOKS):
        add(hooks)
    with pytest.raises(TooManyHooks):
        add(hooks)
    assert len(hooks.all()) == limits.HOOKS
    add(hooks, "bank")


def test_what_is_wanted_is_known_by_project(hooks: Hooks) -> None:
    add(hooks, "shop", HookKind.DRIFT)
    add(hooks, "shop", HookKind.REVIEW_DUE)
    add(hooks, "bank", HookKind.DRIFT)
    both = {HookKind.DRIFT, HookKind.REVIEW_DUE}
    assert hooks.wanted() == {"shop": both, "bank": {HookKind.DRIFT}}
