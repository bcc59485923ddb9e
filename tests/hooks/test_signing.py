"""The official library takes our signatures, and refuses any that were changed or are old."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from svc.hooks import signing

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
BODY = '{"type":"drift","data":{"question":"Größe"}}'


def test_the_official_library_takes_a_signature() -> None:
    secret = signing.new_secret()
    headers = signing.headers(secret, "evt_1", BODY, int(time.time()))
    assert Webhook(secret).verify(BODY, headers)["type"] == "drift"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_whatever_is_changed_is_refused(name: str) -> None:
    secret = signing.new_secret()
    headers = signing.headers(secret, "evt_1", BODY, int(time.time()))
    changed = {**headers, name: headers[name][:-2] + ("11" if headers[name][-2:] != "11" else "22")}
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(BODY, changed)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(BODY + " ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(signing.new_secret()).verify(BODY, headers)


def test_a_replay_of_an_hour_ago_is_refused() -> None:
    secret = signing.new_secret()
    headers = signing.headers(secret, "evt_1", BODY, int(time.time()) - 3_600)
    with pytest.raises(WebhookVerificationError, match="old"):
        Webhook(secret).verify(BODY, headers)


def test_what_the_page_shows_for_receivers_takes_and_refuses_the_same() -> None:
    shown: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(block, shown)
    secret = signing.new_secret()
    now = int(time.time())
    for check in (shown["checked"], shown["event_of"]):
        headers = signing.headers(secret, "evt_1", BODY, now)
        assert check(secret, headers, BODY.encode())["type"] == "drift"
        refused = [
            (signing.new_secret(), headers, BODY.encode()),
            (secret, headers, BODY.encode() + b" "),
            (secret, {**headers, "webhook-id": "evt_2"}, BODY.encode()),
            (secret, signing.headers(secret, "evt_1", BODY, now - 3_600), BODY.encode()),
        ]
        for arguments in refused:
            with pytest.raises((ValueError, WebhookVerificationError)):
                check(*arguments)
