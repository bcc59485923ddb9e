"""Which traces are sampled, decided where they begin.

The rule is that of OpenTelemetry's SDK, which workers do not import:
https://opentelemetry.io/docs/languages/sdk-configuration/general/#otel_traces_sampler
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

from svc.phrases import visible

SAMPLER, ARGUMENT = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"

# The bit of a header's flags that says that its trace is sampled.
SAMPLED = 1

_PARENT_BASED = "parentbased_"
_RATIO = "traceidratio"
_RATIOS = {"always_on": 1.0, "always_off": 0.0}
_DEFAULT = "parentbased_always_on"

# A ratio samples the traces whose ids have lower halves below this part of all 64-bit numbers.
_IDS = 1 << 64
_LOWER_HALF = _IDS - 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Samples traces by the lower halves of their ids, which have to be below `bound`.

    Where it `follows`, the flag of a caller's header decides instead.
    """

    bound: int
    follows: bool

    def takes(self, trace: int) -> bool:
        """Whether a trace is sampled by its id, as one that begins here."""
        return trace & _LOWER_HALF < self.bound

    def takes_below(self, trace: int, flags: int) -> bool:
        """Whether a trace that a caller began is sampled; `flags` are those of its header."""
        return bool(flags & SAMPLED) if self.follows else self.takes(trace)


def sampling(environ: Mapping[str, str]) -> Sampling:
    """What the variables say; an invalid value is logged, and the default counts instead."""
    named = environ.get(SAMPLER, "").strip().lower() or _DEFAULT
    kind = named.removeprefix(_PARENT_BASED)
    if kind != _RATIO and kind not in _RATIOS:
        allowed = ", ".join(f"[{_PARENT_BASED}]{one}" for one in (*_RATIOS, _RATIO))
        line = "%s is %r, which counts as %s; allowed: %s"
        log.warning(line, SAMPLER, visible(named), _DEFAULT, allowed)
        return sampling({})
    ratio = _RATIOS[kind] if kind in _RATIOS else _ratio(environ.get(ARGUMENT, ""))
    return Sampling(round(ratio * _IDS), named.startswith(_PARENT_BASED))


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if 0 <= ratio <= 1:
        return ratio
    log.warning("%s is %r, which counts as 1.0; allowed: from 0 to 1", ARGUMENT, visible(text))
    return 1.0
