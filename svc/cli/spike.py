"""`svc spike`: in which way each model can be asked, and the time and cost of that."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial

import click

from svc import inprocess, limits
from svc.batch import Progress, Workers
from svc.cli.notices import FAILED, coloured, notice
from svc.cli.plans import demo_option
from svc.cli.tables import echo_json, json_option, milliseconds, table
from svc.engine.ask import Ledger
from svc.errors import ApiError, SettingsError
from svc.evals import QUESTIONS, Probed, Tried, Verdict, probe
from svc.inprocess import InProcess
from svc.pins import PINS
from svc.providers import CHAT, Provider, ProviderError, Traits
from svc.records import Model
from svc.schemas import load_questions

# How many models are under way at the same time.
AT_ONCE = 8
# How many models are checked where a provider has no usual ones.
LISTED = 5
_HEAD = (
    "model",
    "works by",
    "label mass",
    "10% below",
    "thinks",
    "latency",
    "calls per 1,000",
    "$ per 1,000",
    "",
)
# The places of the columns that hold words.
_TEXT = {0, 1, 4, 8}
EXAMPLES = """\b
Examples:
  svc spike --demo
  svc spike @openai/gpt-4.1-mini @groq/llama-3.3-70b-versatile
  svc spike
"""


@click.command("spike", epilog=EXAMPLES)
@click.argument("models", nargs=-1, metavar="[MODELS]...")
@json_option
@demo_option
def command(models: Sequence[str], as_json: bool, demo: bool) -> None:
    """Check in which way each model can be asked.

    Each model is asked two questions about six short texts, in both option orders, as in a
    decision in mode auto: first for label probabilities of all questions in one call, then of each
    in a call of its own, then for JSON bound to a schema, for any JSON, and for JSON requested in
    words alone. Without MODELS these are the usual models of every configured provider, or the
    first five that a provider without usual models lists.

    The table shows which of these ways works; how much of the probability fell on valid labels, by
    median and 10th percentile; whether the model needs tokens for thought; and the latency of a
    decision, and calls and dollars per 1,000. The last column says why no better way works, or
    what to do where none does.

    The exit status is 0 when any model answered, 1 when none did. SVC_LOG_LEVEL=warning shows
    what providers said of failed calls.
    """
    with inprocess.engine(demo, AT_ONCE) as engine:
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
    if as_json:
        found = zip(chosen, probed, strict=True)
        echo_json(
            [{"model": name, **asdict(one), "verdict": one.verdict.value} for name, one in found]
        )
    else:
        _show(chosen, probed)
    if all(one.verdict is Verdict.FAILED for one in probed):
        raise click.exceptions.Exit(FAILED)


def _all(engine: InProcess, models: Sequence[str], progress: Progress) -> Iterator[Probed]:
    failed, cost_usd = 0, 0.0
    with Workers(iter(models), partial(_probe, engine), AT_ONCE, engine.cut) as results:
        for done, probed in enumerate(results, 1):
            failed += probed.verdict is Verdict.FAILED
            cost_usd += probed.cost_usd or 0.0
            progress.show(done, failed, cost_usd)
            yield probed


def _probe(engine: InProcess, model_id: str) -> Probed:
    try:
        model = engine.resolve(model_id)
    except ApiError as error:
        return Probed(Verdict.FAILED, error.message)
    return probe(_ModelInProcess(engine, model))


class _ModelInProcess:
    """One model, which is asked like in a decision of this process."""

    def __init__(self, engine: InProcess, model: Model) -> None:
        self._engine, self._model = engine, model
        self._questions = tuple(load_questions(QUESTIONS).values())
        self.decides = engine.catalog[model.provider].kind != CHAT

    def ask(self, state: str) -> Tried:
        ledger = Ledger(limits.MODEL_CALLS)
        result = self._engine.ask(self._model, self._questions, state, ledger)
        return Tried(result, limits.MODEL_CALLS - ledger.left, ledger.cost_usd)

    def traits(self) -> Traits:
        return self._engine.traits(self._model.id)


def _usual_models(engine: InProcess) -> list[str]:
    """The ids that are checked when none are named; says which providers did not answer."""
    model_ids: list[str] = []
    silent = []
    for provider in engine.catalog.values():
        try:
            model_ids += _models_of(engine, provider)
        except ProviderError:
            silent.append(provider.name)
    if silent:
        notice(f"no list of models from: {', '.join(silent)}")
    return model_ids


def _models_of(engine: InProcess, provider: Provider) -> list[str]:
    if provider.aggregator:
        return list(dict.fromkeys(pin.model for pin in PINS.values()))
    names: Sequence[str] = provider.usual_models
    if not names:
        names = engine.client.list_models(provider)[:LISTED]
    return [f"@{provider.name}/{name}" for name in names]


def _show(models: Sequence[str], probed: Sequence[Probed]) -> None:
    rows = [_row(model, one) for model, one in zip(models, probed, strict=True)]
    lines = table(_HEAD, rows, _TEXT)
    # Columns without room beside the others follow below, after an empty line and with their head.
    height = len(rows) + 2
    for place, line in enumerate(lines):
        row = place % height - 1
        if 0 <= row < len(rows):
            click.secho(line, fg=_colour(probed[row].verdict), color=coloured())
        else:
            click.secho(line, bold=True, color=coloured())


def _colour(verdict: Verdict) -> str:
    if verdict is Verdict.FAILED:
        return "red"
    return "green" if verdict.has_labels else "yellow"


def _row(model: str, one: Probed) -> tuple[str, ...]:
    answered = one.verdict is not Verdict.FAILED
    return (
        model,
        one.verdict.value,
        "-" if one.mass is None else f"{one.mass:.1%}",
        "-" if one.low_mass is None else f"{one.low_mass:.1%}",
        ("yes" if one.thinks else "no") if answered else "-",
        milliseconds(one.latency_ms),
        "-" if one.calls is None else f"{1_000 * one.calls:,.0f}",
        "-" if one.cost_usd is None else f"{1_000 * one.cost_usd:,.4f}",
        one.why,
    )
