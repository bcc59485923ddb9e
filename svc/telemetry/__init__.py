"""Traces by OpenTelemetry; the only room that knows of it.

A worker records spans as plain values (`spans.py`), and a thread of it (`handing.py`) passes them
through a socket (`line.py`) to one process beside the workers. That process alone imports
OpenTelemetry, and exports the spans with its SDK (`sdk.py`).

The SDK reads most of the variables `OTEL_...`. Read here are those that it leaves to its users,
which name the exporters, and those that say which traces are sampled (`sampling.py`): that is
decided in the worker, where a trace begins.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING

from svc.errors import SettingsError
from svc.phrases import visible
from svc.telemetry.handing import HandedTraces
from svc.telemetry.line import Line
from svc.telemetry.sampling import sampling
from svc.tracing import Traces

if TYPE_CHECKING:
    from svc.telemetry.sdk import Exporting

__all__ = ["Line", "send_on", "start", "trouble"]

EXPORTER = "OTEL_TRACES_EXPORTER"
# The first one that is set counts.
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

_BY_PROTOCOL = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_GROUP = "opentelemetry_traces_exporter"
_INSTALL = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"

log = logging.getLogger(__name__)


def trouble(environ: Mapping[str, str] = os.environ) -> str:
    """Why the traces that the variables ask for cannot be sent; empty where they can."""
    try:
        _exporters(environ)
    except SettingsError as error:
        return str(error)
    return ""


def start(line: Line | None) -> Traces | None:
    """Trace in this process; call it after the fork. None where `trouble` says why not.

    Spans go into the line to the process that exports them. Without a line this process exports
    them itself.
    """
    if line is not None:
        line.open()
        return HandedTraces(line.send, sampling(os.environ))
    exporting = _exporting()
    if exporting is None:
        return None
    return HandedTraces(exporting.take, sampling(os.environ), exporting.close)


def send_on(line: Line, stop: threading.Event) -> None:
    """Export what comes out of the line, until `stop` is set and every writer has ended.

    Raises `SettingsError` where exports take too much of a processor or of memory.
    """
    exporting = _exporting()
    if exporting is None:
        # Blocks are read and dropped, so that the line does not fill up.
        for _ in line.blocks(stop):
            pass
        return
    for block in line.blocks(stop, exporting.check):
        exporting.take(block)
    exporting.close()


def _exporting() -> Exporting | None:
    """The SDK with the exporters that the variables name; None, and a warning, without them."""
    try:
        exporters = [one.load() for one in _exporters(os.environ)]
        from svc.telemetry.sdk import Exporting

        return Exporting(exporters)
    except SettingsError:
        # The process that started this one has logged why.
        return None
    except Exception as error:  # noqa: BLE001 - decisions are made without traces too
        # The message may quote the value of a variable, such as a key.
        kind = type(error).__name__
        log.warning("no traces: OpenTelemetry does not take a variable OTEL_... (%s)", kind)
        return None


def _exporters(environ: Mapping[str, str]) -> list[EntryPoint]:
    """The exporters that the variables name, `none` left out. Raises `SettingsError`."""
    try:
        installed = find_spec("opentelemetry.sdk.trace")
    except ModuleNotFoundError:
        installed = None
    if installed is None:
        raise SettingsError(f"the variables OTEL_... ask for them, and {_INSTALL} was not run")
    named = (name.strip().lower() for name in (environ.get(EXPORTER) or "otlp").split(","))
    return [_exporter(name, environ) for name in named if name != "none"]


def _exporter(name: str, environ: Mapping[str, str]) -> EntryPoint:
    known = {one.name: one for one in entry_points(group=_GROUP)}
    if name != "otlp" and name in known:
        return known[name]
    if name != "otlp":
        allowed = ", ".join(sorted({"otlp", "none", *known}))
        raise SettingsError(f"{EXPORTER} is {visible(name)!r}; allowed: {allowed}")
    variable = next((one for one in PROTOCOLS if environ.get(one)), PROTOCOLS[0])
    protocol = environ.get(variable, "").strip() or "http/protobuf"
    found = known.get(_BY_PROTOCOL.get(protocol, ""))
    if found is None:
        usable = [one for one, exporter in _BY_PROTOCOL.items() if exporter in known]
        allowed = ", ".join(usable) or f"http/protobuf, after {_INSTALL}"
        raise SettingsError(f"{variable} is {visible(protocol)!r}; allowed: {allowed}")
    return found
