"""Fits of calibrators: the least penalised log-loss, by Newton's method.

Every fit is drawn towards another calibrator, of which it is a copy without labels and from which
it departs as far as labels speak for it: towards doing nothing, or, for one of several models
behind a question, towards the fit of them all. What is penalised is chosen so that each loss is
convex and has one optimum, which is found from anywhere:

- a temperature t by `strength` (r - 1 - ln r) with r the ratio of the 1/t: for small departures
  `strength` / 2 times the square of ln r, a standard deviation of 1 / sqrt(`strength`). It is the
  density of a gamma distribution of 1/t, which rises far faster towards sharper answers than
  towards flatter ones: what a few dozen right answers in a row ask for is hardly ever true;
- biases by their squared distances, over twice the variance: ridge regression, after Alexandari,
  Kundaje and Shrikumar, Maximum Likelihood with Bias-Corrected Calibration is Hard-To-Beat at
  Label Shift Adaptation (ICML 2020), where it is called bias-corrected temperature scaling, and
  Kull et al., Beyond Temperature Scaling (NeurIPS 2019), who shrink what is off the diagonal;
- Platt's slope and his offset at the mean log-odds in the same way.

Weights tell how much each label counts. Only their ratios matter: they are scaled so that they
sum to Kish's effective number of labels (1965), which is what a penalty has to be compared with.
"""

from __future__ import annotations

import numpy as np

from svc.stats.calibrators import (
    AS_IS,
    STRAIGHT,
    TEMPERATURES,
    Calibrator,
    Floats,
    Ints,
    Platt,
    Temperature,
    log_odds,
    logs_of,
    sigmoid,
)

# Of departures of ln t: a factor of e is two standard deviations.
STRENGTH = 4.0
# Standard deviations of biases: the usual one, then what few labels may ask for instead.
BIAS_SDS = (0.6, 0.3, 1.0)
# Standard deviations of Platt's slope and of his shift of the mean log-odds.
SLOPE_SD, SHIFT_SD = 0.35, 1.0

_STEPS = 100
_CLOSE = 1e-8
_NEAR = 1e-3
_RIDGE = 1e-9
# Halvings of a step that does not lower the loss.
_HALVINGS = 40


def effective(weights: Floats | None, n: int) -> Floats:
    """Weights that sum to the effective number of labels; ones, where none are given."""
    if weights is None:
        return np.ones(n)
    squares = float((weights**2).sum())
    scaled: Floats = weights * (float(weights.sum()) / squares if squares > 0 else 0.0)
    return scaled


def fit_temperature(
    p: Floats,
    truth: Ints,
    weights: Floats | None = None,
    *,
    towards: Temperature = AS_IS,
    strength: float = STRENGTH,
) -> Temperature:
    """The temperature of the least penalised log-loss, within `TEMPERATURES`.

    `p` is (n, k), `truth` (n,) holds the true columns; `towards` lends its biases as they are.
    The slope of the loss rises with 1/t, so its sign tells on which side the optimum lies: Newton's
    method, by bisection where a step would leave the bracket or shrinks too slowly to end soon.
    """
    logs = _by_option(p)
    w = effective(weights, len(truth))
    bias = np.array(towards.bias)[:, None] if towards.bias else None
    true_logs = float(w @ logs[truth, np.arange(len(truth))])
    origin = 1 / towards.t

    def derivatives(inverse: float) -> tuple[float, float]:
        shares, _ = _shares(logs * inverse if bias is None else logs * inverse + bias)
        shares *= logs
        means = shares.sum(axis=0)
        shares *= logs
        slope = float(w @ means) - true_logs + strength * (1 / origin - 1 / inverse)
        return slope, float(w @ (shares.sum(axis=0) - means**2)) + strength / inverse**2

    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    inverse, step = min(max(origin, low), high), high - low
    for _ in range(_STEPS):
        slope, curvature = derivatives(inverse)
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        newton = -slope / (curvature + _RIDGE)
        middle = (low + high) / 2 - inverse
        usable = low < inverse + newton < high and abs(newton) <= abs(step) / 2
        step = newton if usable else middle
        inverse += step
        if abs(step) < _CLOSE:
            break
    return Temperature(1 / inverse, towards.bias)


def fit_biased(
    p: Floats,
    truth: Ints,
    weights: Floats | None = None,
    *,
    towards: Temperature = AS_IS,
    strength: float = STRENGTH,
    bias_sd: float,
    start: Temperature | None = None,
) -> Temperature:
    """A temperature and a bias per option, `bias_sd` the standard deviation of their departures.

    From `start`, the optimum of nearly the same labels, it goes on as far as held-out labels need
    it: to a thousandth of a nat.
    """
    problem = _Biased(p, truth, weights, towards, strength, bias_sd)
    close = _CLOSE if start is None else _NEAR
    found = _minimum(problem, problem.vector(start or towards), close)
    return Temperature(float(1 / found[0]), tuple(found[1:].tolist()))


def fit_platt(
    p: Floats,
    truth: Ints,
    weights: Floats | None = None,
    *,
    towards: Platt = STRAIGHT,
    slope_sd: float = SLOPE_SD,
    shift_sd: float = SHIFT_SD,
) -> Platt:
    """The slope and offset of the least penalised cross-entropy; `p` is (n, 1), `truth` 0 or 1.

    The truth itself is the target. Platt's corrected targets (scikit-learn's, after Platt 1999)
    are a prior of their own, towards even odds, which makes a model that is right nearly always
    less sure of itself whatever its labels say; the penalty has that office here.
    """
    logits = log_odds(p[:, 0])
    w = effective(weights, len(truth))
    centre = float(w @ logits) / max(float(w.sum()), 1.0)
    origin = np.array([towards.a, towards.b + towards.a * centre])
    problem = _Line(logits - centre, truth, w, origin, (slope_sd, shift_sd))
    a, at_centre = map(float, _minimum(problem, origin))
    return Platt(a, at_centre - a * centre)


def classes_fit(
    bias_sd: float,
    p: Floats,
    truth: Ints,
    weights: Floats | None,
    towards: Calibrator | None,
    start: Calibrator | None,
) -> Temperature:
    """A temperature, and biases unless `bias_sd` is 0."""
    origin = towards if isinstance(towards, Temperature) else AS_IS
    if not bias_sd:
        return fit_temperature(p, truth, weights, towards=origin)
    begin = start if isinstance(start, Temperature) else None
    return fit_biased(p, truth, weights, towards=origin, bias_sd=bias_sd, start=begin)


def yes_no_fit(
    p: Floats,
    truth: Ints,
    weights: Floats | None,
    towards: Calibrator | None,
    start: Calibrator | None,
) -> Platt:
    """Platt's slope and offset."""
    return fit_platt(p, truth, weights, towards=towards if isinstance(towards, Platt) else STRAIGHT)


def rightness_fit(
    p: Floats,
    truth: Ints,
    weights: Floats | None,
    towards: Calibrator | None,
    start: Calibrator | None,
) -> Platt:
    """The same without the answers that have no value, whose probability is 0."""
    given = p[:, 0] > 0
    kept = None if weights is None else weights[given]
    return yes_no_fit(p[given], truth[given], kept, towards, start)


class _Biased:
    """The penalised log-loss of 1/t and a bias per option."""

    def __init__(
        self,
        p: Floats,
        truth: Ints,
        weights: Floats | None,
        towards: Temperature,
        strength: float,
        bias_sd: float,
    ) -> None:
        n, self.options = p.shape
        self.logs = _by_option(p)
        self.w = effective(weights, n)
        self.true_logs = float(self.w @ self.logs[truth, np.arange(n)])
        self.counts = np.bincount(truth, weights=self.w, minlength=self.options)
        self.strength, self.precision = strength, bias_sd**-2
        self.towards = self.vector(towards)
        self.lowest, self.highest = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]

    def vector(self, calibrator: Temperature) -> Floats:
        """Its parameters as they are searched: 1/t, then the biases."""
        return np.array([1 / calibrator.t, *(calibrator.bias or (0.0,) * self.options)])

    def inside(self, point: Floats) -> Floats:
        """The same with a temperature within its bounds."""
        return np.array([min(max(point[0], self.lowest), self.highest), *point[1:]])

    def at(self, point: Floats) -> tuple[float, Floats, Floats]:
        """The loss, its gradient and its Hessian."""
        inverse, bias = point[0], point[1:]
        shares, totals = _shares(self.logs * inverse + bias[:, None])
        loss = float(self.w @ totals) - inverse * self.true_logs - float(self.counts @ bias)
        weighted = shares * self.w
        masses = weighted.sum(axis=1)
        means = np.einsum("ij,ij->j", shares, self.logs)
        gradient = np.empty(len(point))
        gradient[0] = self.w @ means - self.true_logs
        gradient[1:] = masses - self.counts
        hessian = np.empty((len(point), len(point)))
        hessian[1:, 1:] = -(weighted @ shares.T)
        hessian[1:, 1:].flat[:: len(point)] += masses
        weighted *= self.logs - means
        hessian[0, 1:] = hessian[1:, 0] = weighted.sum(axis=1)
        hessian[0, 0] = np.einsum("ij,ij->", weighted, self.logs)
        return self._penalised(point, loss, gradient, hessian)

    def _penalised(
        self, point: Floats, loss: float, gradient: Floats, hessian: Floats
    ) -> tuple[float, Floats, Floats]:
        origin, departure = self.towards[0], point[1:] - self.towards[1:]
        ratio = point[0] / origin
        loss += self.strength * float(ratio - 1 - np.log(ratio))
        loss += self.precision / 2 * float(departure @ departure)
        gradient[0] += self.strength * (1 / origin - 1 / point[0])
        gradient[1:] += self.precision * departure
        hessian[0, 0] += self.strength / point[0] ** 2
        hessian.flat[len(point) + 1 :: len(point) + 1] += self.precision
        return loss, gradient, hessian


class _Line:
    """The penalised cross-entropy of a slope and an offset."""

    def __init__(
        self,
        x: Floats,
        truth: Ints,
        w: Floats,
        towards: Floats,
        sds: tuple[float, float],
    ) -> None:
        self.x, self.truth, self.w, self.towards = x, truth, w, towards
        self.precisions = np.array(sds) ** -2.0

    def inside(self, point: Floats) -> Floats:
        """The same: there are no bounds."""
        return point

    def at(self, point: Floats) -> tuple[float, Floats, Floats]:
        """The loss, its gradient and its Hessian."""
        z = point[0] * self.x + point[1]
        q = sigmoid(z)
        errors, spreads = self.w * (q - self.truth), self.w * q * (1 - q)
        departure = point - self.towards
        loss = float(self.w @ (np.logaddexp(0.0, z) - self.truth * z))
        loss += float(self.precisions @ departure**2) / 2
        gradient = np.array([errors @ self.x, errors.sum()]) + self.precisions * departure
        mixed = float(spreads @ self.x)
        hessian = np.array([[spreads @ self.x**2, mixed], [mixed, spreads.sum()]])
        return loss, gradient, hessian + np.diag(self.precisions)


def _minimum(problem: _Biased | _Line, start: Floats, close: float = _CLOSE) -> Floats:
    """Where a convex loss is least: Newton's method, each step halved until it goes down.

    It ends with the step that promises less than `close`.
    """
    point = problem.inside(start)
    loss, gradient, hessian = problem.at(point)
    for _ in range(_STEPS):
        step = _downhill(problem, point, gradient, hessian)
        if -float(gradient @ step) < close:
            return problem.inside(point + step)
        for halvings in range(_HALVINGS):
            following = problem.inside(point + step * 0.5**halvings)
            values = problem.at(following)
            if values[0] <= loss:
                break
        else:
            return point
        point, (loss, gradient, hessian) = following, values
    return point


def _downhill(problem: _Biased | _Line, point: Floats, gradient: Floats, hessian: Floats) -> Floats:
    """Newton's step; the first coordinate rests, where it is at a bound that it would cross."""
    matrix = hessian + _RIDGE * (1 + hessian.diagonal().max()) * np.eye(len(point))
    step: Floats = -np.linalg.solve(matrix, gradient)
    blocked = problem.inside(point + 1e-6 * step)[0] == point[0] and step[0] != 0
    if blocked:
        step[0] = 0.0
        step[1:] = -np.linalg.solve(matrix[1:, 1:], gradient[1:])
    return step


def _by_option(p: Floats) -> Floats:
    """Logarithms, a row for each option, with 0 for the most probable one of each answer.

    So no power of them overflows, and sums over the options run along the memory.
    """
    logs: Floats = np.ascontiguousarray(logs_of(p).T)
    logs -= logs.max(axis=0)
    return logs


def _shares(z: Floats) -> tuple[Floats, Floats]:
    """The softmax of each column, and the logarithm of what it was divided by; `z` is used up."""
    top = z.max(axis=0)
    z -= top
    np.exp(z, out=z)
    totals = z.sum(axis=0)
    z /= totals
    return z, np.log(totals) + top
