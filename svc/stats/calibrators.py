"""Calibrators: functions of one or two parameters that make probabilities true, and their fits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

SMALLEST = 1e-6  # what a probability of 0 counts as: the last digit that callers are shown
TEMPERATURES = (0.05, 20.0)  # without bounds a fit on few labels saturates
STEPS = 60  # of Newton's method at most; a handful are usual
CLOSE = 1e-8  # a step this small ends it
RIDGE = 1e-9  # of the Hessian's diagonal, so that constant probabilities have a solution too


class Calibrator(Protocol):
    """A function from raw to true probabilities."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """As the calibration report has them; `from_parameters` takes them back."""

    def one(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        """The calibrated probabilities of one answer."""

    def apply(self, p: Floats) -> Floats:
        """The same for a matrix of answers."""


@dataclass(frozen=True, slots=True)
class Temperature:
    """p'_i = p_i^(1/t) / sum_j p_j^(1/t): a high `t` makes the answer less sure, never another.

    Guo et al., On Calibration of Modern Neural Networks (ICML 2017), section 4.2.
    """

    kind: ClassVar[str] = "temperature"
    t: float

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"kind": self.kind, "t": self.t}

    def one(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        logs = [math.log(max(p, SMALLEST)) for p in probabilities]
        top = max(logs)
        weights = [math.exp((value - top) / self.t) for value in logs]
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)

    def apply(self, p: Floats) -> Floats:
        return _softmax(_logs(p) / self.t)


@dataclass(frozen=True, slots=True)
class Platt:
    """p' = 1 / (1 + exp(-(a logit p + b))), for single probabilities.

    Platt, Probabilistic Outputs for Support Vector Machines (1999), on log-odds.
    """

    kind: ClassVar[str] = "platt"
    a: float
    b: float

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"kind": self.kind, "a": self.a, "b": self.b}

    def one(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        return tuple(self._calibrated(p) for p in probabilities)

    def apply(self, p: Floats) -> Floats:
        return _sigmoid(self.a * _logit(p) + self.b)

    def _calibrated(self, p: float) -> float:
        p = min(max(p, SMALLEST), 1 - SMALLEST)
        return 0.5 + 0.5 * math.tanh((self.a * math.log(p / (1 - p)) + self.b) / 2)


def from_parameters(parameters: Mapping[str, Any]) -> Calibrator:
    """The calibrator with these parameters."""
    if parameters["kind"] == Temperature.kind:
        return Temperature(parameters["t"])
    return Platt(parameters["a"], parameters["b"])


def fit_temperature(p: Floats, truth: Ints) -> Temperature:
    """The temperature of the least log-loss, within `TEMPERATURES`.

    `p` is (n, k), `truth` (n,) holds the true columns. The log-loss is convex in 1/t: Newton's
    method on it, by bisection where a step would leave the bracket.
    """
    logs = _logs(p)
    logs -= logs.max(axis=1, keepdims=True)  # so that no power of them overflows
    squares, true_logs = logs**2, logs[np.arange(len(truth)), truth].sum()
    lowest, highest = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    low, high, inverse = lowest, highest, 1.0
    for _ in range(STEPS):
        weights = np.exp(logs * inverse)
        totals = weights.sum(axis=1)
        means = np.einsum("ij,ij->i", weights, logs) / totals
        slope = float(means.sum() - true_logs)
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        curvature = float((np.einsum("ij,ij->i", weights, squares) / totals - means**2).sum())
        following = min(max(inverse - slope / (curvature + RIDGE), lowest), highest)
        if not low <= following <= high:
            following = (low + high) / 2
        if abs(following - inverse) < CLOSE:
            break
        inverse = following
    return Temperature(1 / inverse)


def fit_platt(p: Floats, truth: Ints) -> Platt:
    """Platt's method: the least cross-entropy against prior-corrected targets.

    `p` is (n, 1), `truth` (n,) holds 0 or 1. Newton's method with backtracking, from Lin, Lin and
    Weng, A Note on Platt's Probabilistic Outputs for Support Vector Machines (2007).
    """
    logits = _logit(p[:, 0])
    centre = float(logits.mean())
    x = logits - centre  # so a constant has no say in the slope
    positive = int(truth.sum())
    high = (positive + 1) / (positive + 2)
    low = 1 / (len(truth) - positive + 2)
    target = np.where(truth == 1, high, low)
    ab = np.array([0.0, math.log((positive + 1) / (len(truth) - positive + 1))])
    loss = _cross_entropy(ab, x, target)
    for _ in range(STEPS):
        step = _newton_step(ab, x, target)
        scale = 1.0
        while _cross_entropy(ab + scale * step, x, target) > loss and scale > CLOSE:
            scale /= 2
        ab = ab + scale * step
        loss = _cross_entropy(ab, x, target)
        if float(np.abs(scale * step).max()) < CLOSE:
            break
    a, b = map(float, ab)
    return Platt(a, b - a * centre)


def _newton_step(ab: Floats, x: Floats, target: Floats) -> Floats:
    q = _sigmoid(ab[0] * x + ab[1])
    error, weight = q - target, q * (1 - q)
    gradient = np.array([(error * x).sum(), error.sum()])
    mixed = (weight * x).sum()
    hessian = np.array([[(weight * x * x).sum(), mixed], [mixed, weight.sum()]])
    solvable = hessian + np.eye(2) * (RIDGE * hessian.max() + RIDGE)
    step: Floats = -np.linalg.solve(solvable, gradient)
    return step


def _cross_entropy(ab: Floats, x: Floats, target: Floats) -> float:
    z = ab[0] * x + ab[1]
    return float((np.logaddexp(0.0, z) - target * z).sum())


def _logs(p: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(p, SMALLEST))
    return logs


def _logit(p: Floats) -> Floats:
    inside = np.clip(p, SMALLEST, 1 - SMALLEST)
    odds: Floats = np.log(inside / (1 - inside))
    return odds


def _softmax(z: Floats) -> Floats:
    weights = np.exp(z - z.max(axis=1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(z: Floats) -> Floats:
    return 0.5 + 0.5 * np.tanh(z / 2)
