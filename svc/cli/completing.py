"""What a shell offers for a word that is not finished: recipes, eval sets, commands, files."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from svc.assets import recipes

Offered = list[CompletionItem]


def file_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offered:
    """Files, which the shell itself finds."""
    return [CompletionItem(incomplete, type="file")]


def recipe_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offered:
    """Recipes, with what they are about."""
    found = recipes().items()
    return [
        CompletionItem(name, help=recipe["description"])
        for name, recipe in found
        if name.startswith(incomplete)
    ]


def question_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offered:
    """Recipes, and files of this folder; files of another one where its name is begun."""
    named = recipe_names(ctx, param, incomplete)
    if "/" in incomplete or not named:
        return file_names(ctx, param, incomplete)
    files = sorted(one.name for one in Path().glob("*.json") if one.name.startswith(incomplete))
    return [*map(CompletionItem, files), *named]


def set_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offered:
    """Eval sets of the folder that the command line names."""
    folder = Path(ctx.params.get("folder") or "evals")
    names = sorted(path.stem for path in folder.glob("*.json"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def command_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offered:
    """The commands, of the group that is named already."""
    group: click.Command | None = ctx.find_root().command
    for name in ctx.params.get("names") or ():
        group = group.get_command(ctx, name) if isinstance(group, click.Group) else None
    names = group.list_commands(ctx) if isinstance(group, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
