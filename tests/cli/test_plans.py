from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from svc.cli.plans import ModelOptions, model_options
from svc.inprocess import DEMO_MODEL
from svc.schemas import load_decision

QUESTIONS = {"q": {"type": "noul", "instructions": "Is it?"}}


@click.command()
@click.argument("word")
@model_options
def command(word: str, asking: ModelOptions) -> None:
    click.echo(json.dumps({"word": word, "demo": asking.demo, **asking.fields}))


def fields(*options: str) -> dict[str, Any]:
    ended = CliRunner().invoke(command, ["w", *options])
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.output)
    assert found.pop("word") == "w"
    return found


def test_without_options_the_model_is_left_open() -> None:
    assert fields() == {"demo": False, "mode": "auto", "debias": True}


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (["--model", "a"], "a"),
        (["--model", "@p/a, b"], ["@p/a", "b"]),
        (["--council", "a,b"], {"council": ["a", "b"]}),
        (["--cascade", "a,b"], {"cascade": ["a", "b"], "escalate_below": 0.8}),
        (
            ["--cascade", "a,b", "--escalate-below", "0.9"],
            {"cascade": ["a", "b"], "escalate_below": 0.9},
        ),
        (["--race", "a,b,c"], {"race": ["a", "b", "c"]}),
        (["--demo"], DEMO_MODEL),
        (["--demo", "--model", "a"], "a"),
    ],
)
def test_a_plan_is_the_field_that_the_server_takes(options: list[str], model: Any) -> None:
    found = fields(*options)
    demo = found.pop("demo")
    assert found["model"] == model and demo == ("--demo" in options)
    load_decision({"state": "s", "questions": QUESTIONS, **found})


def test_mode_and_debias_are_fields_too() -> None:
    assert fields("--mode", "verbal", "--no-debias")["mode"] == "verbal"
    assert fields("--no-debias")["debias"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "a", "--race", "a,b"], "--model and --race exclude each other"),
        (["--model", "a", "--escalate-below", "0.5"], "goes with --cascade only"),
        (["--council", "a"], "--council needs 2 to 5 models"),
        (["--council", "a,b,c,d,e,f"], "--council"),
        (["--cascade", "a,b", "--escalate-below", "1.5"], "--escalate-below of --cascade must be"),
        (["--model", ""], "--model"),
        (["--model", "a,"], "--model"),
        (["--mode", "none"], "--mode"),
    ],
)
def test_what_is_no_plan_is_a_usage_error(options: list[str], words: str) -> None:
    ended = CliRunner().invoke(command, ["w", *options])
    assert ended.exit_code == 2
    assert words in ended.output
