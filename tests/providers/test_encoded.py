"""Bodies of calls as they are sent, with images that no call looks through once more."""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any

import pytest

from svc.images import DataUri
from svc.limits import IMAGES
from svc.providers.encoded import encoded
from tests.scripted import Reply, ScriptedProvider, always

from .test_transport import sessions

HEAD = "data:image/png;base64,"
DATA = DataUri(HEAD + base64.b64encode(b"an image").decode())
OTHER = DataUri(HEAD + base64.b64encode(b"another image").decode())
ADDRESS = "https://example.org/cat.png"
# 64 calls of 5 MB of an image; to encode them as any other text took 1.3 s.
CALLS, PROCESSOR_S = 64, 0.5


def body_with(*images: str, text: str = "a state") -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": image}} for image in images]
    content = [{"type": "text", "text": text}, *parts]
    return {"model": "m", "messages": [{"role": "user", "content": content}], "temperature": 0}


def usual(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


@pytest.mark.parametrize(
    "images",
    [
        (DATA,),
        (DATA, OTHER),
        (DATA, ADDRESS, DATA),
        (OTHER, ADDRESS),
        tuple(DataUri(f"{HEAD}AAA{number}") for number in range(IMAGES)),
    ],
)
@pytest.mark.parametrize("text", ["a state", 'quotes " and \\', "\u732b \udcff", DATA, ""])
def test_what_is_sent_is_the_usual_json(images: tuple[str, ...], text: str) -> None:
    body = body_with(*images, text=text)
    assert b"".join(encoded(body, images)) == usual(body)


@pytest.mark.parametrize("images", [(), (ADDRESS,)])
def test_a_body_without_images_of_its_own_is_one_piece(images: tuple[str, ...]) -> None:
    assert encoded(body_with(*images), images) == usual(body_with(*images))


def test_calls_share_the_bytes_of_an_image() -> None:
    first, second = (encoded(body_with(DATA, text=text), (DATA,)) for text in ("one", "other"))
    assert first[1] is second[1] is DATA.utf8


def test_pieces_arrive_as_one_body_of_known_length() -> None:
    body = body_with(DATA, OTHER)
    with ScriptedProvider(always(Reply({}))) as provider, sessions(provider.url) as post:
        assert post(body=encoded(body, (DATA, OTHER))).status == 200
        post(body=b"{}")
    assert provider.bodies == [body, {}]
    lengths = [request.headers.get("content-length") for request in provider.requests]
    assert lengths == [str(len(usual(body))), "2"]
    assert "transfer-encoding" not in provider.requests[0].headers


def test_many_calls_with_a_large_image_cost_little() -> None:
    image = DataUri(HEAD + base64.b64encode(os.urandom(5 * 1024 * 1024 - 10)).decode())
    before = time.thread_time()
    for number in range(CALLS):
        encoded(body_with(image, text=f"{number}" * 149_000), (image,))
    assert time.thread_time() - before < PROCESSOR_S
