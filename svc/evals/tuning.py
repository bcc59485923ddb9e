"""The search of `svc tune`: ways to ask first, then wordings of the best, then the judgement."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from svc.errors import ApiError, QuotaSpent
from svc.evals.budget import most_calls
from svc.evals.candidates import Candidate, ranked, reworded
from svc.evals.figures import Figures
from svc.evals.holdout import Halves
from svc.evals.proposals import different, proposed, request, sound
from svc.evals.sets import EvalRow, EvalSet
from svc.evals.trials import Engine, Ranking, trials
from svc.schemas import DecisionRequest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Search:
    """What is to be tried, and on which rows.

    `pool` are the rows for examples. `wordings` are other instructions that were given, `propose`
    how many more a model is asked for: the last of those tried alone, which is the dearest.
    """

    eval_set: EvalSet
    pool: Sequence[EvalRow]
    halves: Halves
    tried: Sequence[Candidate]
    wordings: Sequence[str]
    propose: int
    proposer: str

    @property
    def rows(self) -> int:
        return len(self.pool) + len(self.halves.choosing) + len(self.halves.judging)

    @property
    def most_calls(self) -> int:
        """Model calls that everything together takes at most."""
        dearest = max(one.most_calls for one in self.tried)
        others = dearest * (len(self.wordings) + self.propose)
        choosing = len(self.halves.choosing) * (sum(one.most_calls for one in self.tried) + others)
        asking = most_calls(self.proposal) if self.propose else 0
        return asking + choosing + len(self.halves.judging) * dearest

    @property
    def proposal(self) -> DecisionRequest:
        """What a model is asked for wordings with."""
        return request(self.eval_set, self.proposer, self.propose)


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it: the ways, best first, the wordings of the best way, and the judgement.

    `wordings` begins with the best one, and is empty where none was tried. `judged` are the
    figures of the winner on the rows that were held out, None where there were too few.
    """

    ways: Ranking
    wordings: Ranking
    judged: Figures | None = None

    @property
    def winner(self) -> tuple[Candidate, Figures]:
        return (self.wordings or self.ways)[0]


def search(what: Search, engine: Engine, concurrency: int) -> Found:
    """Try and judge; wordings only of a way that gives answers. Raises `QuotaSpent`."""
    ways = trials(what.tried, what.halves.choosing, engine, concurrency)
    best, figures = ways[0]
    if not figures.rows:
        return Found(ways, [])
    other = [reworded(what.eval_set, best, text) for text in _texts(what, engine)]
    asked = trials(other, what.halves.choosing, engine, concurrency) if other else []
    found = Found(ways, ranked([ways[0], *asked]) if asked else [])
    if not what.halves.judging:
        return found
    ((_, judged),) = trials([found.winner[0]], what.halves.judging, engine, concurrency)
    return replace(found, judged=judged)


def _texts(what: Search, engine: Engine) -> list[str]:
    """Those that were given, then sound ones of a model. Raises `QuotaSpent`."""
    given = different(what.eval_set, what.wordings)
    return different(what.eval_set, [*given, *sound(what.eval_set, _proposals(what, engine))])


def _proposals(what: Search, engine: Engine) -> list[str]:
    """None where the model does not answer: the search goes on without."""
    if not what.propose:
        return []
    try:
        return proposed(engine.decide(what.proposal))
    except QuotaSpent:
        raise
    except ApiError as error:
        log.warning("no wordings were proposed: %s", error.message)
        return []
