"""The calibrators of an exact question: one for all labels, and one for each answering model.

They are kept as one JSON text. A text from before there were groups holds the parameters of a
single calibrator, which was that of all labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from svc.jsontext import JsonObject
from svc.memo import Memo
from svc.stats import Calibrator, Fitted, from_parameters

# Without any label.
NO_FIT = Fitted(None, 0)


@dataclass(frozen=True, slots=True)
class Fits:
    """What is in effect; `by_group` is by answering model and mode, as a finding names it.

    A group that is not there has the calibrator of all.
    """

    pooled: Fitted = NO_FIT
    by_group: Mapping[str, Fitted] = field(default_factory=dict)

    def of(self, group: str) -> Calibrator | None:
        """The calibrator of a group, None for raw probabilities; without labels the one of all."""
        return self.by_group.get(group, self.pooled).calibrator

    @property
    def any(self) -> bool:
        """Whether any calibrator is in effect."""
        fitted = [self.pooled, *self.by_group.values()]
        return any(one.calibrator is not None for one in fitted)

    def dumps(self) -> str | None:
        """The text that `parsed` reads; None where no calibrator is in effect."""
        if not self.any:
            return None
        # There may be thousands of groups, few of which have one of their own or none.
        groups = {
            group: _as_json(fitted)
            for group, fitted in self.by_group.items()
            if fitted.own or fitted.calibrator != self.pooled.calibrator
        }
        return json.dumps({"pooled": _as_json(self.pooled), "groups": groups})


NOTHING_FITTED = Fits()


def parsed(text: str | None) -> Fits:
    """The fits of a stored text."""
    return NOTHING_FITTED if text is None else _read(text)


@Memo
def _read(text: str) -> Fits:
    kept = json.loads(text)
    if "kind" in kept:
        return Fits(Fitted(from_parameters(kept), 0))
    groups = {group: _fitted(one) for group, one in kept["groups"].items()}
    return Fits(_fitted(kept["pooled"]), groups)


def calibrator_kind(text: str | None) -> str | None:
    """The kind of the calibrator in effect by a stored text, None without any."""
    fits = parsed(text)
    for fitted in (fits.pooled, *fits.by_group.values()):
        if fitted.calibrator is not None:
            return str(fitted.calibrator.parameters["kind"])
    return None


def _as_json(fitted: Fitted) -> JsonObject:
    calibrator = fitted.calibrator
    return {
        "calibrator": None if calibrator is None else dict(calibrator.parameters),
        "labels": fitted.labels,
        "own": fitted.own,
    }


def _fitted(kept: Mapping[str, Any]) -> Fitted:
    parameters = kept["calibrator"]
    calibrator = None if parameters is None else from_parameters(parameters)
    return Fitted(calibrator, kept["labels"], kept["own"])
