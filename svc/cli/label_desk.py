"""The review queue of a running server, with the texts of a reviewer's file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from svc import jsontext
from svc.cli.label_texts import Texts
from svc.cli.server import Answer, Server, Unreachable
from svc.cli.server_lines import ServerError
from svc.errors import SettingsError
from svc.jsontext import JsonObject
from svc.phrases import listed
from svc.questions import Question, from_definition

# The decisions that are asked for at once. When a file has none of so many, it is the wrong one.
AHEAD = 20
SUSPICIOUS = 10
# Seconds before a request that failed is sent again.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0)
LONGEST_PAUSE_S = 60.0
# What may pass by itself.
_LIMITED = 429
_FAILED = 500


@dataclass(frozen=True, slots=True)
class Item:
    """A decision to label; `shown` is the model's answer, where it may be seen before.

    `asked` is the question as the server worded it when it handed this out.
    """

    id: str
    question: str
    asked: Question
    name: str
    tags: dict[str, str]
    text: str
    shown: JsonObject | None


class Desk:
    """Takes decisions from the queue, and sends labels, each until it is saved."""

    def __init__(
        self,
        server: Server,
        query: dict[str, str],
        texts: Texts,
        told: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`query` are parameters of `GET /v1/review`; `told` gets what a reviewer should know."""
        self._server, self._query, self._texts = server, query, texts
        self._told, self._sleep = told, sleep
        self._ahead: list[Item] = []
        self._known: set[tuple[str, str]] = set()
        # The decisions that have labels of this run.
        self.saved: set[tuple[str, str]] = set()
        self.progress: JsonObject = {}
        self.labels = 0
        # Whether a label was sent of which nobody knows yet whether it is saved.
        self.on_its_way = False

    def next(self) -> Item | None:
        """The next decision, None where none is left. Raises `SettingsError`, `ServerError`."""
        while not self._ahead and self._fetched():
            pass
        return self._ahead.pop(0) if self._ahead else None

    def label(self, item: Item, label: Any) -> None:
        """Save a label; it counts as `saved` from then on. Raises `ServerError`."""
        body = {**self._about(item), "label": label}
        self.on_its_way = True
        try:
            self.labels = self._ask("POST", "/v1/feedback", body)["labels"]
        except ServerError:
            self.on_its_way = False
            raise
        self.on_its_way = False
        self.saved.add((item.id, item.question))

    def skip(self, item: Item) -> None:
        """Give an item back. Raises `ServerError`."""
        self._give_back(self._about(item))

    def answer(self, item: Item) -> JsonObject:
        """What the model answered. Raises `ServerError`."""
        answers: JsonObject = self._ask("GET", f"/v1/decisions/{item.id}")["answers"]
        answer: JsonObject = answers[item.question]
        return answer

    def _about(self, item: Item) -> JsonObject:
        about = {"decision_id": item.id, "question": item.question}
        return {**about, "reviewer": self._query["reviewer"]}

    def _fetched(self) -> bool:
        """Fetch more; whether there was any that is new."""
        query = urlencode({**self._query, "limit": AHEAD})
        page = self._ask("GET", f"/v1/review?{query}")
        asked = from_definition(jsontext.dumps(page["definition"]))
        self.progress, self.labels = page["progress"], page["progress"]["labels"]
        new = [one for one in page["items"] if (one["id"], one["question"]) not in self._known]
        absent = [one for one in new if self._texts.of(one) is None]
        self._check(new, absent)
        self._known.update((one["id"], one["question"]) for one in new)
        for one in absent:
            self._give_back(self._about(_item(one, asked, "")))
        if absent:
            self._told(f"{len(absent)} not in the file: skipped, others may have them.")
        found = [(one, self._texts.of(one)) for one in new]
        self._ahead += [_item(one, asked, text) for one, text in found if text is not None]
        return bool(new)

    def _check(self, new: Sequence[JsonObject], absent: Sequence[JsonObject]) -> None:
        """Raise `SettingsError` when the file is probably another one's."""
        suspicious = not self._known or len(absent) >= SUSPICIOUS
        if new and len(absent) == len(new) and suspicious:
            names = listed([one["ref"] or one["id"] for one in new[:3]])
            raise SettingsError(
                f"the file has none of the next {len(new)} decisions of the queue, such as "
                f"{names}; is it the right one, and the right --ref-column?"
            )

    def _give_back(self, body: JsonObject) -> None:
        try:
            self._ask("POST", "/v1/review/skip", body)
        except ServerError as error:
            # It went to somebody else meanwhile.
            if error.status not in (404, 422):
                raise

    def _ask(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        """The answer to one request, which is sent until there is one. Raises `ServerError`."""
        sent = None if body is None else jsontext.dumps(body).encode()
        failures = 0
        while True:
            try:
                answer = self._server.ask(method, path, sent)
                why = answer.error[1] if answer.error else f"the server answered {answer.status}"
            except Unreachable as error:
                answer, why = None, str(error)
            if answer is not None and not _passing(answer):
                return _taken(answer)
            pause = _pause_s(answer, failures)
            failures += 1
            self._told(f"Not saved yet: {why} Trying again in {pause:.0f} s." if sent else why)
            self._sleep(pause)


def _item(one: JsonObject, asked: Question, text: str) -> Item:
    name = one["ref"] or one["id"]
    return Item(one["id"], one["question"], asked, name, one["tags"], text, one.get("answer"))


def _passing(answer: Answer) -> bool:
    return answer.status == _LIMITED or answer.status >= _FAILED


def _pause_s(answer: Answer | None, failures: int) -> float:
    told = "" if answer is None else answer.retry_after or ""
    if told.isascii() and told.isdigit():
        return min(max(float(told), PAUSES_S[0]), LONGEST_PAUSE_S)
    return PAUSES_S[min(failures, len(PAUSES_S) - 1)]


def _taken(answer: Answer) -> JsonObject:
    if answer.status == 200 and isinstance(answer.value, dict):
        return answer.value
    if answer.error is None:
        raise ServerError(
            answer.status, "no_server", f"no svc server answers there (status {answer.status})"
        )
    raise ServerError(answer.status, *answer.error)
