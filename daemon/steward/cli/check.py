"""Orders about checks."""

import click

from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.deep import deep, show
from steward.cli.deep import list_ as list_deep
from steward.cli.show import line, table, when


@click.group()
def check() -> None:
    """Health checks: which may take nodes out."""


@check.command()
@JSON
@click.pass_obj
@one_line_errors
def trials(context: Context, as_json: bool) -> None:
    """The site's checks on trial. Each version: on trial (it only reports), armed or refused, and why."""
    found = context.client().trials()
    if wants_json(context, as_json):
        print_json(found)
        return
    rows = [(one["check"], one["version"][:12], one["state"], when(one["since"]), one["text"]) for one in found]
    table(("CHECK", "VERSION", "STATE", "SINCE", "WHY"), rows, empty="No agent has reported a check of the site.")


@check.command()
@click.argument("name", metavar="CHECK")
@JSON
@click.pass_obj
@one_line_errors
def arm(context: Context, name: str, as_json: bool) -> None:
    """Let CHECK take nodes out now, whatever its trial says."""
    _arm(context, name, as_json, armed=True)


@check.command()
@click.argument("name", metavar="CHECK")
@JSON
@click.pass_obj
@one_line_errors
def disarm(context: Context, name: str, as_json: bool) -> None:
    """Let CHECK only report, until it is armed or changed."""
    _arm(context, name, as_json, armed=False)


def _arm(context: Context, name: str, as_json: bool, *, armed: bool) -> None:
    answer = context.client().arm_check(name, armed=armed)
    if wants_json(context, as_json):
        print_json(answer)
    else:
        line(f"{name} may take nodes out." if armed else f"{name} only reports.")


for command in (deep, list_deep, show):
    check.add_command(command)
