from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from svc.errors import SettingsError
from svc.server import startup
from svc.settings import ProviderOverride, Settings
from svc.store.database import Database
from svc.store.keys import ApiKeys


def test_a_public_address_needs_keys_or_no_auth(tmp_path: Path) -> None:
    database = str(tmp_path / "svc.db")
    with pytest.raises(SettingsError, match=r"0\.0\.0\.0 can be reached from other machines"):
        startup.check(Settings(db=database), ["127.0.0.1", "0.0.0.0"])
    startup.check(Settings(db=database, no_auth=True), ["0.0.0.0"])
    assert not startup.check(Settings(db=database), ["127.0.0.1"])


@pytest.mark.parametrize("revoked", [False, True])
def test_a_public_address_is_served_once_there_is_a_key(tmp_path: Path, revoked: bool) -> None:
    settings = Settings(db=str(tmp_path / "svc.db"))
    with contextlib.closing(Database.open(settings.db)) as database:
        key = ApiKeys(database).create("who", 600)
        assert key is not None
        assert not revoked or ApiKeys(database).revoke(key.id)
    startup.check(settings, ["0.0.0.0"])


def test_a_provider_without_a_url_stops_the_start(tmp_path: Path) -> None:
    settings = Settings(db=str(tmp_path / "svc.db"), providers={"own": ProviderOverride(rpm=5)})
    with pytest.raises(SettingsError, match="SVC_PROVIDER_OWN"):
        startup.check(settings, [])


def test_a_server_that_requires_keys_does_not_start_without_any(tmp_path: Path) -> None:
    settings = Settings(db=str(tmp_path / "svc.db"), require_keys=True)
    with pytest.raises(SettingsError, match=r"has no API keys, and --require-keys"):
        startup.check(settings, ["127.0.0.1"])
    with contextlib.closing(Database.open(settings.db)) as database:
        ApiKeys(database).create("who", 600)
    assert startup.check(settings, ["127.0.0.1"])
