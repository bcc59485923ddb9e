"""Tickets to label, and a server that has decisions on them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.serving import Server

TEAM: dict[str, Any] = {
    "type": "choice",
    "instructions": "Which team should handle this ticket?",
    "options": {
        "account": "Login, password and profile",
        "billing": "Payments, invoices and refunds",
        "technical": "Errors, outages and bugs",
    },
}
# The options in the order of their keys, then the escape option.
NAMES = ("account", "billing", "technical", "none_of_these")
# The texts of four records, of which the third is empty, in files as svc map reads them.
NOTES = ("the first, of two", "the second; of two", "", "the fourth")
_LINES = "\n" + "".join(json.dumps({"text": note}) + "\n" for note in NOTES)
NOTE_FILES = (
    ("notes.txt", "\r\n".join(NOTES)),
    ("notes.tsv", "text\n" + "\n".join(f'"{note}"' for note in NOTES)),
    ("one.csv", "\r\ntext\r\n\r\n" + "".join(f'"{note}"\r\n' for note in NOTES)),
    ("blank.jsonl", _LINES),
    ("blank", _LINES),
)
# Texts that do not go with what svc map made of two records, or not alone, and why.
MADE_OF_TWO = '{"line":1,"id":"dec_1"}\n{"line":2,"id":"dec_2"}\n'
UNFIT = (
    ("torn.jsonl", '{"text": "a\n{"text": "b"}\n', "line 1: "),
    ("torn", '{"text": "a\n{"text": "b"}\n', "line 1: "),
    ("short.jsonl", '{"text": "a"}\n', "has an answer for record 2, and "),
    ("alone.txt", "a\nb\n", "has no columns, and so no refs"),
)
# A word that stands in every text and nowhere else.
MARK = "zebrafish"
_PARTS = ("I was charged twice", 'My login fails; it says:\n"wrong, again"', "An error, a crash")


@dataclass(frozen=True)
class Desk:
    """A server that has decisions on tickets, its database, their project and their texts."""

    server: Server
    db: Path
    project: str
    texts: Mapping[str, str]

    def labels(self, question: str = "team") -> dict[str, Any]:
        """What was labelled, by ref."""
        page = self.server.get(f"/v1/audit?project={self.project}&limit=100").json()
        shown = [self.server.get(f"/v1/decisions/{one['id']}").json() for one in page["entries"]]
        return {
            one["ref"]: found["label"]
            for one in shown
            for found in one["labels"]
            if found["question"] == question
        }


def tickets(count: int) -> dict[str, str]:
    """Texts by ref, some with quotes, delimiters and line breaks."""
    return {f"T-{at}": f"{_PARTS[at % len(_PARTS)]}. {MARK} {at}" for at in range(count)}


def seeded(
    server: Server,
    db: Path,
    count: int,
    questions: Mapping[str, Any] | None = None,
    project: str = "desk",
) -> Desk:
    """Decisions of a project on so many tickets."""
    texts = tickets(count)
    for ref, text in texts.items():
        body = {"state": text, "questions": questions or {"team": TEAM}, "project": project}
        assert server.post({**body, "ref": ref}).status_code == 200
    return Desk(server, db, project, texts)


def spreadsheet(
    path: Path,
    texts: Mapping[str, str],
    delimiter: str = ",",
    head: tuple[str, str] = ("ref", "text"),
) -> Path:
    """A CSV file as spreadsheets write it, with a byte order mark."""
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows([head, *texts.items()])
    path.write_text(written.getvalue(), "utf-8-sig", newline="")
    return path
