"""Commands that only read."""

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from steward.cli.context import Context, IntegerInRange, age, is_job, job_word, print_json, standstill_line, with_json
from steward.cli.show import ago, line, listed, span, styled, table, when
from steward.client import Client, HeadError, NotThere
from steward.model.events import LEVELS, EventFilter
from steward.model.node_names import fold
from steward.model.text import PAUSED, REPORT_ONLY, json_text, verdict_label

_AGAIN_S = 1.0
_FINE = "fine"
_KINDS = {"node", "job", "group"}
_GROUPS = ("GROUP", "ROLE", "STATUS", "CURRENT", "TARGET", "MIN", "PARTITION", "MESSAGE")


@click.command()
@with_json
def status(context: Context) -> None:
    """Show the cluster at a glance."""
    found = context.client().object("/v1/status")
    if context.as_json:
        print_json(found)
        return
    agents = found["agents"]
    nodes = ", ".join(f"{count} {state}" for state, count in sorted(found["nodes"].items())) or "none"
    line(f"{found['cluster'] or 'cluster'}: Steward {found['version']}, up {ago(found['started'])}", "bold")
    for text, style in heads_lines(found.get("heads")):
        line(text, style)
    line(f"nodes     {nodes}")
    line(f"agents    {_agents_text(agents)}")
    line(f"cases     {found['open_cases']} open")
    coming = f", {found['jobs_coming_back']} coming back" if found["jobs_coming_back"] else ""
    line(
        f"jobs      {found['jobs_watched']} with --auto-resume{coming}, {found['asks_waiting']} waiting for a decision"
    )
    for text in _kept(found):
        line(text)
    for text, style in trouble_lines(found):
        line(text, style)
    if found["groups"]:
        line("")
        table(_GROUPS, [_group_row(group) for group in found["groups"]], empty="")


def heads_lines(heads: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the lines on which head leads, and which other could take over; none for a head alone."""
    if heads is None:
        return []
    lines = [(f"leader    {heads['leader']}, for {ago(heads['since'])}", "")]
    if heads["trouble"]:
        lines.append((f"lease     cannot be renewed: {heads['trouble']}", "bold red"))
    for other in heads["others"]:
        if other["why_not"]:
            lines.append((f"follower  {other['name']} could not take over now: {other['why_not']}", "yellow"))
        else:
            age = f"its picture is {other['picture_s'] or 0.0:.0f} s old"
            lines.append((f"follower  {other['name']}, ready to take over; {age}", ""))
    return lines


def _agents_text(agents: dict[str, Any]) -> str:
    if agents["expected"] and not agents.get("met", 1):
        return f"none has come yet from {agents['expected']} nodes: install and start steward-agent on each of them"
    return f"{agents['connected']} of {agents['expected']} connected"


def _kept(found: dict[str, Any]) -> list[str]:
    """Return lines about nodes that are kept, and for which jobs or groups."""
    lines = [
        f"kept      {each['nodes']} nodes for job {each['shown_id']}, {span(time.time(), each['until'])} at most"
        for each in found["kept"]
    ]
    hot = ", ".join(f"{count} in {group}" for group, count in sorted(found["hot_spares"].items()))
    return [*lines, *([f"hot       {hot}"] if hot else [])]


def _group_row(group: dict[str, Any]) -> tuple[object, ...]:
    return tuple(
        group[name] for name in ("name", "role", "status", "current", "target", "minimum", "partition", "message")
    )


def trouble_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    lines = []
    if standstill := found["standstill"]:
        lines.append((standstill_line({**standstill, "at": found["at"]}), "bold red"))
    if found["slurm"] != "fresh":
        lines.append((f"slurm     cannot be read now ({found['slurm']} picture): nothing is decided on it", "bold red"))
    if found["paused"]:
        lines.append((f"paused    {PAUSED}", "yellow"))
    if not found["acts"]:
        lines.append((f"mode      {REPORT_ONLY}", "yellow"))
    if not found["resumes"]:
        lines.append(("resume    off (resume.enabled = false): no job is brought back", "yellow"))
    for one in found["cases_waiting"]:
        lines.append((f"approve   {one['node']} waits for your approval: steward approve {one['case']}", "yellow"))
    lines += [(f"incident  {one['text']}", "bold red") for one in found["incidents"]]
    lines += [
        (f"breaker   {one['scope']}: tripped {ago(one['tripped'])} ago; {one['now']}", "bold red")
        for one in found["breakers"]
    ]
    return lines


@click.command()
@click.option("--wrong", is_flag=True, help="Only nodes that are not fine.")
@with_json
def nodes(context: Context, wrong: bool) -> None:
    """List every node: verdict, evidence, and what comes next."""
    found = context.client().array("/v1/nodes")
    if context.as_json:
        print_json(found)
        return
    if wrong:
        found = [node for node in found if node["verdict"] != _FINE]
    rows = [
        (
            node["name"],
            node["state"],
            verdict_label(node["verdict"]),
            ago(node["since"]),
            node["evidence"],
            node["next"],
            _agent_word(node["agent"]),
            (node["agent"] or {}).get("instance"),
            node["case"],
        )
        for node in found
    ]
    columns = ("NODE", "STATE", "VERDICT", "SINCE", "EVIDENCE", "NEXT", "AGENT", "INSTANCE", "CASE")
    table(columns, rows, empty="All nodes are fine." if wrong else "Slurm has no nodes.")


def _agent_word(agent: dict[str, Any] | None) -> str:
    if agent is None:
        return "never seen"
    if not agent["connected"]:
        return "lost"
    return "late" if agent["late"] else "ok"


@click.command()
@with_json
@click.option("--all", "closed", is_flag=True, help="Show closed repairs, too.")
def cases(context: Context, closed: bool) -> None:
    """List repairs of nodes."""
    found = [case for case in context.client().array("/v1/cases") if closed or case["open"]]
    rows = (
        (
            case["id"],
            case["node"],
            case["step"],
            when(case["opened"]),
            span(case["fault_at"], case["detected"]),
            span(case["fault_at"], case["marked"]),
            span(case["fault_at"], case["replaced"]),
            span(case["fault_at"], case["returned"]),
            case["why"]["text"],
        )
        for case in found
    )
    columns = ("CASE", "NODE", "STEP", "OPENED", "DETECTED", "MARKED", "REPLACED", "RETURNED", "WHY")
    listed(context, found, columns, rows, empty="No case." if closed else "No open case (--all shows closed ones).")


@click.command()
@with_json
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events until interrupted.")
@click.option(
    "-n", "--lines", type=IntegerInRange(1, 5000), default=50, show_default=True, help="How many past events to show."
)
@click.option("--node", default="", help="Only events of this node.")
@click.option(
    "--job", default="", metavar="JOB", callback=job_word, help="Only events of this job (17, or 17_1 of an array)."
)
@click.option("--since", metavar="AGE", callback=age, default=None, help="Only the last 30m, 12h, 7d.")
@click.option("--kind", default="", help="Only kinds that begin with this: case., node.fault, breaker.")
@click.option("--level", type=click.Choice(LEVELS), default="info", show_default=True, help="At least this level.")
def events(
    context: Context,
    follow: bool,
    lines: int,
    node: str,
    job: str,
    since: float | None,
    kind: str,
    level: str,
) -> None:
    """Print events, oldest first. With -f the command waits for a head that restarts, and misses nothing."""
    client, begin = context.client(), time.time() - since if since else 0.0
    wanted = EventFilter(node=node, job=job, kind=kind, level=level, since=begin)
    found = client.follow(lines, wanted, _wait_for_head()) if follow else client.events(limit=lines, wanted=wanted)
    if not found:
        click.echo("No such event.", err=True)
    for event in found:
        if context.as_json:
            click.echo(json_text(event))
        else:
            _show_event(event)


def _wait_for_head() -> Callable[[HeadError], None]:
    """Return a callback that prints on stderr why no events come, once for each reason, and waits a little."""
    said: set[str] = set()

    def lost(error: HeadError) -> None:
        if str(error) not in said:
            said.add(str(error))
            click.echo(f"waiting for the head: {error}", err=True)
        time.sleep(_AGAIN_S)

    return lost


def _show_event(event: dict[str, Any]) -> None:
    known = {**event, "job": event["data"].get("shown_id", event["job"])}
    about = " ".join(f"{key}={known[key]}" for key in ("node", "job", "case") if known[key] is not None)
    line(f"{when(event['at'])} {event['kind']} {about} {event['text']}".replace("  ", " "), styled(event["level"]))


def _explained(client: Client, kind: str, name: str) -> dict[str, Any]:
    """Return the explanation of a name. Without a kind, a number is a job."""
    if kind == "job" or (not kind and is_job(name)):
        return client.explain_job(job_word(None, None, name))
    if kind == "group":
        return client.explain_group(name)
    try:
        return client.explain_node(name)
    except NotThere as no_node:
        if kind:
            raise
        try:
            return client.explain_group(name)
        except NotThere:
            raise no_node from None


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[node|job|group] NAME")
@with_json
def explain(context: Context, words: tuple[str, ...]) -> None:
    """Explain why a node, job or group is as it is. Also what is next, and every decision with its evidence."""
    *kinds, name = words
    if len(kinds) > 1 or not set(kinds) <= _KINDS:
        raise click.UsageError("give a NAME, or one of node, job, group and a NAME")
    found = _explained(context.client(), "".join(kinds), name)
    if context.as_json:
        print_json(found)
        return
    for text in found["lines"]:
        line(text)
    if found["events"]:
        line("")
        for event in found["events"]:
            _show_event(event)


@click.command()
@with_json
def doctor(context: Context) -> None:
    """Check Steward and its connections. Exit status 1 when something is bad."""
    found = context.client().doctor()
    if context.as_json:
        print_json(found)
    else:
        rows = [(one["health"], one["topic"], one["text"], one["remedy"]) for one in found]
        table(("", "TOPIC", "FOUND", "REMEDY"), rows, empty="Nothing was checked.")
    if any(one["health"] == "bad" for one in found):
        sys.exit(1)


@click.command()
@click.option("--dry-run", is_flag=True, help="For scripts: `plan` never changes anything, with or without this.")
@with_json
def plan(context: Context, dry_run: bool) -> None:
    """Show what the head would do if nothing held it, and why."""
    found = context.client().plan()
    if context.as_json:
        print_json(found)
        return
    if found["paused"]:
        line("Actions are paused: none of this is done.", "yellow")
    if found["slurm"] != "fresh":
        line(f"Slurm cannot be read now: planned on the picture of {when(found['picture_at'])}.", "bold red")
    rows = [(one["action"], _object_of(one), one["why"]["text"], one["why"]["rule"]) for one in found["actions"]]
    table(("ACTION", "ON", "WHY", "RULE"), rows, empty="Nothing to do.")


def _object_of(action: dict[str, Any]) -> str:
    slot = action.get("slot") or {}
    if action.get("node") is not None:
        return str(action["node"])
    return action["shown_id"] or str(slot.get("node") or fold(action.get("nodes", [])))
