"""`svc report`: a saved bench run, printed again."""

from __future__ import annotations

import os

import click

from svc.cli import eval_options
from svc.cli.completing import file_names
from svc.cli.notices import notice
from svc.cli.score_table import score_json, score_table
from svc.cli.tables import echo_json, json_option
from svc.errors import SettingsError
from svc.evals import runs

EXAMPLES = """\b
Examples:
  svc bench --model @openai/gpt-4.1-mini --save runs.jsonl
  svc report runs.jsonl
  svc report --html report.html runs.jsonl
"""


@click.command("report", epilog=EXAMPLES)
@eval_options.folder
@click.option("--html", metavar="FILE", help="Also write a page with diagrams.")
@json_option
@click.argument("file", metavar="FILE", shell_complete=file_names)
def command(folder: str, html: str | None, as_json: bool, file: str) -> None:
    """Print a saved bench run again, without asking any model.

    FILE was written by `svc bench --save`. Where a row was scored several times, the last score
    counts; runs with different models, modes or debias have a table each.

    The page that --html writes needs no other file. It has reliability diagrams, confusion
    matrices, what could be automated at which confidence, and the surest mistakes with their
    states, as far as the eval sets in DIR still have them.
    """
    if html is not None and os.path.realpath(html) == os.path.realpath(file):
        raise click.UsageError("--html names the file that is read.")
    saved_runs = runs.by_run(runs.read(file))
    if not saved_runs:
        raise SettingsError(
            f"file {file!r}: it has no scored row; name a file that `svc bench --save` wrote"
        )
    scored = [
        (run, {name: [row.scored for row in rows] for name, rows in by_set.items()})
        for run, by_set in saved_runs
    ]
    if as_json:
        echo_json([score_json(*one) for one in scored])
    else:
        click.echo("\n\n".join("\n".join(score_table(*one)) for one in scored))
    if html is not None:
        # Imported here, since tables do not need the template engine.
        from svc.evals.page import write_page

        write_page(html, saved_runs, folder)
        notice(f"wrote {html}")
