"""`svc label`: the review queue of a running server in a terminal."""

from __future__ import annotations

import signal
from contextlib import closing

import click

from svc.cli.asking import understanding
from svc.cli.completing import file_names
from svc.cli.label_desk import Desk
from svc.cli.label_keys import typed
from svc.cli.label_session import Session
from svc.cli.label_texts import read_texts
from svc.cli.notices import notice
from svc.cli.server import URL, Server, key_option

EXAMPLES = """\b
Examples:
  svc label --project tickets --question team --reviewer ada tickets.csv
  svc label --project tickets --question team --reviewer ada tickets.jsonl answers.jsonl
  svc label --url https://decide.example.com --project tickets --question team --reviewer ada \\
    --ref-column number --text-column body tickets.csv
"""


@click.command("label", epilog=EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=file_names)
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The running server.")
@key_option
@click.option("--project", metavar="P", help="The project; by default that of the server.")
@click.option("--question", metavar="Q", required=True, help="The key of the question.")
@click.option("--reviewer", metavar="NAME", required=True, help="Who labels.")
@click.option("--ref-column", metavar="C", help="The column of refs; by default an obvious one.")
@click.option("--text-column", metavar="C", help="The column of texts; by default an obvious one.")
@click.option("--show-answers", is_flag=True, help="Show the model's answer before you label.")
def command(
    files: tuple[str, ...],
    url: str,
    api_key: str | None,
    project: str | None,
    question: str,
    reviewer: str,
    ref_column: str | None,
    text_column: str | None,
    show_answers: bool,
) -> None:
    """Label decisions of a running server.

    FILE has the texts, which stay on this machine: CSV or JSON lines with the ref or the id of
    each decision, or the input of svc map together with its output, which are joined by line. The
    server hands out decisions with its review queue, and keeps each label as it is given.

    In a terminal a key answers: 1 to 9 for options, y and n, u to undo, s to skip, q to quit.
    Otherwise standard input has a line for each item. After Ctrl-C what was given is saved; the
    exit status is then 130.
    """
    texts = read_texts(files, ref_column, text_column)
    if texts.unsure:
        notice(f"{texts.unsure:,} names have several texts in the file; they are not used.")
    answers = "shown" if show_answers else "hidden"
    query = {"question": question, "reviewer": reviewer, "answers": answers}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with closing(Server(url, api_key)) as server:
        desk = Desk(
            server, query if project is None else {**query, "project": project}, texts, notice
        )
        try:
            with understanding(url), typed() as keys:
                Session(desk, keys).run()
        finally:
            click.echo(_summary(desk))


def _summary(desk: Desk) -> str:
    labels = "1 label" if len(desk.saved) == 1 else f"{len(desk.saved):,} labels"
    return f"\n{labels} saved{', one more was on its way' if desk.on_its_way else ''}."
