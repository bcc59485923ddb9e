"""Which traces are sampled, decided where they begin.

The rule is that of OpenTelemetry's SDK, which the process that answers does without:
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

_FOLLOWING = "parentbased_"
_RATIO = "traceidratio"
_RATIOS = {"always_on": 1.0, "always_off": 0.0}
_USUAL = "parentbased_always_on"

# The lower half of a trace's id is compared with a ratio of all the numbers that it may be.
_NUMBERS = 1 << 64
_LOWER_HALF = _NUMBERS - 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Samples traces whose ids are below `bound`; `follows` where a caller's flag counts first."""

    bound: int
    follows: bool

    def takes(self, trace: int) -> bool:
        """Whether a trace is sampled that begins here, or whose caller's flag does not count."""
        return trace & _LOWER_HALF < self.bound

    def takes_below(self, trace: int, flags: int) -> bool:
        """Whether a caller's trace is sampled, whose header has these flags."""
        return bool(flags & SAMPLED) if self.follows else self.takes(trace)


def sampling(environ: Mapping[str, str]) -> Sampling:
    """What the variables say; what they say wrongly is told in the log, and counts for nothing."""
    named = environ.get(SAMPLER, "").strip().lower() or _USUAL
    kind = named.removeprefix(_FOLLOWING)
    if kind != _RATIO and kind not in _RATIOS:
        allowed = ", ".join(f"[{_FOLLOWING}]{one}" for one in (*_RATIOS, _RATIO))
        line = "%s is %r, which counts as %s; allowed: %s"
        log.warning(line, SAMPLER, visible(named), _USUAL, allowed)
        return sampling({})
    ratio = _RATIOS[kind] if kind in _RATIOS else _ratio(environ.get(ARGUMENT, ""))
    return Sampling(round(ratio * _NUMBERS), named.startswith(_FOLLOWING))


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if 0 <= ratio <= 1:
        return ratio
    log.warning("%s is %r, which counts as 1.0; allowed: from 0 to 1", ARGUMENT, visible(text))
    return 1.0
