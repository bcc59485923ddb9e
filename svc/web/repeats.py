"""Requests with an `Idempotency-Key`: each is carried out once, and its repeats get its answer."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import partial

from flask import Response, g, request

from svc.errors import InvalidRequest
from svc.records import Decision
from svc.sharing import NamedLocks
from svc.store import KeptAnswer, KeptAnswers, ProjectFull, StorageError
from svc.store.decisions import Decisions
from svc.web.decision_json import decision_json
from svc.web.repeat_keys import KEY, REPLAYED, check_key

# The name in `g` of what makes a kept answer of the body of an answer and its project.
_TO_KEEP = "to_keep"

ToKeep = Callable[..., KeptAnswer]

log = logging.getLogger(__name__)


class Repeats:
    """Answers requests that may be repeats of others, under way in any process or answered."""

    def __init__(
        self, kept: KeptAnswers, decisions: Decisions, locks: NamedLocks, salt: bytes
    ) -> None:
        """`salt` goes into the hashes of what was sent."""
        self._kept, self._decisions, self._locks, self._salt = kept, decisions, locks, salt

    def digest(self, sent: bytes) -> bytes:
        """What tells this request, whose body was `sent`, from others."""
        return self._hash(_content(sent))

    def answer(
        self, digest: bytes, carry_out: Callable[[], Response], status: int = 200
    ) -> Response:
        """The answer to this request, which has this digest; an earlier one where it is a repeat.

        `status` is that of a success. One like it that is under way is waited for. Raises
        `InvalidRequest` for a key that is not valid or came with something else, and `Timeout`,
        besides what `carry_out` raises.
        """
        place = self._place(request.environ[KEY])
        with self._locks.hold(place, g.deadline):
            kept = self._kept.find(place)
            if kept is not None:
                return self._replayed(kept, digest, status)
            setattr(g, _TO_KEEP, partial(KeptAnswer, place, digest))
            response = carry_out()
            if response.status_code == status and not g.get("partly_failed", False):
                self._keep(response)
            return response

    def _place(self, key: str) -> bytes:
        """What stands for the key as one caller uses it on one route."""
        check_key(key)
        route = request.path.rstrip("/")
        return self._hash(f"{g.access.key_id or ''}\n{route}\n{key}".encode())

    def _keep(self, response: Response) -> None:
        to_keep = take_over()
        if to_keep is None:
            # It was kept together with what it tells of.
            return
        decision: Decision | None = g.get("decision")
        if decision is None:
            # Callers of every project have no limit to get past.
            kept = to_keep(response.get_data(), g.access.only, g.get("labelled"))
        else:
            answer = None if has_secrets(decision) else response.get_data()
            kept = to_keep(answer, decision.project, decision.id)
        try:
            self._kept.keep(kept)
        except (StorageError, ProjectFull) as error:
            # The work is done and stored, and the caller shall have its answer.
            log.error("an answer could not be kept for repeats: %s", error.message)

    def _replayed(self, kept: KeptAnswer, digest: bytes, status: int) -> Response:
        if kept.is_forgotten:
            raise InvalidRequest(
                "Idempotency-Key: the request was answered before, and the answer has been deleted "
                "since; to have it carried out again, send a new key"
            )
        if kept.sent != digest:
            raise InvalidRequest(
                "Idempotency-Key: the key came with another body before; send a new key with each "
                "request that is not a repeat"
            )
        if kept.answer is None and kept.debiased is None:
            raise InvalidRequest(
                f"Idempotency-Key: the request was answered before, as {kept.decision_id}, and "
                "what it has from the input is not kept with privacy: strict; to have it decided "
                "again, send a new key"
            )
        return Response(self._answer(kept), status, {REPLAYED: "true"}, mimetype="application/json")

    def _answer(self, kept: KeptAnswer) -> str | bytes | None:
        if kept.decision_id is None or kept.debiased is None:
            return kept.answer
        answer = self._decisions.shown(kept.decision_id, kept.debiased, decision_json)
        if answer is None:
            raise InvalidRequest(
                f"Idempotency-Key: the request was answered before, as {kept.decision_id}, which "
                "has been deleted since; to have it decided again, send a new key"
            )
        return answer

    def _hash(self, content: bytes) -> bytes:
        return hashlib.sha256(self._salt + content).digest()


def take_over() -> ToKeep | None:
    """Makes what is kept for repeats of this request, which the caller stores then; or None.

    For those who store it together with what the answer tells of.
    """
    to_keep: ToKeep | None = g.pop(_TO_KEEP, None)
    return to_keep


def has_secrets(decision: Decision) -> bool:
    """Whether the decision has values or names from the input that may not be kept."""
    return decision.is_strict and any(one.tells_of_state for one in decision.answers.values())


def _content(sent: bytes) -> bytes:
    """All that says what is asked for."""
    return b"\n".join((request.query_string, request.mimetype.encode(), sent))
