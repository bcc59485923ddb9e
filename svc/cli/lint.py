"""`svc lint`: faults in the wording of questions, without a model call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click

from svc import jsontext
from svc.cli.completing import question_files
from svc.cli.lint_text import counted, findings_text
from svc.cli.notices import FAILED
from svc.cli.question_files import read_named
from svc.cli.tables import echo_json, echo_lines, table
from svc.wording import FAULTS, Finding, lint

EXAMPLES = """\b
Examples:
  svc lint support-triage
  svc lint questions.json evals/support-queue.json
  svc lint --json questions.json | jq '.[].code'
  svc lint --faults
"""


@click.command("lint", epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="QUESTIONS...", shell_complete=question_files)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, not text.")
@click.option("--faults", is_flag=True, help="Print what is looked for, and end.")
def command(names: Sequence[str], as_json: bool, faults: bool) -> None:
    """Find faults in the wording of questions.

    No model is asked. Each of QUESTIONS is a file, or the name of a recipe; a file holds a
    questions object as svc map -q takes it, a whole request of POST /v1/decide, or an eval set.

    A finding says where the fault is, why it hurts, and what to write instead. Faults of options,
    levels, bounds, examples and conditions are found in any language, those of single words in
    English. A finding is advice: some questions have to be put that way.

    The exit status is 0 when nothing is found, 1 when something is, or when questions are not
    valid at all.
    """
    if faults and as_json:
        echo_json([{"code": code, "why": one.why} for code, one in FAULTS.items()])
        return
    if faults:
        click.echo("\n".join(table((), [(code, one.why) for code, one in FAULTS.items()], {0, 1})))
        return
    if not names:
        raise click.UsageError("Missing argument 'QUESTIONS...'.")
    found = {one.name: lint(one.questions) for one in map(read_named, names)}
    echo_lines(_json(found) if as_json else _text(found))
    if any(found.values()):
        raise click.exceptions.Exit(FAILED)


def _json(found: Mapping[str, Sequence[Finding]]) -> str:
    findings = [{"source": name, **asdict(one)} for name, of in found.items() for one in of]
    return jsontext.dumps(findings)


def _text(found: Mapping[str, Sequence[Finding]]) -> str:
    lines = []
    for name, findings in found.items():
        lines += [f"{name}: {counted(findings)}", *findings_text(findings)]
    return "\n".join(lines)
