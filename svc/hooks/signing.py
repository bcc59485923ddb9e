"""Signatures as the specification Standard Webhooks, version 1.0.0, has them.

https://github.com/standard-webhooks/standard-webhooks
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

# What a secret begins with, and how many random bytes follow.
PREFIX, SECRET_BYTES = "whsec_", 32


def new_secret() -> str:
    """A secret that no hook has."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(secret: str, event_id: str, body: str, now_s: int) -> dict[str, str]:
    """The headers that say which event it is, when it was signed, and by whom."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, f"{event_id}.{now_s}.{body}".encode(), hashlib.sha256).digest()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
