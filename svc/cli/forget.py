"""`svc forget`: everything about a subject goes from the database and the files beside it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import click

from svc import jsontext, limits
from svc.bulk.stripping import strip
from svc.cli import database
from svc.cli.notices import notice
from svc.errors import InvalidJson, SettingsError, SvcError
from svc.names import UnsoundName, visible_text
from svc.store import (
    MASTER_KEY,
    REMEMBERED_S,
    Database,
    Forgetting,
    Forgotten,
    Jobs,
    Remnants,
    Spool,
    StorageError,
    Subject,
)

REMAINS = """\
What remains, which this command cannot reach:
- copies of the database: backups, snapshots of its disk, and what the disk itself keeps of files
- logs of the server, of proxies and of whoever sent the requests: times, addresses, request ids
- for 30 days the ids of rows that failed, in jobs that have ended, where these are not the ref
- sums over time, which tell of no single decision, and calibrators
- what model providers keep of their calls"""

EXAMPLES = """\b
Examples:
  svc forget --ref customer-17 --project shop --dry-run
  svc forget --ref customer-17 --project shop
  svc forget --state-file message.txt --project shop
"""

_WORDS = {
    "decisions": "decisions",
    "labels": "labels",
    "judgements": "words of reviewers",
    "review_items": "places in review queues",
    "job_rows": "answered rows of jobs",
    "waiting": "rows of jobs that wait",
    "failed": "rows of jobs that failed",
    "repeats": "answers kept for repeats",
    "wordings": "wordings of questions that nobody else asked",
}


class NotErased(SvcError):
    """Rows are deleted, and their bytes may still be there."""


@click.command("forget", epilog=EXAMPLES)
@click.option("--ref", metavar="R", help="All decisions with this ref.")
@click.option(
    "--state-file",
    metavar="FILE",
    help="All decisions about the state in FILE: its text, or its JSON.",
)
@click.option("--project", metavar="P", required=True, help="The project of the decisions.")
@click.option("--dry-run", is_flag=True, help="Only count what there is.")
@database.option
def command(ref: str | None, state_file: str | None, project: str, dry_run: bool, db: str) -> None:
    """Erase everything about a subject from the database.

    Its decisions go with their labels, rows of jobs, and all else that hangs on them, also beside a
    running server, and after that no byte of them is in the file, in its log or in free pages.
    Where rows of the project wait in jobs, SVC_MASTER_KEY is needed to look into them. Requests
    about the subject that are still under way are not known here: stop them before.
    """
    subject = _subject(ref, state_file, database.checked_project("--project", project))
    with _opened(db) as (opened, remnants):
        jobs = Jobs(opened)
        spool = Spool(opened, db, os.environ.get(MASTER_KEY) or None)
        _check_jobs(jobs, spool, subject.project)
        forgetting = Forgetting(opened, jobs, spool, strip)
        if dry_run:
            click.echo("\n".join(_lines("stored", forgetting.count(subject))))
            return
        forgetting.begin()
        time.sleep(REMEMBERED_S)
        click.echo("\n".join(_lines("erased", forgetting.forget(subject))))
        _clean(remnants)
    click.echo(REMAINS)


@contextmanager
def _opened(db: str) -> Iterator[tuple[Database, Remnants]]:
    if not Path(db).exists():
        raise SettingsError(f"database {db!r}: there is no such file; see --db")
    # Closed last, see `Remnants`.
    with closing(Remnants(Path(db))) as remnants, database.opened(db) as opened:
        yield opened, remnants


def _subject(ref: str | None, state_file: str | None, project: str) -> Subject:
    if (ref is None) == (state_file is None):
        raise click.UsageError("name the subject by either --ref or --state-file")
    if ref is not None:
        try:
            return Subject(project, ref=visible_text(ref, limits.REF_CHARS))
        except UnsoundName as error:
            raise SettingsError(f"--ref {error}") from None
    assert state_file is not None
    return Subject(project, states=tuple(_states(Path(state_file))))


def _states(path: Path) -> list[str]:
    """What models may have read of the state in a file: its text, also without its last line break,
    or its JSON as it is sent to them.
    """
    content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise SettingsError(f"--state-file {str(path)!r} is not UTF-8 text") from None
    found = [text, text.removesuffix("\n").removesuffix("\r")]
    with suppress(InvalidJson, RecursionError):
        # Else it is a text alone.
        found.append(jsontext.as_text(jsontext.loads(content)))
    return list(dict.fromkeys(found))


def _check_jobs(jobs: Jobs, spool: Spool, project: str) -> None:
    waiting = any(job.project == project for job in jobs.open())
    if waiting and not spool.has_key:
        raise SettingsError(
            f"the project has open jobs, whose rows are encrypted: set {MASTER_KEY} as the server "
            "has it, or cancel the jobs first"
        )


def _lines(head: str, found: Forgotten) -> Iterator[str]:
    yield head
    for name, words in _WORDS.items():
        count = getattr(found, name)
        if count or name == "decisions":
            yield f"  {words}: {count:,}"


def _clean(remnants: Remnants) -> None:
    """Raise `NotErased` unless no byte is left."""
    notice("Overwriting what is left of them in the file ...")
    try:
        clean = remnants.clean()
    except StorageError as error:
        raise NotErased(
            "they are deleted, but bytes of them may still be in the file, which was not cleaned: "
            f"{error.message}; run the command again"
        ) from error
    if not clean:
        raise NotErased(
            "they are deleted, but a program that reads the database holds its log, in which bytes "
            "of them may still be; run the command again when it has ended, as a backup or a shell "
            "with an open transaction"
        )
