"""Commands about the hardware behind the nodes."""

from typing import Any

import click

from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.show import line, table

_SHOWN = 20


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every piece with a score, not only the worst of the cluster.")
@JSON
@click.pass_obj
@one_line_errors
def lemons(context: Context, everything: bool, as_json: bool) -> None:
    """Hardware that fails again and again. Also how each score comes about (28 days, halved every 14)."""
    found = context.client().lemons()
    if wants_json(context, as_json):
        print_json(found)
        return
    shown = found if everything else [one for one in found if one["is_top"] or one["is_candidate"]][:_SHOWN]
    table(("SCORE", "", "NODE", "HARDWARE", "WHY"), [_row(one) for one in shown], empty="No hardware has a score.")
    if len(found) > len(shown):
        line(f"{len(found) - len(shown)} more have a score; --all shows them.")


def _row(lemon: dict[str, Any]) -> tuple[str, ...]:
    mark = "quarantine?" if lemon["is_candidate"] else ""
    return f"{lemon['score']:.1f}", mark, lemon["node"], lemon["piece"], lemon["arithmetic"]
