"""How many decisions a real small model answers, in each mode, and how well it keeps to labels.

    SVC_REAL_PYTHON=.venv-real/bin/python python -m benchmarks.real_models --decisions 300

`make real` makes the environment that the variable names. The model is SmolLM2-135M-Instruct
behind the server of llama-cpp-python, the messages are real ones (`SVC_TEST_DATA`). One core
answers one call a second or two, so 300 decisions in each mode take about three quarters of an
hour; the result stands by hand in RESULTS.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.banking import data_folder, messages
from benchmarks.harness import NotRun, run_program, temporary_directory
from svc import inprocess
from svc.errors import ApiError
from svc.inprocess import InProcess
from svc.schemas import load_decision
from tests.real import servers

MODEL = "@smol/SmolLM2-135M-Instruct"
MODES = ("logprobs", "auto", "verbal")
PINS = ("svc-1.2.0", "svc-1.3.0")
MASS_DECISIONS = 30  # of each type and pin
EVERY = 10  # of the messages one is taken: they stand sorted by their intent
QUESTIONS: Mapping[str, dict[str, Any]] = {
    "choice": {
        "type": "choice",
        "instructions": "Which team should handle this message?",
        "options": {
            "cards": "Cards that are lost, late, broken or refused",
            "transfers": "Transfers, payments and top-ups",
            "account": "Sign-in, identity and personal data",
        },
        "escape": False,
    },
    "noul": {"type": "noul", "instructions": "Is the customer waiting for something to arrive?"},
    "score": {
        "type": "score",
        "instructions": "How urgent is this message?",
        "levels": ["Can wait", "Today", "At once"],
    },
}


@dataclass
class Tally:
    """What came of the decisions of one mode."""

    decisions: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def row(self) -> tuple[str, ...]:
        answered = sum(self.modes.values())
        ways = ", ".join(f"{count} {mode}" for mode, count in self.modes.items())
        middle = f"{statistics.median(self.seconds):.1f} s" if self.seconds else "-"
        return (f"{answered} of {self.decisions}", ways or "-", middle)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 when a mode answered less than the service promises."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_models", description=__doc__)
    parser.add_argument("--decisions", type=int, default=300, help="in each mode")
    given = parser.parse_args(arguments)
    if servers.python() is None:
        raise NotRun(f"{servers.PYTHON} names no interpreter with the models; see `make real`")
    with temporary_directory() as folder, servers.smollm2(Path(folder)) as url:
        os.environ["SVC_PROVIDER_SMOL_URL"] = url
        texts = [text for text, _ in messages(data_folder())][::EVERY]
        _print_masses(texts)
        _print_answered(texts, given.decisions)
    return 0


def _print_answered(texts: Sequence[str], decisions: int) -> None:
    print("| mode | answered | as | median time |\n|---|---|---|---|")
    for mode in MODES:
        with inprocess.engine(demo=False, concurrency=1) as engine:
            tally = _answered(engine, texts, mode, decisions)
        print(f"| {mode} | {' | '.join(tally.row)} |", flush=True)
        for words, count in tally.failures.items():
            print(f"  {count} failed: {words}", file=sys.stderr)


def _answered(engine: InProcess, texts: Sequence[str], mode: str, decisions: int) -> Tally:
    tally = Tally()
    for body in itertools.islice(_bodies(texts), decisions):
        tally.decisions += 1
        started = time.perf_counter()
        try:
            decision = engine.decide(load_decision({**body, "mode": mode}))
        except ApiError as error:
            tally.failures[error.message] += 1
            continue
        tally.seconds.append(time.perf_counter() - started)
        tally.modes[decision.mode] += 1
    return tally


def _print_masses(texts: Sequence[str]) -> None:
    print("| label mass at the first answer position, median | choice | yes/no | score |")
    print("|---|---|---|---|")
    for pin in PINS:
        with inprocess.engine(demo=False, concurrency=1) as engine:
            masses = [_mass(engine, kind, texts, pin) for kind in QUESTIONS]
        print(f"| {pin} | {' | '.join(f'{mass:.3f}' for mass in masses)} |", flush=True)
    print()


def _mass(engine: InProcess, kind: str, texts: Sequence[str], pin: str) -> float:
    """The median label mass of one type of question; a reply that was refused counts as none."""
    masses = []
    for message in texts[:MASS_DECISIONS]:
        body = {
            "state": message,
            "questions": {"q": QUESTIONS[kind]},
            "model": MODEL,
            "mode": "logprobs",
            "debias": False,
            "config": pin,
        }
        try:
            decision = engine.decide(load_decision(body))
            masses.append((decision.questions[0].reading or {})["mass"])
        except ApiError:
            masses.append(0.0)
    return statistics.median(masses)


def _bodies(texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One decision after the other, each of one question, the types in turn."""
    for message in itertools.cycle(texts):
        for question in QUESTIONS.values():
            yield {"state": message, "questions": {"q": question}, "model": MODEL}


if __name__ == "__main__":
    run_program(main)
