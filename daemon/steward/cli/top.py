"""`steward top`: the status page in a terminal."""

import contextlib
import sys
import time
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from steward.cli.context import Context, NumberInRange, with_context
from steward.cli.look import trouble_lines
from steward.cli.show import ago, console, grid, print_lines, styled, when
from steward.client import Client, HeadError
from steward.model.node_names import fold
from steward.model.text import count_noun, harmless, verdict_label

_ROWS = 12
_FINE = "fine"


@click.command()
@click.option("--every", "every_s", type=NumberInRange(1, 3600), default=2.0, help="Seconds between looks (2).")
@click.option("--once", is_flag=True, help="Print once and exit.")
@with_context
def top(context: Context, every_s: float, once: bool) -> None:
    """Show the cluster live, as the status page does. Ctrl-C ends it."""
    client, out = context.quiet_client(), console()
    first = _screen(client)
    if not sys.stdout.isatty():
        print_lines(out, first)
        return
    if once:
        out.print(first)
        return
    with contextlib.suppress(KeyboardInterrupt), Live(first, console=out, auto_refresh=False, screen=True) as view:
        while True:
            time.sleep(every_s)
            view.update(_patiently(client), refresh=True)


def _patiently(client: Client) -> RenderableType:
    """Return the screen; while the head does not answer, or not with what belongs there, a line that says so."""
    try:
        return _screen(client)
    except HeadError as error:
        return Text(f"Waiting for the head: {error}", style="bold red")


def _screen(client: Client) -> RenderableType:
    status, nodes = client.object("/v1/status"), client.array("/v1/nodes")
    parts: list[RenderableType] = [
        Text(f"{status['cluster'] or 'cluster'}: Steward {status['version']}, {when(status['at'])}", style="bold"),
        Text(
            f"{len(nodes)} nodes; {status['agents']['connected']} of {status['agents']['expected']} agents connected; "
            f"{count_noun(status['open_cases'], 'open repair')}, "
            f"{count_noun(status['jobs_watched'], 'job')} with --auto-resume, {status['jobs_coming_back']} coming back"
        ),
        *(Text(harmless(text), style=style) for text, style in trouble_lines(status)),
        Text(""),
        *_nodes(nodes),
        *_rows("Repairs", ("CASE", "NODE", "STEP", "FOR", "WHY"), _cases(client)),
        *_rows("Jobs", ("JOB", "NAME", "STATE", "RESUMED", "NODES", "LAST DECISION"), _jobs(client)),
        *_rows("Last events", ("WHEN", "EVENT", "WHAT HAPPENED"), _events(client)),
    ]
    return Group(*parts)


def _nodes(nodes: list[dict[str, Any]]) -> list[RenderableType]:
    """Return a folded list of nodes for each verdict, and a table of the nodes that are not fine."""
    by_verdict: dict[str, list[str]] = {}
    for node in nodes:
        by_verdict.setdefault(verdict_label(node["verdict"]), []).append(node["name"])
    sums = [
        Text.assemble((f"{word} {len(names)}: ", styled(word)), harmless(fold(names)))
        for word, names in sorted(by_verdict.items())
    ]
    wrong = [node for node in nodes if node["verdict"] != _FINE]
    rows = [
        (node["name"], verdict_label(node["verdict"]), ago(node["since"]), node["evidence"], node["next"])
        for node in wrong
    ]
    return [*sums, *_rows("Not fine", ("NODE", "VERDICT", "SINCE", "EVIDENCE", "NEXT"), rows)]


def _cases(client: Client) -> list[tuple[object, ...]]:
    return [
        (case["id"], case["node"], case["step"], ago(case["entered"]), case["why"]["text"])
        for case in client.array("/v1/cases")
        if case["open"]
    ]


def _jobs(client: Client) -> list[tuple[object, ...]]:
    return [
        (
            job["shown_id"],
            job["name"],
            job["state"],
            job["resumes"],
            fold(job["running_on"]),
            f"{job['attempts'][-1]['decision']}: {job['attempts'][-1]['why']['text']}" if job["attempts"] else "",
        )
        for job in client.array("/v1/jobs")
        if job["ended"] is None
    ]


def _events(client: Client) -> list[tuple[object, ...]]:
    try:
        found = client.events(limit=_ROWS)
    except HeadError:
        return []
    return [(when(event["at"]), event["kind"], event["text"]) for event in reversed(found)]


def _rows(title: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> list[RenderableType]:
    """Return a titled table, or nothing if there are no rows."""
    if not rows:
        return []
    more = [Text(f"and {len(rows) - _ROWS} more", style="dim")] if len(rows) > _ROWS else []
    return [Text(""), Text(title, style="bold"), grid(columns, rows[:_ROWS]), *more]
