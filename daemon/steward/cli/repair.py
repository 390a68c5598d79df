"""Commands about repairs: pause, resume, approve, breakers, lemons.

Commands that change something need root, SlurmUser or a name in `api.admins`.
"""

from typing import Any

import click

from steward.cli.context import Context, print_json, with_json
from steward.cli.show import line, listed, print_done, table, when


@click.command()
@click.argument("why", required=False, default="")
@with_json
def pause(context: Context, why: str) -> None:
    """Take no action on nodes until `resume-actions`.

    Jobs are still resumed. Survives restarts of the head.
    """
    print_done(context, context.client().pause(why), "Paused. `steward plan --dry-run` shows what is held back.")


@click.command("resume-actions")
@with_json
def resume_actions(context: Context) -> None:
    """Act again after `pause`, and reset tripped breakers."""
    print_done(context, context.client().resume_actions(), "Actions are resumed; breakers are reset.")


@click.command()
@click.argument("cases", nargs=-1, required=True, metavar="CASE|NODE...")
@with_json
def approve(context: Context, cases: tuple[str, ...]) -> None:
    """Approve repairs that wait for a person. By case or node: `steward approve c17`, `steward approve n[2-4]`."""
    named = ",".join(cases)
    text = f"Approved: {named}. Each repair begins in its turn; `steward cases` shows them."
    print_done(context, context.client().approve(named), text)


@click.group()
def breaker() -> None:
    """List or reset breakers, which limit repairs. They keep Steward from taking out too much."""


@breaker.command("list")
@with_json
def list_(context: Context) -> None:
    """List tripped breakers and why they tripped. Also when a first repair is let through."""
    found = context.client().array("/v1/breakers")
    rows = (
        (one["scope"], when(one["tripped"]), one["trial"] or when(one["next_try"]), one["now"], one["text"])
        for one in found
    )
    columns = ("SCOPE", "TRIPPED", "FIRST REPAIR", "NOW", "WHY IT TRIPPED")
    listed(context, found, columns, rows, empty="No breaker is tripped.")


@breaker.command()
@click.argument("scope", required=False, default="")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before all are reset.")
@with_json
def reset(context: Context, scope: str, yes: bool) -> None:
    """Close one breaker, or all of them. SCOPE: all, group:NAME, check:ID or bringup:GROUP.

    Without SCOPE all breakers, after a question.
    """
    if not scope and not yes:
        names = ", ".join(str(one["scope"]) for one in context.client().array("/v1/breakers"))
        if not names:
            print_done(context, {}, "No breaker is tripped.")
            return
        click.confirm(f"Reset {names}?", abort=True, err=True)
    answer = context.client().reset_breakers(scope)
    print_done(context, answer, f"Breaker {scope} is reset." if scope else "All breakers are reset.")


_SHOWN = 20


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every piece with a score, not only the worst of the cluster.")
@with_json
def lemons(context: Context, everything: bool) -> None:
    """List hardware that fails again and again. Also how each score comes about (28 days, halved every 14)."""
    found = context.client().array("/v1/lemons")
    if context.as_json:
        print_json(found)
        return
    shown = found if everything else [one for one in found if one["is_top"] or one["is_candidate"]][:_SHOWN]
    table(("SCORE", "", "NODE", "HARDWARE", "WHY"), [_row(one) for one in shown], empty="No hardware has a score.")
    if len(found) > len(shown):
        line(f"{len(found) - len(shown)} more have a score; --all shows them.")


def _row(lemon: dict[str, Any]) -> tuple[str, ...]:
    mark = "quarantine?" if lemon["is_candidate"] else ""
    return f"{lemon['score']:.1f}", mark, lemon["node"], lemon["piece"], lemon["arithmetic"]
