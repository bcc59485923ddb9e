"""The options that commands about jobs share."""

from __future__ import annotations

from functools import partial

import click

from svc import limits
from svc.cli.completing import file_names
from svc.schemas import PROVIDER

output_option = partial(click.option, "-o", "--output", metavar="FILE", shell_complete=file_names)
restart_option = click.option(
    "--restart", is_flag=True, help="Start again and overwrite the output."
)
expires_option = click.option(
    "--expires-after",
    type=click.IntRange(*limits.JOB_HOURS),
    default=limits.JOB_HOURS_DEFAULT,
    show_default=True,
    metavar="HOURS",
    help="Ask no further row after so many hours.",
)
provider_batch_option = click.option(
    "--provider-batch",
    "batch",
    flag_value=PROVIDER,
    help="Have the models' providers answer in batches: at half the price, within a day.",
)
budget_option = click.option(
    "--budget-usd",
    type=click.FloatRange(*limits.BUDGET_USD),
    metavar="N",
    help="The job fails where it would cost more dollars.",
)
