"""Breakers: what is report only because too much was taken out already."""

import click

from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.show import line, table, when


@click.group()
def breaker() -> None:
    """Breakers that keep Steward from taking out too much."""


@breaker.command("list")
@JSON
@click.pass_obj
@one_line_errors
def list_(context: Context, as_json: bool) -> None:
    """Tripped breakers and why. Also when a first repair is let through."""
    found = context.client().breakers()
    if wants_json(context, as_json):
        print_json(found)
        return
    rows = [(one["scope"], when(one["tripped"]), one["trial"] or when(one["next_try"]), one["text"]) for one in found]
    table(("SCOPE", "TRIPPED", "FIRST REPAIR", "WHY"), rows, empty="No breaker is tripped.")


@breaker.command()
@click.argument("scope", required=False, default="")
@JSON
@click.pass_obj
@one_line_errors
def reset(context: Context, scope: str, as_json: bool) -> None:
    """Close one breaker, or all of them. SCOPE: all, group:NAME, check:ID or bringup:GROUP."""
    answer = context.client().reset_breakers(scope)
    if wants_json(context, as_json):
        print_json(answer)
    else:
        line(f"Breaker {scope} is reset." if scope else "All breakers are reset.")
