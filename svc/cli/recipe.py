"""`svc recipe`: ready-made questions, for use as they are or after changes."""

from __future__ import annotations

import json

import click

from svc.assets import recipes
from svc.cli.completing import recipe_names
from svc.cli.groups import Suggesting
from svc.cli.tables import echo_json, json_option, table
from svc.errors import SettingsError

EXAMPLES = """\b
Examples:
  svc recipe list
  svc recipe show support-triage > questions.json
  svc map --demo -q questions.json -o answers.jsonl tickets.jsonl
"""


@click.group("recipe", cls=Suggesting, epilog=EXAMPLES)
def command() -> None:
    """Show ready-made questions.

    A recipe is a questions object, as POST /v1/decide and svc map -q take it.
    """


@command.command("list", epilog="Example: svc recipe list")
@json_option
def show_all(as_json: bool) -> None:
    """Print a table of all recipes."""
    if as_json:
        found = recipes().items()
        echo_json([{"name": name, "description": one["description"]} for name, one in found])
        return
    rows = [(name, recipe["description"]) for name, recipe in recipes().items()]
    click.echo("\n".join(table((), rows, text={0, 1})))


@command.command("show", epilog="Example: svc recipe show sentiment > questions.json")
@click.argument("name", metavar="NAME", shell_complete=recipe_names)
def show(name: str) -> None:
    """Print the questions of a recipe as JSON."""
    all_recipes = recipes()
    if name not in all_recipes:
        names = ", ".join(all_recipes)
        raise SettingsError(f"there is no recipe {name[:100]!r}; there are: {names}")
    click.echo(json.dumps(all_recipes[name]["questions"], indent=2, ensure_ascii=False))
