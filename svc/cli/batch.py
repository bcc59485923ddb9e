"""`svc batch`: jobs of many rows on a running server, handed in now and fetched later."""

from __future__ import annotations

import click

from svc.cli.groups import Suggesting
from svc.cli.job_results import results
from svc.cli.job_showing import cancel, show, status
from svc.cli.job_submitting import submit

EXAMPLES = """\b
Examples:
  svc batch submit -q support-triage --ref-column id tickets.csv
  svc batch status JOB
  svc batch results JOB -o answers.jsonl
"""


@click.group("batch", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Hand a file to a running server, and fetch the answers later.

    The server asks its models about each row, also while nobody is connected, and after it was
    started again. Each row becomes a decision, as svc map --url makes it, which gives way to other
    requests. The server needs SVC_MASTER_KEY, with which rows that wait are encrypted.
    """


for one in (submit, status, results, cancel, show):
    command.add_command(one)
