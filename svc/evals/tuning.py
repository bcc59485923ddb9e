"""The search of `svc tune`: ways to ask first, then wordings of the best, then the judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from svc.evals import proposals
from svc.evals.candidates import Candidate, reworded
from svc.evals.figures import Figures
from svc.evals.holdout import Halves
from svc.evals.sets import EvalRow, EvalSet
from svc.evals.trials import Engine, Ranking, ranked, trials


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
        judging = len(self.halves.judging) * dearest
        return proposals.calls(self.eval_set, self.proposer, self.propose) + choosing + judging


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
    written = proposals.written(what.eval_set, what.proposer, what.propose, engine.decide)
    sound = proposals.sound(what.eval_set, written)
    return proposals.different(what.eval_set, [*what.wordings, *sound])
