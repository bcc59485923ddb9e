"""How a decision is made, on one page: request, stages, plan, readings, answers, audit log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from svc import limits
from svc.costly import CostlyWork
from svc.deadline import Deadline
from svc.engine import explain, outcome, partly, stages
from svc.engine.ask import Asker
from svc.engine.bodies import Bodies, bodies_at_most
from svc.engine.decision_asker import DecisionAsker
from svc.engine.plans import KINDS, Team
from svc.engine.setup import KeyOf, Know, Promoted, Setup, SetupMaker, nobody_promoted
from svc.engine.stages import Answered
from svc.errors import MODELS_FAULT
from svc.flows import FlowPool
from svc.learning import nothing_known
from svc.providers import Router
from svc.records import Answer, Decision
from svc.schemas import DecisionRequest
from svc.spending import PurseOf, nobody_pays

# Characters that rules look through in less time than anybody notices.
SMALL_CHARS = 5_000_000

# Labels that are read in less time than anybody notices, also those of large councils.
FEW_LABELS = 100

Present = Callable[[str, Answer], Answer]
Keep = Callable[[Decision], str]


def as_it_is(_key: str, answer: Answer) -> Answer:
    """How answers are shaped for callers of the service's own interface."""
    return answer


class Journal(Protocol):
    """Where decisions are kept; `add` returns the id once the decision is safe.

    `add_failure` counts one that the models, ids joined by commas, did not answer.
    """

    def add(self, decision: Decision) -> str: ...
    def add_failure(self, project: str, model: str) -> None: ...


class Engine:
    """Makes decisions; one per process, used by every thread."""

    def __init__(
        self,
        router: Router,
        asker: Asker,
        flows: FlowPool,
        journal: Journal,
        salt: bytes,
        latest: str,
        knowledge: Know = nothing_known,
        project_key: KeyOf = lambda _project: None,
        purse_of: PurseOf = nobody_pays,
        promoted: Promoted = nobody_promoted,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`knowledge` gives what was learned from a project's labels about questions.

        `project_key` gives the project's own key for the aggregator, and may raise `ApiError`.
        `purse_of` gives what pays the calls of a request, None where nothing bounds them.
        `promoted` gives the model of a request that names none, None for the usual one.
        """
        self._setups = SetupMaker(router, latest, knowledge, salt, project_key, purse_of, promoted)
        self._asker, self._flows, self._journal = asker, flows, journal
        self._clock = clock
        self._rules, self._sets = CostlyWork(SMALL_CHARS), CostlyWork(FEW_LABELS)

    def decide(
        self,
        request: DecisionRequest,
        deadline: Deadline,
        api_key: str | None = None,
        present: Present = as_it_is,
        *,
        keep: Keep | None = None,
        job: int | None = None,
    ) -> Decision:
        """Answer every question of `request` and store the decision.

        `api_key` is the id of the caller's key; `present` shapes each answer for the caller.
        `keep` stores the decision in place of the journal, and returns its id. `job` is the row of
        the job of which the request is a part.
        Raises `ApiError`.
        """
        setup = self._setups.make(request, deadline, api_key, job)
        try:
            decision = self._decide(setup, deadline, api_key, present)
        except MODELS_FAULT:
            if not deadline.cancelled:
                self._journal.add_failure(setup.project, outcome.named(setup.models))
            raise
        stored = decision.redacted() if setup.strict else decision
        return replace(decision, id=(keep or self._journal.add)(stored))

    def check(
        self, request: DecisionRequest, deadline: Deadline, api_key: str | None = None
    ) -> None:
        """Raise the `ApiError` of a request that could not be carried out; no model is asked."""
        self._setups.make(request, deadline, api_key)

    def at_once(self, request: DecisionRequest, wanted: int, share: float) -> int:
        """How many such requests to make at a time, of the `wanted`, see `planned_calls.at_once`.

        All of them for one that cannot be carried out.
        """
        return self._setups.at_once(request, wanted, share, self._asker.calls_of)

    def bodies(self, request: DecisionRequest) -> Bodies:
        """The calls of a decision at most, as far as it is known how its models are asked.

        Raises `ApiError` for a request that could not be carried out.
        """
        choice, found = self._setups.chosen(request), Bodies()
        mode = request.mode or choice.pin.mode
        calls = limits.MODEL_CALLS // len(choice.models) // choice.orders
        for model in choice.models:
            way_of = partial(self._asker.first_way, model, request.project, mode, calls)
            found += bodies_at_most(request, choice.pin, choice.orders, way_of)
        return found.at_most(limits.MODEL_CALLS)

    def _decide(
        self, setup: Setup, deadline: Deadline, api_key: str | None, present: Present
    ) -> Decision:
        request = setup.request
        started = self._clock()
        answered, kind = Answered(), KINDS[setup.plan.kind]
        for number in range(len(request.stages)):
            size = stages.text_to_look_through(request, number)
            with self._rules.turn(api_key, size, deadline):
                stage = stages.open_stage(request, number, answered, deadline)
            if stage.groups:
                asker = DecisionAsker(self._asker, setup, request.state.text, stage.earlier)
                options, caller = setup.plan.options, setup.ledger.caller
                team = Team(setup.models, asker, setup.knowledge, options, self._flows, caller)
                ask = partial(partly.ask, kind) if request.partly else kind.ask
                findings = ask(team, stage.groups, deadline)
                unread = setup.knowledge.labels_to_read(stage.questions.values())
                with self._sets.turn(api_key, unread, deadline):
                    stages.close_stage(stage, findings, setup.knowledge, answered, deadline)
        results = list(answered.findings.results)
        if request.explain:
            results += explain.add(setup, self._asker, answered, self._flows)
        latency_ms = (self._clock() - started) * 1000
        answers = {key: present(key, answered.answers[key]) for key in request.questions}
        deadline.check()
        return outcome.decision(setup, answered, results, answers, latency_ms, api_key)
