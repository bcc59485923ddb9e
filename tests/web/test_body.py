from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from svc import limits
from svc.web.body import SMALL_BYTES, size_of_work, unpacked
from tests.scripted import Behaviour, Json
from tests.web.conftest import Start
from tests.web.models import decision, replying
from tests.web.shape import assert_error

GOOD = json.dumps(decision()).encode()
MB = 1024 * 1024


def packed(body: bytes) -> bytes:
    """The body by gzip, without the time, so that every process collects the same tests."""
    return gzip.compress(body, mtime=0)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/x-www-form-urlencoded",
        "text/plain",
        "multipart/form-data",
        "application/json; charset=latin-1",
        "nonsense",
        None,
    ],
)
def test_any_content_type_is_read_as_json(start: Start, content_type: str | None) -> None:
    client = start().test_client()
    response = client.post("/v1/decide", data=GOOD, content_type=content_type)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"{", "line 1, column 2"),
        (b'{"state": 1,}', "not JSON"),
        (b'{"state": NaN, "questions": {}}', "NaN"),
        (b'{"state": -Infinity, "questions": {}}', "Infinity"),
        (b'{"state": "\xff", "questions": {}}', "UTF-8"),
        (b'{"state": "\\ud800", "questions": {}}', "surrogate"),
        (b'{"state": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b"[]", "object"),
        (b"null", "object"),
        (b'"text"', "object"),
        (GOOD + b"x", "not JSON"),
    ],
)
def test_a_body_that_is_no_json_object_is_400_and_says_why(
    start: Start, body: bytes, words: str
) -> None:
    response = start().test_client().post("/v1/decide", data=body)
    assert words in assert_error(response, 400, "invalid_json")


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"mode": "quick"}, 400, "quick"),
        ({"mode": 1}, 400, "mode"),
        ({"questions": {"q": {"type": "poem", "instructions": "?"}}}, 400, "poem"),
        ({"questions": {"q": {"instructions": "?"}}}, 422, "type"),
        ({"questions": []}, 422, "questions"),
        ({"questions": {}}, 422, "questions"),
        ({"questions": {"q": 1}}, 422, "q"),
        ({"think": "yes"}, 422, "think"),
        ({"model": 1}, 422, "model"),
        ({"project": None}, 422, "project"),
        ({"images": "https://a/b.png"}, 422, "images"),
        ({"min_confidence": 1}, 422, "min_confidence"),
        ({"state": "x" * 150_001}, 422, "150,001"),
    ],
)
def test_a_field_of_a_wrong_kind_is_named(
    start: Start, fields: dict[str, Any], status: int, words: str
) -> None:
    response = start().test_client().post("/v1/decide", json=decision(**fields))
    type_ = "invalid_json" if status == 400 else "invalid_request"
    assert words in assert_error(response, status, type_)


def test_a_state_of_the_largest_size_is_taken(start: Start) -> None:
    response = start().test_client().post("/v1/decide", json=decision("x" * 150_000))
    assert response.status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip", " deflate", "identity", ""])
def test_a_compressed_body_is_read(start: Start, encoding: str) -> None:
    packers = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}
    pack = packers.get(encoding.strip().lower(), bytes)
    response = (
        start()
        .test_client()
        .post("/v1/decide", data=pack(GOOD), headers={"Content-Encoding": encoding})
    )
    assert response.status_code == 200, response.text


def test_a_body_may_be_of_many_gzip_members(start: Start) -> None:
    parts = [GOOD[:10], GOOD[10:], *[b" "] * (limits.GZIP_MEMBERS - 3), b" " * 1_000_000]
    response = (
        start()
        .test_client()
        .post(
            "/v1/decide",
            data=b"".join(map(gzip.compress, parts)),
            headers={"Content-Encoding": "gzip"},
        )
    )
    assert response.status_code == 200, response.text


def test_a_compressed_body_waits_for_its_turn_with_what_it_may_unpack_to(start: Start) -> None:
    app = start()
    sent = packed(b" " * 1_000_000)
    with app.test_request_context(headers={"Content-Encoding": "gzip"}):
        assert len(unpacked(sent)) == 1_000_000 <= size_of_work(sent)
        assert size_of_work(b"x" * 1_000_000) == app.config["MAX_CONTENT_LENGTH"]
    with app.test_request_context():
        assert size_of_work(sent) == len(sent)


def test_a_small_body_of_many_options_is_more_work_than_one_of_much_text(start: Start) -> None:
    app = start()
    options = {f"o{n}": "" for n in range(3_000)}
    with app.test_request_context():
        assert size_of_work(json.dumps(options).encode()) > SMALL_BYTES
        text = json.dumps({"state": "a, b, " * 10_000}).encode()
        assert size_of_work(text) == len(text) < SMALL_BYTES


def test_the_members_of_a_body_share_its_limit(start: Start) -> None:
    client = start(SVC_MAX_BODY_MB="1").test_client()
    half = gzip.compress(b" " * (MB // 2))
    for body, type_ in ((half * 2, "invalid_json"), (half * 2 + gzip.compress(b" "), "too_large")):
        response = client.post("/v1/decide", data=body, headers={"Content-Encoding": "gzip"})
        assert response.get_json()["error"]["type"] == type_


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"garbage"),
        ("gzip", b""),
        ("gzip", packed(GOOD)[:-5]),
        ("gzip", packed(GOOD)[:20]),
        ("gzip", packed(GOOD) + b"rest"),
        ("gzip", packed(GOOD) + packed(b" ")[:-1]),
        ("gzip", packed(b"") * (limits.GZIP_MEMBERS + 1)),
        ("gzip", zlib.compress(GOOD)),
        ("deflate", b"\x00garbage"),
        ("deflate", zlib.compress(GOOD)[:-3]),
        ("deflate", zlib.compress(GOOD) + b"rest"),
        ("deflate", zlib.compress(GOOD) + zlib.compress(b" ")),
    ],
)
def test_a_compressed_body_that_is_broken_is_400(start: Start, encoding: str, body: bytes) -> None:
    response = (
        start().test_client().post("/v1/decide", data=body, headers={"Content-Encoding": encoding})
    )
    assert_error(response, 400, "invalid_json")


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "nonsense"])
def test_an_encoding_that_cannot_be_decoded_is_415_and_names_those_that_can(
    start: Start, encoding: str
) -> None:
    response = (
        start().test_client().post("/v1/decide", data=GOOD, headers={"Content-Encoding": encoding})
    )
    message = assert_error(response, 415, "unsupported_media_type")
    assert "gzip" in message and "deflate" in message


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_bomb_is_413_for_what_it_would_unpack_to(start: Start, pack: Any) -> None:
    encoding = "gzip" if pack is gzip.compress else "deflate"
    client = start(SVC_MAX_BODY_MB="1").test_client()
    bomb = pack(b" " * (64 * MB))
    assert len(bomb) < MB
    tracemalloc.start()
    response = client.post("/v1/decide", data=bomb, headers={"Content-Encoding": encoding})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "1 MB" in assert_error(response, 413, "too_large")
    assert most < 8 * MB  # it never was unpacked


def test_a_body_over_the_limit_is_413_and_names_the_limit(start: Start) -> None:
    client = start(SVC_MAX_BODY_MB="1").test_client()
    response = client.post("/v1/decide", data=b" " * (MB + 1))
    assert "1 MB" in assert_error(response, 413, "too_large")


def test_a_body_of_exactly_the_limit_is_read(start: Start) -> None:
    client = start(SVC_MAX_BODY_MB="1").test_client()
    response = client.post("/v1/decide", data=GOOD + b" " * (MB - len(GOOD)))
    assert response.status_code == 200


def test_an_announced_length_over_the_limit_is_413_before_the_body_comes(start: Start) -> None:
    class Untouched(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise AssertionError("the body was read")

    response = (
        start()
        .test_client()
        .post(
            "/v1/decide",
            input_stream=Untouched(),
            environ_overrides={"CONTENT_LENGTH": str(10**15)},
        )
    )
    assert "16 MB" in assert_error(response, 413, "too_large")


def test_a_body_shorter_than_announced_is_400(start: Start) -> None:
    response = (
        start()
        .test_client()
        .post(
            "/v1/decide",
            input_stream=io.BytesIO(GOOD),
            environ_overrides={"CONTENT_LENGTH": "100000"},
        )
    )
    assert "announced length" in assert_error(response, 400, "invalid_json")


def test_numbers_of_the_state_reach_the_model_as_they_were_written(start: Start) -> None:
    seen: list[str] = []
    answer = replying()

    def listening(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        seen.append(json.dumps(body))
        return answer(body, n, headers)

    body = GOOD.replace(b'"The cat sat on the mat."', b'{"n": 12345678901234567890.10, "m": 1e400}')
    assert start(listening).test_client().post("/v1/decide", data=body).status_code == 200
    assert "12345678901234567890.10" in seen[0] and "1e400" in seen[0]
