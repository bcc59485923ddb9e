import hashlib
import re
import sqlite3
import threading
from contextlib import ExitStack

import pytest

from svc.store.database import Database
from svc.store.errors import ApiKeyRefused
from svc.store.keys import ApiKeys
from svc.store.readers import READERS
from tests.store.processes import child, lines


@pytest.fixture
def keys(database):
    return ApiKeys(database, clock=lambda: 1_700_000_000.25)


def test_without_any_key_nobody_is_known_and_nobody_refused(keys):
    assert not keys.exist()
    assert keys.admit(None) is None
    assert keys.admit("svc_something") is None


def test_a_new_key_is_admitted_by_its_text(keys):
    made = keys.create("ada", 60, "shop")
    admitted = keys.admit(made.text)
    assert (admitted.id, admitted.name, admitted.rpm, admitted.project) == (
        made.id,
        "ada",
        60,
        "shop",
    )
    assert (admitted.created_at, admitted.revoked_at) == (1_700_000_000_250, None)


def test_a_key_is_admitted_while_reports_hold_every_connection_that_reads(database, keys):
    made = keys.create("ada", 60)
    with ExitStack() as reports:
        for _ in range(READERS):
            reports.enter_context(database.read())
        assert keys.admit(made.text).id == made.id


def test_a_key_has_its_prefix_and_256_random_bits(keys):
    texts = {keys.create(f"n{n}", 1).text for n in range(20)}
    assert len(texts) == 20
    assert all(re.fullmatch(r"svc_[A-Za-z0-9_-]{43}", text) for text in texts)


@pytest.mark.parametrize("text", [None, "", "svc_", "svc_unknown", "svc_\xe9", "x" * 8_000])
def test_once_there_is_a_key_anything_else_is_unauthorized(keys, text):
    keys.create("ada", 60)
    with pytest.raises(ApiKeyRefused) as error:
        keys.admit(text)
    assert not text or text not in error.value.message


def test_a_key_is_not_admitted_by_its_hash_its_id_or_another_case(keys):
    made = keys.create("ada", 60)
    digest = hashlib.sha256(made.text.encode()).hexdigest()
    for text in (digest, made.id, made.text.swapcase(), made.text[:-1], made.text + " "):
        with pytest.raises(ApiKeyRefused):
            keys.admit(text)


def test_a_revoked_key_is_refused_and_keys_stay_required(keys):
    made = keys.create("ada", 60)
    assert keys.revoke(made.id)
    assert keys.exist()
    for text in (made.text, None):
        with pytest.raises(ApiKeyRefused):
            keys.admit(text)


def test_a_key_that_is_revoked_again_keeps_its_first_moment(database):
    moments = iter([1.0, 2.0, 3.0])
    keys = ApiKeys(database, clock=lambda: next(moments))
    made = keys.create("ada", 60)
    assert keys.revoke(made.id) and keys.revoke(made.id)
    assert [key.revoked_at for key in keys.all()] == [2_000]


def test_an_unknown_id_revokes_nothing(keys):
    made = keys.create("ada", 60)
    assert not keys.revoke("key_none") and not keys.revoke("%")
    assert keys.admit(made.text).id == made.id


def test_a_name_is_taken_for_ever(keys):
    made = keys.create("ada", 60)
    assert keys.create("ada", 1) is None
    keys.revoke(made.id)
    assert keys.create("ada", 1) is None
    assert [key.rpm for key in keys.all()] == [60]


def test_of_several_who_take_a_name_at_once_one_gets_it(keys):
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(keys.create("ada", 60))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([key for key in made if key]) == 1


def test_all_lists_the_oldest_first(database):
    moments = iter([3.0, 1.0, 2.0])
    keys = ApiKeys(database, clock=lambda: next(moments))
    for name in ("c", "a", "b"):
        keys.create(name, 60)
    assert [key.name for key in keys.all()] == ["a", "b", "c"]


def test_the_file_does_not_hold_the_text_of_a_key(path, database, keys):
    text = keys.create("ada", 60).text
    database.close()
    assert text.encode() not in path.read_bytes()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT hash FROM api_keys").fetchall() == [
        (hashlib.sha256(text.encode()).digest(),)
    ]
    connection.close()


def test_what_another_process_makes_and_revokes_counts_at_once(path, database, keys):
    assert keys.admit("svc_unknown") is None
    with child("make_keys", path, "ada", "1") as process:
        (text,) = lines(process)
    admitted = keys.admit(text)
    assert admitted.name == "ada0"
    other = Database.open(path)
    other_keys = ApiKeys(other)
    assert other_keys.revoke(admitted.id)
    with pytest.raises(ApiKeyRefused):
        keys.admit(text)
    other.close()


def test_two_processes_and_this_one_write_keys_and_decisions_at_the_same_time(path):
    with (
        child("make_keys", path, "a", "40") as first,
        child("make_keys", path, "b", "40") as second,
        child("add", path, "200") as deciding,
    ):
        database = Database.open(path)
        keys = ApiKeys(database)
        own = [keys.create(f"c{n}", 60) for n in range(40)]
        made = [*lines(first), *lines(second), *(key.text for key in own)]
        assert len(lines(deciding)) == 200
        assert {keys.admit(text).rpm for text in made} == {60}
        assert len(keys.all()) == len(made) == 120
        database.close()


def test_the_text_of_a_new_key_is_not_in_its_repr(keys):
    made = keys.create("ada", 60)
    assert made.text not in repr(made)
