"""What reviewers say of decisions: that they cannot tell, or something else than another one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial

from svc import limits
from svc.errors import InvalidRequest, NotFound
from svc.jsontext import JsonObject, leading
from svc.learning.wordings import latest
from svc.phrases import quoted
from svc.questions import Question
from svc.store import Judgement, Judgements, QuestionVersions
from svc.store.decisions import Decisions


class Reviewers:
    """Takes decisions back unlabelled, and finds those on which reviewers disagree."""

    def __init__(
        self,
        decisions: Decisions,
        versions: QuestionVersions,
        judgements: Judgements,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self._decisions, self._versions, self._judgements = decisions, versions, judgements
        self._clock = clock

    def skip(self, decision_id: str, key: str, reviewer: str, project: str | None) -> None:
        """Give a decision back unlabelled; with `project`, other projects' decisions do not exist.

        Raises `NotFound`, `InvalidRequest` where the reviewer does not have it, and `StorageError`.
        """
        decision = self._decisions.get(decision_id)
        if decision is None or project not in (None, decision.facts.project):
            raise NotFound("there is no such decision")
        reading = decision.readings.get(key)
        if reading is None:
            raise NotFound(f"the decision has no question {quoted(key)}")
        wording = (decision.facts.project, reading.question_id)
        if not self._judgements.skip(
            wording, decision.seq, key, reviewer, int(self._clock() * 1000)
        ):
            raise InvalidRequest(
                f"question {quoted(key)}: the decision is not in the hands of {quoted(reviewer)}"
            )

    def disagreements(self, project: str, key: str, limit: int) -> JsonObject:
        """The newest decisions, at most `limit` and 2 MB, of which reviewers say different things.

        Raises `NotFound` and `StorageError`.
        """
        version, question = latest(self._versions, project, key)
        wording = (project, version.question_id)
        found = self._judgements.of_several(wording, limit, partial(_disagree, question))
        return {
            "project": project,
            "question": key,
            "disagreements": leading(map(_disagreement, found), limits.PAGE_BYTES),
        }


def _disagree(question: Question, said: Sequence[Judgement]) -> bool:
    return not question.all_agree([json.loads(one.label) for one in said])


def _disagreement(said: Sequence[Judgement]) -> JsonObject:
    counts = said[0].counts
    return {
        "id": said[0].id,
        "question": said[0].key,
        "label": None if counts is None else json.loads(counts),
        "judgements": [
            {
                "reviewer": one.reviewer,
                "label": json.loads(one.label),
                "created_at": one.created_at,
            }
            for one in said
        ],
    }
