"""Opinion pools: one distribution out of those of several members, with weights that labels teach.

Two kinds, after Genest and Zidek, Combining Probability Distributions: A Critique and an Annotated
Bibliography (Statistical Science, 1986):

- arithmetic, the linear pool: sum_i w_i p_i, the weights summing to 1. With equal weights it is
  what a council gives without labels;
- geometric, the logarithmic pool: prod_i p_i^w_i, normalised; of P(yes) a weighted sum of log-odds.

The weights of a geometric pool need not sum to 1. Were they to, a pool could not be surer than its
surest member, which it has to be when members see different things, and not less sure than its
members, which it has to be when all of them are too sure (Hinton, Training Products of Experts by
Minimizing Contrastive Divergence, Neural Computation 2002; Satopää et al., Combining Multiple
Probability Predictions Using a Simple Logit Model, International Journal of Forecasting 2014). A
linear pool of true probabilities is not sure enough either (Ranjan and Gneiting, Combining
Probability Forecasts, JRSS B 2010); the calibrator that follows mends it, so here it is judged as
if one did.

A member that is missing from a row, because its call failed, is left out, and the weights of the
others are scaled to the same sum: as if it had said what they say together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Any

import numpy as np

from svc.stats.acceptance import FOLDS, places
from svc.stats.calibrators import SMALLEST, Floats, Ints, logs_of, softmax
from svc.stats.fitting import effective
from svc.stats.tasks import TASKS
from svc.terms import TaskKind

ARITHMETIC, GEOMETRIC = "arithmetic", "geometric"
KINDS = (ARITHMETIC, GEOMETRIC)

# As many labels as the prior for equal weights of an arithmetic pool is worth.
PSEUDO_LABELS = 10.0
# Standard deviations of the weights of a geometric pool: around their mean, and of their sum
# around 1. A fixed prior counts the less the more labels there are.
SPREAD_SD, SUM_SD = 0.5, 1.0
# Nats over all labels by which the held-out log-loss of a first pool has to be lower.
MARGIN = 3.0

_CLASSES = TASKS[TaskKind.CLASSES]
_STEPS = 100
_CLOSE = 1e-7
# Of mixture weights, whose fit takes many short steps.
_MIXTURE_STEPS, _MIXTURE_CLOSE = 300, 1e-5
# Times that missing members are filled in and weights fitted.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class OpinionPool:
    """A weight for each member of a council, and the mean that they weigh in."""

    kind: str
    weights: tuple[float, ...]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """As JSON; `from_parameters` takes them back."""
        return {"kind": self.kind, "weights": list(self.weights)}

    def shares(self, present: Sequence[bool]) -> tuple[float, ...]:
        """The weights of the members that are present, summing to 1, and 0 for the others.

        Where none of them has any weight, they share equally.
        """
        weights = [w if here else 0.0 for w, here in zip(self.weights, present, strict=True)]
        total = math.fsum(weights) or float(sum(present))
        if not any(weights):
            weights = [float(here) for here in present]
        return tuple(weight / total for weight in weights)

    def one(self, members: Sequence[Sequence[float] | None]) -> tuple[float, ...]:
        """The pool of one row; None stands for a member that is missing, not all of them are.

        A member gives a probability for each option, or P(yes) alone.
        """
        shares = self.shares([member is not None for member in members])
        rows = [(w, row) for w, row in zip(shares, members, strict=True) if w and row is not None]
        if len(rows[0][1]) == 1:
            return (self._row([(w, (1 - row[0], row[0])) for w, row in rows])[1],)
        return self._row(rows)

    def apply(self, p: Floats) -> Floats:
        """The same for an array (n, members, k), where NaN stands for what is missing: (n, k)."""
        pooled = self._matrix(_complete(p))
        return pooled[:, 1:] if p.shape[2] == 1 else pooled

    def _row(self, rows: Sequence[tuple[float, Sequence[float]]]) -> tuple[float, ...]:
        columns = zip(*(row for _, row in rows), strict=True)
        shares = [w for w, _ in rows]
        if self.kind == ARITHMETIC:
            return _normalised([_weighted(shares, column) for column in columns])
        power = math.fsum(self.weights)
        logs = [
            power * _weighted(shares, [math.log(max(p, SMALLEST)) for p in column])
            for column in columns
        ]
        top = max(logs)
        return _normalised([math.exp(value - top) for value in logs])

    def _matrix(self, p: Floats) -> Floats:
        weights = self._of_rows(p)
        if self.kind == ARITHMETIC:
            pooled = np.einsum("nm,nmk->nk", weights, np.nan_to_num(p))
            shares: Floats = pooled / pooled.sum(axis=1, keepdims=True)
            return shares
        logs = np.einsum("nm,nmk->nk", weights, np.nan_to_num(logs_of(p)))
        return softmax(logs * math.fsum(self.weights))

    def _of_rows(self, p: Floats) -> Floats:
        """The shares of the members that each row has."""
        present = ~np.isnan(p[:, :, 0])
        weights = present * np.array(self.weights)
        alone = ~weights.any(axis=1)
        weights[alone] = present[alone]
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True, slots=True)
class Judged:
    """The pool that is worth having, None for equal weights, and what was judged.

    `equal` and `pooled` are the held-out log-losses of equal weights and of the best pool, both
    followed by a temperature; None without labels. `held_out` has the same kind of pool for each
    fold, fitted to the labels of all others.
    """

    pool: OpinionPool | None
    labels: int
    equal: float | None = None
    pooled: float | None = None
    held_out: tuple[OpinionPool, ...] = ()


def equal(members: int) -> OpinionPool:
    """What a council gives without labels: the arithmetic mean."""
    return OpinionPool(ARITHMETIC, (1 / members,) * members)


def from_parameters(parameters: Mapping[str, Any]) -> OpinionPool:
    """The pool with these parameters."""
    return OpinionPool(parameters["kind"], tuple(parameters["weights"]))


def fit(
    p: Floats,
    truth: Ints,
    weights: Floats | None = None,
    *,
    again: bool = False,
    kinds: Sequence[str] = KINDS,
    folds: Ints | None = None,
) -> Judged:
    """The pool of all labels whose held-out log-loss is least, if it beats equal weights.

    `p` is (n, members, k), or (n, members, 1) for P(yes); NaN stands for a missing member. `truth`
    holds the true columns, or 1 for yes. `weights` tell how much each label counts, by their
    ratios. A first pool has to win `MARGIN` nats over all labels; where one was in effect before
    (`again`), it is enough that its successor is no worse than equal weights. `folds` has the fold
    of each label, which is that of its place where it is None.
    """
    folds = places(len(truth), FOLDS) if folds is None else folds
    some = ~np.isnan(p[:, :, 0]).all(axis=1)
    p, truth, folds = _complete(p[some]), truth[some], folds[some]
    counts = effective(None if weights is None else weights[some], len(truth))
    if len(truth) < FOLDS or p.shape[1] < 2:
        return Judged(None, len(truth))
    pools = {kind: _of_folds(kind, p, truth, counts, folds) for kind in (None, *kinds)}
    losses = {
        kind: float(counts @ _held_out(found, p, truth, counts, folds))
        for kind, found in pools.items()
    }
    usual = losses.pop(None)
    best = min(losses, key=losses.__getitem__)
    total = float(counts.sum())
    judged = Judged(None, len(truth), usual / total, losses[best] / total)
    if usual - losses[best] < (0.0 if again else MARGIN):
        return judged
    return replace(judged, pool=_fitted(best, p, truth, counts), held_out=pools[best])


def _of_folds(
    kind: str | None, p: Floats, truth: Ints, counts: Floats, folds: Ints
) -> tuple[OpinionPool, ...]:
    """The pool of each fold, fitted to the labels of all others."""
    others = [folds != number for number in range(FOLDS)]
    return tuple(_fitted(kind, p[rows], truth[rows], counts[rows]) for rows in others)


def _held_out(
    pools: Sequence[OpinionPool], p: Floats, truth: Ints, counts: Floats, folds: Ints
) -> Floats:
    """The log-loss of each row, by its fold's pool and a temperature fitted on the other folds."""
    losses = np.zeros(len(truth))
    for number, pool in enumerate(pools):
        inside, outside = folds == number, folds != number
        known, unseen = pool._matrix(p[outside]), pool._matrix(p[inside])
        if pool.kind == ARITHMETIC:
            unseen = _sharpened(known, truth[outside], counts[outside])._matrix(unseen[:, None])
        losses[inside] = _CLASSES.log_losses(unseen, truth[inside])
    return losses


def _fitted(kind: str | None, p: Floats, truth: Ints, counts: Floats) -> OpinionPool:
    if kind is None:
        return equal(p.shape[1])
    fitting = fit_arithmetic if kind == ARITHMETIC else fit_geometric
    return fitting(p, truth, counts)


def _sharpened(p: Floats, truth: Ints, counts: Floats) -> OpinionPool:
    """A geometric pool of one member, which is a temperature."""
    return fit_geometric(p[:, None], truth, counts)


def fit_arithmetic(p: Floats, truth: Ints, counts: Floats) -> OpinionPool:
    """The weights of the most probable mixture, by expectation maximisation.

    `p` is (n, members, k) with k of at least 2; the prior is a Dirichlet distribution around equal
    weights. Missing members are filled in with what the others say, in each step.
    """
    true = p[np.arange(len(truth)), :, truth]
    missing = np.isnan(true)
    known = np.where(missing, 0.0, np.maximum(true, SMALLEST))
    members = p.shape[1]
    w = np.full(members, 1 / members)
    for _ in range(_MIXTURE_STEPS):
        parts = known * w
        totals = parts.sum(axis=1, keepdims=True)
        # A missing member is as much to thank as its weight says.
        thanks = np.where(missing, w, parts / totals * _seen(w, missing))
        following = counts @ thanks + PSEUDO_LABELS / members
        following /= following.sum()
        moved = float(np.abs(following - w).max())
        w = following
        if moved < _MIXTURE_CLOSE:
            break
    return OpinionPool(ARITHMETIC, tuple(map(float, w)))


def fit_geometric(p: Floats, truth: Ints, counts: Floats) -> OpinionPool:
    """The weights, none below 0, of the least penalised log-loss.

    `p` is (n, members, k) with k of at least 2. The loss is convex: Newton's method over the
    weights that are free to move, each step cut off at 0 (Bertsekas, Projected Newton Methods for
    Optimization Problems with Simple Constraints, 1982).
    """
    logs, members = logs_of(p), p.shape[1]
    w = np.full(members, 1 / members)
    for _ in range(_ROUNDS if np.isnan(logs).any() else 1):
        filled = np.ascontiguousarray(_filled(logs, w).transpose(1, 0, 2))
        w = _least(_LogPool(filled, truth, counts), w)
    return OpinionPool(GEOMETRIC, tuple(map(float, w)))


class _LogPool:
    """The penalised log-loss of geometric weights with its first two derivatives."""

    def __init__(self, logs: Floats, truth: Ints, counts: Floats) -> None:
        """`logs` is (members, n, k)."""
        members, n, _ = logs.shape
        self._logs, self._flat, self._counts = logs, logs.reshape(members, -1), counts
        self._true = logs[:, np.arange(n), truth]
        mean = np.full((members, members), 1 / members)
        self._penalty = (np.eye(members) - mean) / SPREAD_SD**2 + mean * members / SUM_SD**2
        self._centre = np.full(members, 1 / members)

    def loss(self, w: Floats) -> float:
        z = self._pooled(w)
        top = z.max(axis=1)
        totals = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
        away = w - self._centre
        return float(self._counts @ (totals - w @ self._true) + away @ self._penalty @ away / 2)

    def slopes(self, w: Floats) -> tuple[Floats, Floats]:
        """The gradient and the Hessian."""
        q = softmax(self._pooled(w))
        means = np.einsum("mnk,nk->mn", self._logs, q)
        gradient = (means - self._true) @ self._counts + self._penalty @ (w - self._centre)
        weighted = (self._logs * (q * self._counts[:, None])).reshape(self._flat.shape)
        hessian = weighted @ self._flat.T - (means * self._counts) @ means.T + self._penalty
        return gradient, hessian

    def _pooled(self, w: Floats) -> Floats:
        z: Floats = (w @ self._flat).reshape(self._logs.shape[1:])
        return z


def _least(problem: _LogPool, w: Floats) -> Floats:
    """Where the loss is least with no weight below 0."""
    loss = problem.loss(w)
    for _ in range(_STEPS):
        gradient, hessian = problem.slopes(w)
        free = (w > 0) | (gradient < 0)
        step = np.zeros(len(w))
        step[free] = -np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        scale, following = 1.0, np.maximum(w + step, 0.0)
        while (lower := problem.loss(following)) > loss and scale > _CLOSE:
            scale /= 2
            following = np.maximum(w + scale * step, 0.0)
        moved = float(np.abs(following - w).max())
        if lower > loss or moved < _CLOSE:
            break
        w, loss = following, lower
    return w


def _seen(w: Floats, missing: Any) -> Floats:
    """The weight of the members that each row has, as a column."""
    total: Floats = np.where(missing, 0.0, w).sum(axis=1, keepdims=True)
    return total


def _filled(logs: Floats, w: Floats) -> Floats:
    """Missing members say what the others say together."""
    missing = np.isnan(logs[:, :, :1])
    if not missing.any():
        return logs
    shares = OpinionPool(GEOMETRIC, tuple(w))._of_rows(logs)
    means = np.einsum("nm,nmk->nk", shares, np.nan_to_num(logs))
    filled: Floats = np.where(missing, means[:, None], logs)
    return filled


def _complete(p: Floats) -> Floats:
    """P(no) before P(yes), where P(yes) stands alone."""
    return np.concatenate([1 - p, p], axis=2) if p.shape[2] == 1 else p


def _weighted(shares: Sequence[float], values: Sequence[float]) -> float:
    return float(sum(map(mul, shares, values)))


def _normalised(weights: Sequence[float]) -> tuple[float, ...]:
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)
