import pytest

from svc.store import ids

MARCH = 1_772_409_600_000  # 2026-03-02 in unix milliseconds


def test_an_id_is_a_prefix_and_twenty_six_digits_of_crockford():
    (ulid,) = ids.following(None, MARCH, 1)
    text = ids.text(ulid)
    assert text.startswith("dec_") and len(text) == 30
    assert set(text[4:]) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def test_the_first_ten_digits_are_the_time_of_the_published_example():
    # https://github.com/ulid/spec: 01ARYZ6S41 stands for 1469918176385
    (ulid,) = ids.following(None, 1_469_918_176_385, 1)
    assert ids.text(ulid)[4:14] == "01ARYZ6S41"


def test_a_moment_after_all_that_ids_can_name_has_their_highest_one() -> None:
    after_all = ids.earliest(999_999_999_999_999)
    assert after_all > ids.following(None, MARCH, 1)[0]
    assert ids.earliest(2**48) == after_all
    assert len(after_all) == 16


def test_ids_of_one_moment_are_all_different_and_in_order():
    texts = [ids.text(ulid) for ulid in ids.following(None, MARCH, 1_000)]
    assert texts == sorted(set(texts))


def test_a_clock_that_jumped_back_still_gives_higher_ids():
    (last,) = ids.following(None, MARCH, 1)
    following = ids.following(last, MARCH - 86_400_000, 3)
    assert [last, *following] == sorted({last, *following})


def test_two_databases_give_different_ids_at_the_same_moment():
    assert ids.following(None, MARCH, 1) != ids.following(None, MARCH, 1)


@pytest.mark.parametrize("ulid", [bytes(16), b"\xff" * 16, bytes(range(16))])
def test_an_id_leads_back_to_its_ulid(ulid):
    assert ids.parse(ids.text(ulid)) == ulid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dec_",
        "01ARYZ6S41TSV4RRFFQ69G5FAV",
        "dec_01ARYZ6S41TSV4RRFFQ69G5FA",
        "dec_01ARYZ6S41TSV4RRFFQ69G5FAVV",
        "dec_01aryz6s41tsv4rrffq69g5fav",
        "dec_81ARYZ6S41TSV4RRFFQ69G5FAV",
        "dec_01ARYZ6S41TSV4RRFFQ69G5FAU",
        "dec_01ARYZ6S41TSV4RRFFQ69G5FAV\n",
        "dec_\u06601ARYZ6S41TSV4RRFFQ69G5FAV",
    ],
)
def test_what_is_no_id_has_no_ulid(text):
    assert ids.parse(text) is None
