"""What the callers saw, and when which fault was on; written by many threads."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BROKEN = 0  # the status of a request whose connection broke
LIMITED = 429  # the status of what a limit refused
STORAGE = 500  # the status of what could not be stored
BY_BUDGET = "the budget of "  # stands in the message where a budget refused


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request and what came of it; times are on the monotonic clock."""

    what: str
    began: float
    ended: float
    status: int
    type: str = ""  # of the error


@dataclass(frozen=True, slots=True)
class Window:
    """A fault, from its beginning until the server answered again."""

    name: str
    began: float
    ended: float
    recovered: float
    excuses: frozenset[int] = frozenset()  # statuses that requests within it may have

    @property
    def recovery_s(self) -> float:
        return self.recovered - self.ended


@dataclass(slots=True)
class Asked:
    """Every request about one state."""

    project: str
    questions: int  # of each request
    answers: dict[str, Any] = field(default_factory=dict)  # by decision id, as returned
    unknown: int = 0  # requests that may have been stored although nobody was told


@dataclass(slots=True)
class Labelled:
    """What one question of a decision may be labelled with, as far as its caller knows."""

    possible: list[Any] = field(default_factory=lambda: [None])  # None: no label at all

    def tried(self, label: Any, answered: bool) -> None:
        """Note a label; one that was answered is there, another one may be."""
        self.possible = [label] if answered else [*self.possible, label]


class Journal:
    """Everything that is judged at the end."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.windows: list[Window] = []
        self.asked: dict[str, Asked] = {}  # by state
        self.labelled: dict[tuple[str, str], Labelled] = defaultdict(Labelled)  # id, question
        # How often a budget refused, by the project that was asked in.
        self.refused: Counter[str] = Counter()
        self.problems: list[str] = []
        self._lock = threading.Lock()

    def decided(self, request: Mapping[str, Any], status: int, body: Any) -> None:
        """Note what came of the request of a decision."""
        project = request["project"]
        with self._lock:
            one = Asked(project, len(request["questions"]))
            asked = self.asked.setdefault(request["state"], one)
            if status == LIMITED and BY_BUDGET in body["error"]["message"]:
                self.refused[project] += 1
            elif status == 200:
                if body["id"] in asked.answers:
                    self.problems.append(f"{body['id']} was given twice")
                asked.answers[body["id"]] = body["answers"]
            elif status in (BROKEN, STORAGE):
                asked.unknown += 1

    def labelled_as(self, decision_id: str, question: str, label: Any, status: int) -> None:
        """Note what came of a label."""
        with self._lock:
            if status in (200, BROKEN, STORAGE):
                self.labelled[decision_id, question].tried(label, status == 200)

    def problem(self, text: str) -> None:
        """Note what must not be."""
        self.problems.append(text)
