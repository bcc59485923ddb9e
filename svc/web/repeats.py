"""Requests with an `Idempotency-Key`: each is carried out once, and its repeats get its answer."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from functools import partial

from flask import Response, g, request

from svc import limits
from svc.errors import InvalidRequest
from svc.questions import Anything
from svc.shapes import TEXT
from svc.sharing import NamedLocks
from svc.store import KeptAnswer, KeptAnswers, StorageError
from svc.web.query import QuerySchema

# The name of the header in the WSGI environment.
KEY = "HTTP_IDEMPOTENCY_KEY"

# The header of an answer that was given before.
REPLAYED = "Idempotent-Replayed"

_FORM = rf"[\x20-\x7e]{{1,{limits.IDEMPOTENCY_KEY_CHARS}}}"
_ALLOWED = f"1 to {limits.IDEMPOTENCY_KEY_CHARS} printable ASCII characters"

log = logging.getLogger(__name__)


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


class Repeats:
    """Answers requests that may be repeats of others, under way in any process or answered."""

    def __init__(self, kept: KeptAnswers, locks: NamedLocks, salt: bytes) -> None:
        """`salt` goes into the hashes of what was sent."""
        self._kept, self._locks, self._salt = kept, locks, salt

    def answer(self, sent: bytes, carry_out: Callable[[], Response], status: int = 200) -> Response:
        """The answer to this request, whose body is `sent`; an earlier one where it is a repeat.

        `status` is that of a success. While `carry_out` runs, `g.to_keep` makes the body of an
        answer what is kept of it, for those who store it together with what it tells of.
        One like it that is under way is waited for. Raises `InvalidRequest` for a key that is not
        valid or came with something else, and `Timeout`, besides what `carry_out` raises.
        """
        place, digest = self._place(request.environ[KEY]), self._hash(_content(sent))
        with self._locks.hold(place, g.deadline):
            kept = self._kept.find(place)
            if kept is not None:
                return _replayed(kept, digest, status)
            g.to_keep = partial(KeptAnswer, place, digest)
            response = carry_out()
            if response.status_code == status and not g.get("partly_failed", False):
                self._keep(place, digest, response)
            return response

    def _place(self, key: str) -> bytes:
        """What stands for the key as one caller uses it on one route."""
        if not re.fullmatch(_FORM, key):
            raise InvalidRequest(f"Idempotency-Key: must be {_ALLOWED}")
        route = request.path.rstrip("/")
        return self._hash(f"{g.access.key_id or ''}\n{route}\n{key}".encode())

    def _keep(self, place: bytes, digest: bytes, response: Response) -> None:
        secret = _decision_with_secrets()
        answer = response.get_data() if secret is None else None
        try:
            self._kept.keep(KeptAnswer(place, digest, answer, secret))
        except StorageError as error:
            # The work is done and stored, and the caller shall have its answer.
            log.error("an answer could not be kept for repeats: %s", error.message)

    def _hash(self, content: bytes) -> bytes:
        return hashlib.sha256(self._salt + content).digest()


def _content(sent: bytes) -> bytes:
    """All that says what is asked for."""
    return b"\n".join((request.query_string, request.mimetype.encode(), sent))


def _decision_with_secrets() -> str | None:
    """The id of the decision of this request, where what it read from the input may not be kept."""
    decision = g.get("decision")
    if decision is None or not decision.is_strict:
        return None
    secret = any(answer.extracted for answer in decision.answers.values())
    return decision.id if secret else None


def _replayed(kept: KeptAnswer, digest: bytes, status: int) -> Response:
    if kept.sent != digest:
        raise InvalidRequest(
            "Idempotency-Key: the key came with another body before; send a new key with each "
            "request that is not a repeat"
        )
    if kept.answer is None:
        raise InvalidRequest(
            f"Idempotency-Key: the request was answered before, as {kept.decision_id}, and values "
            "that were read from the input are not kept with privacy: strict; to have it decided "
            "again, send a new key"
        )
    return Response(kept.answer, status, {REPLAYED: "true"}, mimetype="application/json")
