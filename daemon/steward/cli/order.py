"""Commands that change something; they need root, SlurmUser or a name in `api.admins`."""

import click

from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.show import line


@click.command()
@click.argument("why", required=False, default="")
@JSON
@click.pass_obj
@one_line_errors
def pause(context: Context, why: str, as_json: bool) -> None:
    """Take no action on nodes until `resume-actions`.

    Jobs are still resumed. Survives restarts of the head.
    """
    _done(context, as_json, context.client().pause(why), "Paused. `steward plan --dry-run` shows what is held back.")


@click.command("resume-actions")
@JSON
@click.pass_obj
@one_line_errors
def resume_actions(context: Context, as_json: bool) -> None:
    """Act again after `pause`, and reset tripped breakers."""
    _done(context, as_json, context.client().resume_actions(), "Actions are resumed; breakers are reset.")


@click.command()
@click.argument("cases", nargs=-1, required=True, metavar="CASE|NODE...")
@JSON
@click.pass_obj
@one_line_errors
def approve(context: Context, cases: tuple[str, ...], as_json: bool) -> None:
    """Approve repairs that wait for a person. By case or node: `steward approve c17`, `steward approve n[2-4]`."""
    named = ",".join(cases)
    text = f"Approved: {named}. Each repair begins in its turn; `steward cases` shows them."
    _done(context, as_json, context.client().approve(named), text)


def _done(context: Context, as_json: bool, answer: dict[str, object], text: str) -> None:
    if wants_json(context, as_json):
        print_json(answer)
    else:
        line(text)
