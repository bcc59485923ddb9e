"""The review desk: reviewers get decisions to label, drawn with a known chance."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import numpy as np

from svc import limits
from svc.jsontext import JsonObject, leading
from svc.learning.reports import Reporter
from svc.learning.wordings import latest
from svc.questions import Question
from svc.stats import TASKS, Ints, drawing, numbered
from svc.store import (
    Entry,
    Judgements,
    Look,
    NewDecision,
    QuestionVersions,
    ReviewItem,
    ReviewQueue,
    Wording,
)
from svc.store.decisions import Decisions

# Of the decisions in the queue at most this part may have labels from elsewhere, where the accuracy
# of the others is to be that of all.
MOST_ELSEWHERE = 0.01


class ReviewDesk:
    """Hands out decisions on the most recent wording of a question."""

    def __init__(
        self,
        decisions: Decisions,
        versions: QuestionVersions,
        reporter: Reporter,
        queue: ReviewQueue,
        judgements: Judgements,
        clock: Callable[[], float] = time.time,
        random: np.random.Generator | None = None,
    ) -> None:
        """`clock` gives seconds since the epoch; `random` draws, by default like nothing before."""
        self._decisions, self._versions, self._reporter = decisions, versions, reporter
        self._queue, self._judgements = queue, judgements
        self._clock = clock
        self._random = np.random.default_rng() if random is None else random

    def hand_out(
        self, project: str, key: str, reviewer: str, limit: int, shown: bool
    ) -> JsonObject:
        """At most `limit` unlabelled decisions for a reviewer, and how far the question is.

        With `shown` they have their answers. Raises `NotFound` and `StorageError`.
        """
        version, question = latest(self._versions, project, key)
        wording, now_ms = (project, version.question_id), self._now_ms()
        items = self._taken(wording, question, reviewer, limit, shown, now_ms)
        return {
            "project": project,
            "question": key,
            "reviewer": reviewer,
            "definition": json.loads(version.definition),
            "items": items,
            "progress": self._progress(project, key, wording, now_ms),
        }

    def _taken(
        self,
        wording: Wording,
        question: Question,
        reviewer: str,
        limit: int,
        shown: bool,
        now_ms: int,
    ) -> list[JsonObject]:
        """The decisions in the reviewer's hands; where too few, new ones are looked for."""
        self._look(wording, question, now_ms - int(limits.REVIEW_LOOK_S * 1000), now_ms)
        until_ms = now_ms + int(limits.REVIEW_LEASE_S * 1000)
        items = self._queue.hand_out(wording, reviewer, limit, now_ms, until_ms)
        if len(items) < limit and self._look(wording, question, now_ms, now_ms):
            items = self._queue.hand_out(wording, reviewer, limit, now_ms, until_ms)
        found = (self._shown(item, shown) for item in items)
        # What does not fit stays this reviewer's until its lease ends, and comes after these.
        return leading((item for item in found if item is not None), limits.PAGE_BYTES)

    def _look(self, wording: Wording, question: Question, before_ms: int, now_ms: int) -> bool:
        """Let decisions into the queue that came since it last looked, if that was `before_ms`.

        Returns whether there were any.
        """
        look = self._queue.look(wording, before_ms, now_ms)
        if look is None:
            return False
        entries = self._entries(look, question)
        self._queue.enter(wording, look, entries, drawing.SIZES, now_ms)
        return bool(entries)

    def _entries(self, look: Look, question: Question) -> list[Entry]:
        """The level and turn of new decisions, without those whose value was not kept."""
        new = [one for one in look.decisions if not (one.strict and question.extracts)]
        if not new:
            return []
        p = np.array([question.evidence(one.p) for one in new], dtype=np.float64)
        task = TASKS[question.task]
        confidence = task.confidence(p)
        level = drawing.levels(confidence, np.append(np.array(look.confidences), confidence))
        priority = drawing.priorities(level, _kinds(new, task.answers(p)), self._random)
        columns = zip(new, level, confidence, priority, strict=True)
        return [
            Entry(one.seq, one.key, int(level), float(confidence), float(priority))
            for one, level, confidence, priority in columns
        ]

    def _shown(self, item: ReviewItem, shown: bool) -> JsonObject | None:
        """The item as reviewers see it; None where its decision was deleted meanwhile."""
        found = {
            "id": item.id,
            "question": item.key,
            "ref": item.ref,
            "tags": json.loads(item.tags),
            "created_at": item.created_at,
            "state_hash": item.state_hash,
            "leased_until": item.leased_until,
        }
        if not shown:
            return found
        answer = self._decisions.answer(item.id, item.key)
        return None if answer is None else {**found, "answer": answer}

    def _progress(self, project: str, key: str, wording: Wording, now_ms: int) -> JsonObject:
        counts = self._queue.counts(wording, now_ms)
        drawn = self._queue.drawn(wording, limits.LABELS_READ)
        decisions = [drawn.decisions.get(level, 0) for level in range(drawing.LEVELS)]
        # Labels from elsewhere take decisions out of the queue: those that somebody complained of.
        counted = drawn.elsewhere < limits.REVIEW_COUNTED
        told = counted and drawn.elsewhere <= MOST_ELSEWHERE * sum(decisions)
        accuracy = drawing.accuracy(
            np.array(drawn.correct, dtype=np.int64),
            np.array(drawn.level, dtype=np.int64),
            drawing.weights_of(np.array(drawn.chance)),
            np.array(decisions, dtype=np.float64),
        )
        return {
            **self._reporter.promises(project, key),
            "decisions": sum(decisions),
            "reviewed": counts.labelled,
            "waiting": counts.waiting + counts.returned,
            "leased": counts.leased,
            "skipped": self._judgements.skipped(wording),
            "accuracy": accuracy.as_json if accuracy is not None and told else None,
        }

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _kinds(decisions: Sequence[NewDecision], answers: Ints) -> Ints:
    """A number for each decision: equal where the same models gave the same answer."""
    names = [f"{one.answered_by} {answer}" for one, answer in zip(decisions, answers, strict=True)]
    return numbered(names)[1]
