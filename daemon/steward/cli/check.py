"""`steward check`: checks on trial, which report only until they may take nodes out."""

import click

from steward.cli.context import Context, with_json
from steward.cli.deep import deep, list_, show
from steward.cli.show import listed, print_done, when


@click.group()
def check() -> None:
    """Arm or disarm a check, or run a deep check. `steward checks` lists all checks and their results."""


@check.command()
@with_json
def trials(context: Context) -> None:
    """List the site's checks on trial. Each version: on trial (it only reports), armed or refused, and why."""
    found = context.client().array("/v1/checks/trials")
    rows = ((one["check"], one["version"][:12], one["state"], when(one["since"]), one["text"]) for one in found)
    columns = ("CHECK", "VERSION", "STATE", "SINCE", "WHY")
    listed(context, found, columns, rows, empty="No agent has reported a check of the site.")


@check.command()
@click.argument("name", metavar="CHECK")
@with_json
def arm(context: Context, name: str) -> None:
    """Let CHECK take nodes out now, whatever its trial says."""
    _arm(context, name, armed=True)


@check.command()
@click.argument("name", metavar="CHECK")
@with_json
def disarm(context: Context, name: str) -> None:
    """Let CHECK only report, until it is armed or changed."""
    _arm(context, name, armed=False)


def _arm(context: Context, name: str, *, armed: bool) -> None:
    answer = context.client().arm_check(name, armed=armed)
    print_done(context, answer, f"{name} may take nodes out." if armed else f"{name} only reports.")


for command in (deep, list_, show):
    check.add_command(command)
