"""Raw readings as labels have them stored, now and by earlier versions."""

from __future__ import annotations

import json

import pytest

from svc.store.readings import packed, packed_members, unpacked, unpacked_members

P = [0.1234567, 0.0, 1.0, 5e-324]
MEMBERS = {"@a/m": P, "@lost/m": None, "@none/m": [], "@b\n/ü": [0.25, 0.75]}


def test_numbers_come_back_as_they_were() -> None:
    assert list(unpacked(packed(P))) == P


def test_numbers_take_eight_bytes_each_the_lowest_first() -> None:
    assert packed([1.0]) == bytes.fromhex("000000000000f03f")


def test_what_members_said_comes_back_by_model() -> None:
    found = unpacked_members(packed_members(MEMBERS)) or {}
    assert {model: p if p is None else list(p) for model, p in found.items()} == MEMBERS
    assert unpacked_members(None) is None


def test_json_of_an_earlier_version_is_read_too() -> None:
    assert list(unpacked(json.dumps(P))) == P
    found = unpacked_members(json.dumps(MEMBERS)) or {}
    assert {model: p if p is None else list(p) for model, p in found.items()} == MEMBERS


@pytest.mark.parametrize("damaged", [b"1234567", "[1, 2"])
def test_damaged_numbers_are_no_reading(damaged: bytes | str) -> None:
    with pytest.raises(ValueError):
        unpacked(damaged)
