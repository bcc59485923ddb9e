"""Forgets a subject: everything that is stored of all decisions about it."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from svc import jsontext
from svc.jsontext import JsonObject
from svc.store import eras, ids, kept_answers, wordings
from svc.store.database import Database
from svc.store.erasing import TOGETHER, erase
from svc.store.errors import SpoolLost
from svc.store.jobs import Job, JobRow, Jobs
from svc.store.spool import Spool

_FIND = "SELECT seq, id FROM decisions WHERE project = ? AND seq > ? AND {} ORDER BY seq"
_ASKED = (
    "SELECT decisions.seq, decisions.question_ids, coalesce(whole.readings, decisions.readings) "
    "FROM decisions LEFT JOIN decisions AS whole ON whole.seq = decisions.same_as "
    "WHERE decisions.seq IN (SELECT value FROM json_each(?))"
)
_STILL_THERE = "SELECT seq FROM decisions WHERE seq IN (SELECT value FROM json_each(?))"
_OF_REF = "ref = ?"
_OF_STATE = "lower(hex(state_hash)) IN (SELECT value FROM json_each(?))"
_TABLES = ("labels", "judgements", "review_items", "job_rows")
_COUNT = "SELECT count(*) FROM {} WHERE decision_seq IN (SELECT value FROM json_each(?))"
_KEPT = "SELECT place, answer, decision_id FROM kept_answers"
# An id of a decision, wherever it stands in an answer.
_ID = re.compile(rb"dec_[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom or what decisions of a project are about: all with a `ref`, or all of some states.

    `states` has texts, any of which may be the state as models read it.
    """

    project: str
    ref: str | None = None
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much there is, or was, of a subject.

    `waiting` counts rows of open jobs that have no answer yet, `failed` those of any job that have
    an error, and `repeats` the answers that are kept for repeated requests.
    """

    decisions: int = 0
    labels: int = 0
    judgements: int = 0
    review_items: int = 0
    job_rows: int = 0
    waiting: int = 0
    failed: int = 0
    repeats: int = 0
    wordings: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """A decision: its row, and its id."""

    seq: int
    id: bytes


class _Answer(NamedTuple):
    """To which wording one is; no sum counts those that were skipped, or given by rules."""

    question_id: int
    is_counted: bool


@dataclass(frozen=True, slots=True)
class _Rows:
    """The numbers of rows of a job, of which so many wait for an answer, or failed."""

    job: Job
    numbers: list[int]
    waiting: int
    failed: int


class Forgetting:
    """Finds and deletes what is stored of a subject."""

    def __init__(
        self,
        database: Database,
        jobs: Jobs,
        spool: Spool,
        strip: Callable[[Path], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`strip` deletes the calls and replies in a job's folder for batches.

        `clock` gives seconds since the epoch.
        """
        self._database, self._jobs, self._spool, self._strip = database, jobs, spool, strip
        self._clock = clock

    def begin(self) -> None:
        """Have no process give an answer again that it remembers from before.

        After `REMEMBERED_S` seconds none does, whatever it heard. Raises `StorageError`.
        """
        with self._database.changing():
            self._database.write(eras.begin)

    def count(self, subject: Subject) -> Forgotten:
        """How much there is. Raises `SpoolLost` and `StorageError`."""
        rows = list(self._jobs_about(subject))
        waiting = sum(one.waiting for one in rows)
        failed = sum(one.failed for one in rows) + len(self._failed_before(subject))
        found = self._find(subject, 0)
        named = {ids.text(one.id).encode() for one in found}
        counts = self._counts([one.seq for one in found])
        repeats = len(self._kept(named))
        return Forgotten(len(found), **counts, waiting=waiting, failed=failed, repeats=repeats)

    def forget(self, subject: Subject) -> Forgotten:
        """Delete it, in steps that others hardly notice; how much it was.

        Raises `SpoolLost` and `StorageError`.
        """
        waiting, failed = self._forget_rows(subject)
        self._strip_books()
        counts: Counter[str] = Counter()
        named: set[bytes] = set()
        last = repeats = 0
        # What comes meanwhile is found by another look.
        while found := self._find(subject, last):
            these = {ids.text(one.id).encode() for one in found}
            # Before the decisions are deleted, so that they are found again after a kill.
            repeats += self._forget_kept(these)
            for begin in range(0, len(found), TOGETHER):
                self._erase(found[begin : begin + TOGETHER], counts)
            named |= these
            last = found[-1].seq
        # Those that were kept meanwhile.
        repeats += self._forget_kept(named)
        with self._database.changing():
            dropped = wordings.drop_with_sums(self._database)
        wordings.drop_keys(self._database, int(self._clock() * 1000), lambda: True)
        of_jobs = {"waiting": waiting, "failed": failed}
        return Forgotten(**counts, **of_jobs, repeats=repeats, wordings=dropped)

    def _find(self, subject: Subject, after: int) -> list[_Found]:
        place: tuple[object, ...] = (subject.project, after)
        if subject.ref is not None:
            query, given = _FIND.format(_OF_REF), subject.ref
        else:
            query, given = _FIND.format(_OF_STATE), json.dumps(self._hashes(subject))
        with self._database.read() as connection:
            return [_Found(*row) for row in connection.execute(query, (*place, given))]

    def _hashes(self, subject: Subject) -> list[str]:
        salt = self._database.salt
        return [hashlib.sha256(salt + text.encode()).hexdigest() for text in subject.states]

    def _counts(self, seqs: Sequence[int]) -> dict[str, int]:
        these = json.dumps(seqs)
        with self._database.read() as connection:
            return {
                table: connection.execute(_COUNT.format(table), (these,)).fetchone()[0]
                for table in _TABLES
            }

    def _erase(self, found: Sequence[_Found], counts: Counter[str]) -> None:
        seqs = [one.seq for one in found]
        counts.update(self._counts(seqs))
        counts["decisions"] += len(seqs)
        with self._database.read() as connection:
            answers = _answers(connection, seqs)
        # Others may have to be changed first, which takes several steps.
        with self._database.changing():
            while not self._database.write(partial(_erase, answers)):
                pass

    def _kept(self, named: set[bytes]) -> list[bytes]:
        """Where answers are kept that tell of one of these decisions."""
        if not named:
            return []
        with self._database.read() as connection:
            return [
                place
                for place, answer, decision_id in connection.execute(_KEPT)
                if (decision_id or "").encode() in named
                or _tells_of(kept_answers.unpacked(answer or b""), named)
            ]

    def _forget_kept(self, named: set[bytes]) -> int:
        places = self._kept(named)
        for begin in range(0, len(places), TOGETHER):
            some = places[begin : begin + TOGETHER]
            self._database.write(partial(kept_answers.forget, places=some))
        return len(places)

    def _jobs_about(self, subject: Subject) -> Iterator[_Rows]:
        """The rows of open jobs of the project that are about the subject."""
        hashes = set(self._hashes(subject))
        for job in self._jobs.open():
            if job.project == subject.project:
                rows = self._rows(job, subject, hashes)
                if rows:
                    settled, failed = self._jobs.settled(job), self._jobs.failed(job)
                    waiting = sum(not settled[number] for number in rows)
                    yield _Rows(job, rows, waiting, len(failed.intersection(rows)))

    def _failed_before(self, subject: Subject) -> list[JobRow]:
        """Rows that failed, of jobs that have ended: of these the caller's id alone is known."""
        return [] if subject.ref is None else self._jobs.failed_as(subject.project, subject.ref)

    def _rows(self, job: Job, subject: Subject, hashes: set[str]) -> list[int]:
        found = list[int]()
        try:
            file = self._spool.opened(job.id)
        except SpoolLost:
            if self._jobs.is_open(job.seq):
                raise
            # It has ended meanwhile.
            return []
        try:
            while block := file.rows(lambda _: True):
                for number, text in enumerate(block[1], block[0]):
                    if self._is_about(jsontext.loads(text.encode()), subject, hashes):
                        found.append(number)
        finally:
            file.close()
        return found

    def _is_about(self, row: JsonObject, subject: Subject, hashes: set[str]) -> bool:
        if "state" not in row:
            # It was forgotten before.
            return False
        if subject.ref is not None:
            return row.get("ref") == subject.ref
        state = jsontext.as_text(row["state"])
        return hashlib.sha256(self._database.salt + state.encode()).hexdigest() in hashes

    def _forget_rows(self, subject: Subject) -> tuple[int, int]:
        """Settle the rows, so that none is asked, and take them out of the files.

        Returns how many waited, and how many had failed.
        """
        waiting = failed = 0
        for one in self._jobs_about(subject):
            waiting += self._jobs.forget(one.job.seq, one.numbers)
            failed += one.failed
            # Once the rows are settled, so that who begins another folder does not ask them; and
            # before they leave the file, so that they are found again after a kill.
            self._spool.put_book_aside(one.job.id)
            if self._jobs.is_open(one.job.seq):
                self._spool.replace(one.job.id, partial(_without, set(one.numbers)))
            else:
                # These were its last ones.
                self._spool.delete(one.job.id)
        before = self._failed_before(subject)
        self._jobs.drop_failed(before)
        return waiting, failed + len(before)

    def _strip_books(self) -> None:
        """Take out of folders for batches what tells of rows, where no open job needs it."""
        # In this order: a folder that is there has a job that was open before.
        names = set(self._spool.books())
        for name in names - {job.id for job in self._jobs.open()}:
            self._strip(self._spool.book(name))


def _erase(answers: Mapping[int, Sequence[_Answer]], connection: sqlite3.Connection) -> bool:
    """Delete those decisions that are still there, if that is done in one step; whether it is.

    It is noted how many answers there were to each wording, 0 too.
    """
    these = json.dumps(list(answers))
    still_there = [seq for (seq,) in connection.execute(_STILL_THERE, (these,))]
    if not erase(connection, list(answers)):
        return False
    noted: Counter[int] = Counter()
    for seq in still_there:
        for answer in answers[seq]:
            noted[answer.question_id] += answer.is_counted
    wordings.note_deleted(connection, noted)
    return True


def _answers(connection: sqlite3.Connection, seqs: Sequence[int]) -> dict[int, list[_Answer]]:
    """The answers of these decisions by their rows. To read them takes long."""
    return {
        seq: [
            _Answer(question_id, reading is not None)
            for question_id, reading in zip(
                json.loads(question_ids), json.loads(readings).values(), strict=True
            )
        ]
        for seq, question_ids, readings in connection.execute(_ASKED, (json.dumps(seqs),))
    }


def _without(gone: Set[int], number: int, text: str) -> str:
    """The JSON of a row, or what stands in the place of one that is gone."""
    return "{}" if number in gone else text


def _tells_of(answer: bytes, named: set[bytes]) -> bool:
    return not named.isdisjoint(_ID.findall(answer))
