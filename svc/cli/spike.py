"""`svc spike`: which models give probabilities that labels can be read from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial

import click

from svc.batch.progress import Progress
from svc.batch.workers import Workers
from svc.cli import offline
from svc.cli.agreement_report import table
from svc.cli.eval_options import FAILED
from svc.cli.notices import notice
from svc.cli.offline import Offline
from svc.cli.plans import demo_option
from svc.cli.score_table import milliseconds, printable
from svc.errors import ApiError, SettingsError
from svc.evals.probing import Probed, Prober, Verdict
from svc.pins import PINS
from svc.providers.catalog import Provider
from svc.providers.failures import CallError

AT_ONCE = 8  # models under way
LISTED = 5  # models of a provider that has no usual ones
_COLOURS = {Verdict.USABLE: "green", Verdict.VERBAL: "yellow", Verdict.FAILED: "red"}
_HEAD = ("model", "label probabilities", "on labels", "latency", "$ per 1,000", "")
EXAMPLES = """\b
Examples:
  svc spike --demo
  svc spike @openai/gpt-4.1-mini @groq/llama-3.3-70b-versatile
  svc spike
"""


@click.command("spike", epilog=EXAMPLES)
@click.argument("models", nargs=-1, metavar="[MODELS]...")
@demo_option
def command(models: Sequence[str], demo: bool) -> None:
    """Check which models give usable label probabilities.

    Each model is asked three short texts, in mode logprobs; one that has no usable probabilities
    is asked one of them verbally. Without MODELS these are the usual ones of every provider that
    is configured, and the first five of every other that lists some.

    The table says whether labels' probabilities can be read (mode logprobs works) and how much of
    them fell on labels at least; why they cannot where they cannot; and latency and cost of a call.
    Questions of a model without them are answered verbally, in mode auto by itself.

    The exit status is 0 when any model answered, 1 when none did. SVC_LOG_LEVEL=warning shows
    what providers said of failed calls.
    """
    with offline.engine(demo, AT_ONCE) as engine:
        chosen = list(dict.fromkeys(models)) or _usual_models(engine)
        if not chosen:
            raise SettingsError(
                "there is no model to check; name some, set a provider's key, or start with --demo"
            )
        progress = Progress(sys.stderr, len(chosen), 0, sys.stderr.isatty(), unit="models")
        try:
            probed = list(_all(engine, chosen, progress))
        finally:
            progress.end()
    _show(chosen, probed)
    if all(one.verdict is Verdict.FAILED for one in probed):
        raise click.exceptions.Exit(FAILED)


def _all(engine: Offline, models: Sequence[str], progress: Progress) -> Iterator[Probed]:
    failed, cost_usd = 0, 0.0
    with Workers(iter(models), partial(_probe, engine), AT_ONCE, engine.cut) as results:
        for done, probed in enumerate(results, 1):
            failed += probed.verdict is Verdict.FAILED
            cost_usd += probed.cost_usd or 0.0
            progress.show(done, failed, cost_usd)
            yield probed


def _probe(engine: Offline, model_id: str) -> Probed:
    try:
        model = engine.resolve(model_id)
    except ApiError as error:
        return Probed(Verdict.FAILED, error.message)
    provider = engine.catalog[model.provider]
    return Prober(
        call=partial(engine.call, model),
        cost_usd=partial(engine.client.cost_usd, model),
        top_logprobs=provider.top_logprobs,
        pin=PINS[engine.config],
    ).probe()


def _usual_models(engine: Offline) -> list[str]:
    """The ids that are checked when none are named; says which providers did not answer."""
    found: list[str] = []
    silent = []
    for provider in engine.catalog.values():
        try:
            found += _models_of(engine, provider)
        except CallError:
            silent.append(provider.name)
    if silent:
        notice(f"no list of models from: {', '.join(silent)}")
    return found


def _models_of(engine: Offline, provider: Provider) -> list[str]:
    if provider.aggregator:
        return list(dict.fromkeys(pin.model for pin in PINS.values()))
    names: Sequence[str] = provider.usual_models
    if not names:
        names = engine.client.list_models(provider)[:LISTED]
    return [f"@{provider.name}/{name}" for name in names]


def _show(models: Sequence[str], probed: Sequence[Probed]) -> None:
    rows = [_row(model, one) for model, one in zip(models, probed, strict=True)]
    width = max(len(row[-1]) for row in rows)
    head, *lines = table([_HEAD, *((*row[:-1], row[-1].ljust(width)) for row in rows)])
    colour = False if os.environ.get("NO_COLOR") else None  # None: on a terminal only
    click.secho(head.rstrip(), bold=True, color=colour)
    for line, one in zip(lines, probed, strict=True):
        click.secho(line.rstrip(), fg=_COLOURS[one.verdict], color=colour)


def _row(model: str, one: Probed) -> tuple[str, ...]:
    return (
        printable(model),
        one.verdict.value,
        "-" if one.mass is None else f"{one.mass:.1%}",
        milliseconds(one.latency_ms),
        "-" if one.cost_usd is None else f"{1_000 * one.cost_usd:,.4f}",
        one.why,
    )
