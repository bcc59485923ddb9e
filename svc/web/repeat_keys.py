"""The header `Idempotency-Key`: what a key may be, and how it is described."""

from __future__ import annotations

import re

from svc import limits
from svc.errors import InvalidRequest
from svc.questions import Anything
from svc.shapes import TEXT
from svc.web.query import QuerySchema

# The name of the header in the WSGI environment.
KEY = "HTTP_IDEMPOTENCY_KEY"

# The header of an answer that was given before.
REPLAYED = "Idempotent-Replayed"

_FORM = rf"[\x20-\x7e]{{1,{limits.IDEMPOTENCY_KEY_CHARS}}}"
_ALLOWED = f"1 to {limits.IDEMPOTENCY_KEY_CHARS} printable ASCII characters"


class KeyField(Anything):
    """The header, which is only described: the WSGI environment has it."""

    # Spaces around the value of a header are not part of it.
    form = {  # noqa: RUF012
        **TEXT,
        "pattern": "^[!-~]([ -~]*[!-~])?$",
        "maxLength": limits.IDEMPOTENCY_KEY_CHARS,
    }


class KeySchema(QuerySchema):
    idempotency_key = KeyField(
        f"{_ALLOWED}, new for each request that is not a repeat. A repeat within "
        f"{limits.IDEMPOTENCY_KEPT_S // 3600} hours gets the answer of the first, and nothing is "
        "done again.",
        data_key="Idempotency-Key",
    )


def check_key(key: str) -> None:
    """Raise `InvalidRequest` for what is no key."""
    if not re.fullmatch(_FORM, key):
        raise InvalidRequest(f"Idempotency-Key: must be {_ALLOWED}")
