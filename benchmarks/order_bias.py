"""How many calls `debias: "auto"` saves on a real model, and what that costs in truth.

    SVC_REAL_PYTHON=.venv-real/bin/python python -m benchmarks.order_bias --rows 200 --options 4

SmolLM2-135M-Instruct, which prefers the first option whatever it says, is asked about real messages
(`SVC_TEST_DATA`) in both orders of the options. What `auto` would have asked of the same messages,
in the same order, is then computed from these answers `--times` times over, each time in another
order of the messages. One core answers one call a second or two.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.banking import data_folder, messages
from benchmarks.harness import NotRun, run_program, temporary_directory
from svc import inprocess, limits
from svc.engine.ask import Ledger
from svc.engine.debias import DebiasMemory
from svc.inprocess import InProcess
from svc.questions import Question, Reading
from svc.schemas import load_decision
from tests.real import servers

MODEL = "@smol/SmolLM2-135M-Instruct"
SEED = 2309
LEAST = 1e-6  # a smaller probability of the true option counts as this in the log-loss


@dataclass(frozen=True)
class Answer:
    """What the model said of one message in both orders, and which option is right."""

    label: int
    first: Reading
    second: Reading


@dataclass(frozen=True)
class Outcome:
    """What one way of asking came to."""

    calls: float  # a decision
    accuracy: float
    log_loss: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of ways to ask."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order_bias", description=__doc__)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--options", type=int, default=4)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--answers", type=Path, help="keep answers there, or take them from there")
    given = parser.parse_args(arguments)
    intents, rows = _messages(given.rows, given.options)
    question = _question(intents)
    if given.answers is not None and given.answers.exists():
        answers = _load(given.answers)
    else:
        answers = _asked(question, intents, rows)
        if given.answers is not None:
            _save(given.answers, answers)
    print(f"{len(answers)} messages of {len(intents)} intents, in {given.times} orders of them")
    print("| asked | calls a decision | accuracy | log-loss |\n|---|---|---|---|")
    for name, outcome in _outcomes(question, answers, given.times).items():
        figures = f"{outcome.calls:.3f} | {outcome.accuracy:.4f} | {outcome.log_loss:.4f}"
        print(f"| {name} | {figures} |")
    return 0


def _messages(count: int, options: int) -> tuple[list[str], list[tuple[str, str]]]:
    """The first intents of the data set, and messages of them in an order that is drawn."""
    all_messages = messages(data_folder())
    intents = list(dict.fromkeys(intent for _, intent in all_messages))[:options]
    rows = [one for one in all_messages if one[1] in intents]
    random.Random(SEED).shuffle(rows)
    return intents, rows[:count]


def _question(intents: Sequence[str]) -> Question:
    body = {
        "type": "choice",
        "instructions": "What is the message about?",
        "options": dict.fromkeys(intents, ""),
        "escape": False,
    }
    return load_decision({"state": "", "questions": {"q": body}}).questions["q"]


def _asked(
    question: Question, intents: Sequence[str], rows: Iterable[tuple[str, str]]
) -> list[Answer]:
    if servers.python() is None:
        raise NotRun(f"{servers.PYTHON} names no interpreter with the models; see `make real`")
    with temporary_directory() as folder, servers.smollm2(Path(folder)) as url:
        os.environ["SVC_PROVIDER_SMOL_URL"] = url
        with inprocess.engine(demo=False, concurrency=1) as engine:
            return [_answer(engine, question, text, intents.index(label)) for text, label in rows]


def _answer(engine: InProcess, question: Question, text: str, label: int) -> Answer:
    ledger = Ledger(limits.MODEL_CALLS)
    result = engine.ask(engine.resolve(MODEL), (question,), text, ledger)
    first, both = result.original[0].probabilities, result.readings[0].probabilities
    # The mean of both orders is known, and so is one of them.
    second = tuple(max(0.0, 2 * mean - one) for mean, one in zip(both, first, strict=True))
    return Answer(label, Reading(first), Reading(second))


def _outcomes(question: Question, answers: Sequence[Answer], times: int) -> dict[str, Outcome]:
    draw = random.Random(SEED)
    orders = [draw.sample(answers, len(answers)) for _ in range(times)]
    auto = [_auto(question, order) for order in orders]
    later = len(answers) // 2
    return {
        "both orders": _outcome(2, answers, [_both(question, one) for one in answers]),
        "the original order": _outcome(1, answers, [one.first for one in answers]),
        "auto": _mean(auto, orders),
        f"auto, after the first {later}": _mean(
            [run[later:] for run in auto], [o[later:] for o in orders]
        ),
    }


def _auto(question: Question, answers: Iterable[Answer]) -> list[tuple[int, Reading]]:
    """The calls that `auto` makes for each answer, and what it reads."""
    memory, found = DebiasMemory(), []
    for one in answers:
        if memory.wants_pair(MODEL, [question]):
            memory.learn(MODEL, [question], [[one.first], [one.second]])
            found.append((2, _both(question, one)))
        else:
            found.append((1, memory.corrected(MODEL, question, one.first)))
    return found


def _mean(
    runs: Sequence[Sequence[tuple[int, Reading]]], orders: Sequence[Sequence[Answer]]
) -> Outcome:
    outcomes = [
        _outcome(mean(calls for calls, _ in run), order, [reading for _, reading in run])
        for run, order in zip(runs, orders, strict=True)
    ]
    return Outcome(
        mean(one.calls for one in outcomes),
        mean(one.accuracy for one in outcomes),
        mean(one.log_loss for one in outcomes),
    )


def _outcome(calls: float, answers: Sequence[Answer], readings: Sequence[Reading]) -> Outcome:
    right, losses = 0, []
    for one, reading in zip(answers, readings, strict=True):
        probabilities = reading.probabilities
        right += max(range(len(probabilities)), key=probabilities.__getitem__) == one.label
        losses.append(-math.log(max(probabilities[one.label], LEAST)))
    return Outcome(calls, right / len(answers), mean(losses))


def _both(question: Question, answer: Answer) -> Reading:
    return question.merge((answer.first, answer.second))


def _save(path: Path, answers: Iterable[Answer]) -> None:
    lines = [
        json.dumps([one.label, one.first.probabilities, one.second.probabilities])
        for one in answers
    ]
    path.write_text("\n".join([*lines, ""]))


def _load(path: Path) -> list[Answer]:
    rows = map(json.loads, path.read_text().splitlines())
    return [Answer(label, Reading(tuple(a)), Reading(tuple(b))) for label, a, b in rows]


if __name__ == "__main__":
    run_program(main)
