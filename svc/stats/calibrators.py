"""Calibrators: functions of a few parameters that make probabilities true."""

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
    """p'_i proportional to p_i^(1/t) exp(bias_i): a high `t` makes the answer less sure.

    A temperature alone never makes it another; a `bias`, a number per option, can. Without one
    `bias` is empty. Guo et al., On Calibration of Modern Neural Networks (ICML 2017), section
    4.2; with biases Alexandari et al. (ICML 2020).
    """

    kind: ClassVar[str] = "temperature"
    t: float
    bias: tuple[float, ...] = ()

    @property
    def parameters(self) -> Mapping[str, Any]:
        parameters = {"kind": self.kind, "t": self.t}
        return {**parameters, "bias": list(self.bias)} if self.bias else parameters

    def one(self, probabilities: Sequence[float]) -> tuple[float, ...]:
        inverse = 1 / self.t
        scores = [math.log(p if p > SMALLEST else SMALLEST) * inverse for p in probabilities]
        if self.bias:
            scores = [score + bias for score, bias in zip(scores, self.bias, strict=True)]
        top = max(scores)
        weights = [math.exp(score - top) for score in scores]
        total = math.fsum(weights)
        return tuple([weight / total for weight in weights])

    def apply(self, p: Floats) -> Floats:
        scores = logs_of(p) / self.t
        return softmax(scores + np.array(self.bias) if self.bias else scores)


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
        return sigmoid(self.a * log_odds(p) + self.b)

    def _calibrated(self, p: float) -> float:
        p = min(max(p, SMALLEST), 1 - SMALLEST)
        return 0.5 + 0.5 * math.tanh((self.a * math.log(p / (1 - p)) + self.b) / 2)


# What changes nothing, of each kind.
AS_IS = Temperature(1.0)
STRAIGHT = Platt(1.0, 0.0)


def from_parameters(parameters: Mapping[str, Any]) -> Calibrator:
    """The calibrator with these parameters."""
    if parameters["kind"] == Temperature.kind:
        return Temperature(parameters["t"], tuple(parameters.get("bias", ())))
    return Platt(parameters["a"], parameters["b"])


def logs_of(p: Floats) -> Floats:
    """Logarithms, finite ones."""
    logs: Floats = np.log(np.maximum(p, SMALLEST))
    return logs


def log_odds(p: Floats) -> Floats:
    """log p/(1-p), finite."""
    inside = np.clip(p, SMALLEST, 1 - SMALLEST)
    odds: Floats = np.log(inside / (1 - inside))
    return odds


def softmax(z: Floats) -> Floats:
    """Shares of each row that sum to 1."""
    weights = np.exp(z - z.max(axis=1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), without an overflow."""
    return 0.5 + 0.5 * np.tanh(z / 2)
