"""The official library takes our signatures, and refuses any that were changed or are old."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from svc.hooks import signing

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
