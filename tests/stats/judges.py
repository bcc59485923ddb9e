"""Penalised fits of others: scikit-learn's losses, and scipy's search for their optimum."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss

from svc.stats.calibrators import TEMPERATURES, Floats, Ints, log_odds, logs_of


def scaled(weights: Floats | None, n: int) -> Floats:
    """Weights that sum to Kish's effective number."""
    given = np.ones(n) if weights is None else weights
    share: Floats = given / given.sum()
    return share / (share**2).sum()


def multinomial(z: Floats, truth: Ints, weights: Floats) -> float:
    """scikit-learn's log-loss of scores, weighted and summed."""
    loss = HalfMultinomialLoss(n_classes=z.shape[1])
    raw = np.ascontiguousarray(z)
    return float(loss.loss(truth.astype(np.float64), raw, sample_weight=weights).sum())


def temperature(p: Floats, truth: Ints, strength: float, weights: Floats | None = None) -> float:
    """ln t of the least penalised log-loss."""
    w, logs = scaled(weights, len(truth)), logs_of(p)

    def loss(u: float) -> float:
        return multinomial(logs * np.exp(-u), truth, w) + strength * (np.exp(-u) - 1 + u)

    bounds = (np.log(TEMPERATURES[0]), np.log(TEMPERATURES[1]))
    return float(minimize_scalar(loss, bounds=bounds, options={"xatol": 1e-9}).x)


def biased(
    p: Floats, truth: Ints, strength: float, bias_sd: float, weights: Floats | None = None
) -> Floats:
    """1/t and the biases of the least penalised log-loss."""
    w, logs = scaled(weights, len(truth)), logs_of(p)

    def loss(point: Floats) -> float:
        inverse = np.exp(point[0])
        penalty = strength * (inverse - 1 - point[0])
        penalty += float(point[1:] @ point[1:]) / (2 * bias_sd**2)
        return multinomial(logs * inverse + point[1:], truth, w) + penalty

    edges = (-np.log(TEMPERATURES[1]), -np.log(TEMPERATURES[0]))
    bounds = [edges, *[(None, None)] * p.shape[1]]
    start = np.zeros(p.shape[1] + 1)
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000}
    found = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options=options).x
    return np.array([np.exp(found[0]), *found[1:]])


def platt(
    p: Floats, truth: Ints, sds: tuple[float, float], weights: Floats | None = None
) -> Floats:
    """a and b of the least penalised cross-entropy."""
    w, x = scaled(weights, len(truth)), log_odds(p[:, 0])
    centre = float(np.average(x, weights=weights))
    judge = HalfBinomialLoss()

    def loss(ab: Floats) -> float:
        z = np.ascontiguousarray(ab[0] * x + ab[1])
        shift = ab[1] + (ab[0] - 1) * centre
        penalty = (ab[0] - 1) ** 2 / (2 * sds[0] ** 2) + shift**2 / (2 * sds[1] ** 2)
        return float(judge.loss(truth.astype(float), z, sample_weight=w).sum() + penalty)

    options = {"gtol": 1e-9}
    found: Floats = minimize(loss, [1.0, 0.0], options=options).x
    return found
