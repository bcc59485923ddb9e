import pytest

from svc.errors import SettingsError
from svc.store.database import Database
from svc.store.errors import UnreadableKey
from svc.store.project_keys import ProjectKeys

MASTER, KEY = "correct horse", "sk-or-tungsten"


@pytest.fixture
def keys(database):
    return ProjectKeys(database, MASTER)


def test_a_key_comes_back_for_its_project_alone(keys):
    keys.set("shop", KEY)
    assert keys.get("shop") == KEY
    assert keys.get("Shop") is None
    assert keys.get("default") is None


def test_a_key_outlasts_a_restart_with_the_same_master_key(path, database, keys):
    keys.set("shop", KEY)
    database.close()
    again = Database.open(path)
    assert ProjectKeys(again, MASTER).get("shop") == KEY
    again.close()


def test_a_key_that_is_set_again_is_the_new_one(keys):
    keys.set("shop", KEY)
    keys.set("shop", "other")
    assert keys.get("shop") == "other"


def test_a_removed_key_is_gone(keys):
    keys.set("shop", KEY)
    assert keys.remove("shop")
    assert not keys.remove("shop")
    assert keys.get("shop") is None


def test_a_key_is_removed_without_the_master_key(database, keys):
    keys.set("shop", KEY)
    assert ProjectKeys(database, None).remove("shop")


@pytest.mark.parametrize("master", [None, "another horse"])
def test_a_key_that_cannot_be_decrypted_is_invalid_and_none_takes_its_place(database, keys, master):
    keys.set("shop", KEY)
    with pytest.raises(UnreadableKey, match="SVC_MASTER_KEY") as error:
        ProjectKeys(database, master).get("shop")
    assert KEY not in error.value.message and MASTER not in error.value.message
    assert ProjectKeys(database, master).get("default") is None


def test_a_damaged_token_cannot_be_decrypted(database, keys):
    keys.set("shop", KEY)
    database.write(lambda c: c.execute("UPDATE project_keys SET token = x'00ff'").rowcount)
    with pytest.raises(UnreadableKey):
        keys.get("shop")


@pytest.mark.parametrize("master", [MASTER, None])
def test_without_its_salt_a_key_is_invalid_and_none_takes_its_place(database, keys, master):
    keys.set("shop", KEY)
    statement = "DELETE FROM meta WHERE name = 'project_keys_salt'"
    database.write(lambda c: c.execute(statement).rowcount)
    with pytest.raises(UnreadableKey, match="salt"):
        ProjectKeys(database, master).get("shop")
    assert ProjectKeys(database, master).get("default") is None
    assert keys.remove("shop")
    keys.set("shop", KEY)
    assert keys.get("shop") == KEY


def test_setting_needs_a_master_key(database):
    with pytest.raises(SettingsError, match="SVC_MASTER_KEY is not set"):
        ProjectKeys(database, None).set("shop", KEY)


def test_a_second_master_key_is_refused_while_another_project_needs_the_first(database, keys):
    keys.set("shop", KEY)
    other = ProjectKeys(database, "another horse")
    with pytest.raises(SettingsError, match="not the one"):
        other.set("bank", KEY)
    other.set("shop", "new")  # nobody else needs the first
    assert other.get("shop") == "new"


def test_the_file_holds_neither_key(path, database, keys):
    keys.set("shop", KEY)
    database.close()
    stored = path.read_bytes()
    assert KEY.encode() not in stored and MASTER.encode() not in stored


def test_two_databases_encrypt_the_same_key_with_different_salts(tmp_path, database, keys):
    keys.set("shop", KEY)
    other = Database.open(tmp_path / "other.db")
    ProjectKeys(other, MASTER).set("shop", KEY)
    salts = {
        salt
        for each in (database, other)
        for (salt,) in rows(each, "SELECT value FROM meta WHERE name = 'project_keys_salt'")
    }
    assert len(salts) == 2
    other.close()


def rows(database, statement):
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(statement)]


def test_a_master_key_of_any_bytes_works(database):
    keys = ProjectKeys(database, "\udcff é \n")
    keys.set("shop", KEY)
    assert keys.get("shop") == KEY


def test_no_secret_is_in_a_repr(keys):
    assert MASTER not in repr(vars(keys)) and MASTER not in repr(keys)
