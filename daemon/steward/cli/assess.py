"""`steward assess`: what faults have cost here, from Slurm's own accounting; needs no head."""

from typing import Any

import click

from steward.assess.__main__ import assess as assessed
from steward.assess.ask import AskError
from steward.assess.options import CHOICES, Choice


def _option(one: Choice) -> click.Option:
    name = one.name.replace("-", "_")
    if one.metavar is None:
        return click.Option([f"--{one.name}", name], is_flag=True, help=one.help)
    return click.Option(
        [f"--{one.name}", name],
        metavar=one.metavar,
        default=one.default,
        show_default=one.default is not None,
        multiple=one.is_repeatable,
        help=one.help,
    )


def _run(**said: Any) -> None:
    context = click.get_current_context()
    of_all = bool(context.parent and context.parent.params["as_json"])
    named = {name.replace("_", "-"): value for name, value in said.items()}
    try:
        click.echo(assessed({**named, "json": named["json"] or of_all}), nl=False)
    except AskError as error:
        raise click.ClickException(str(error)) from None


assess = click.Command(
    "assess",
    callback=_run,
    params=[_option(one) for one in CHOICES],
    help="Show what faults have cost so far.\n\n"
    "From Slurm's own accounting, on any cluster: node-hours lost, and what Steward would have saved. Needs no head.",
)
