"""`steward checks`: the results of every check."""

import click

from steward.cli.context import Context, print_json, with_json
from steward.cli.show import table, when
from steward.client import Json
from steward.model.node_names import fold

_LIST_COLUMNS = ("CHECK", "MODE", "EVERY", "COST", "SOURCE", "RESULT", "LIMITS", "DETECTS")
_ON_NODE = ("CHECK", "RESULT", "SINCE", "LAST PASSED", "MODE", "EVERY", "TEXT", "LIMITS")
_OUTCOMES = ("passed", "failed", "unknown", "skipped")
_DEFAULT = "default"


@click.command()
@click.argument("node", required=False, default="")
@click.option("--failing", is_flag=True, help="Only checks that fail, or whose result is unknown, on some node.")
@with_json
def checks(context: Context, node: str, failing: bool) -> None:
    """List every health check, its mode, limits and results.

    Also what each detects, where mode and limits were set, and its cost; results over the cluster, or on NODE.
    """
    found = context.client().checks(node)
    if failing:
        found = [one for one in found if _is_wrong(one)]
    if context.as_json:
        print_json(found)
    elif node:
        table(_ON_NODE, [_row_on_node(one) for one in found], empty=f"No check fails on {node}.")
    else:
        table(_LIST_COLUMNS, [_row(one) for one in found], empty="No check fails on any node.")


def _is_wrong(check: Json) -> bool:
    if "outcome" in check:
        return check["outcome"] in ("failed", "unknown")
    return bool(check["failed"] or check["unknown"])


def _row(check: Json) -> tuple[str, ...]:
    return (
        check["id"],
        _set_by(check["mode"], check["mode_by"]),
        _period(check["every_s"]),
        f"{check['cost_ms']:g} ms" if check["cost_ms"] else "",
        check["source"],
        _result(check),
        _limits(check),
        check["title"],
    )


def _row_on_node(check: Json) -> tuple[str, ...]:
    severity = f" ({check['severity']})" if check["severity"] else ""
    return (
        check["id"],
        f"{check['outcome'] or ''}{severity}",
        when(check["at"]),
        "now" if check["outcome"] == "passed" else when(check["passed_at"]),
        _set_by(check["mode"], check["mode_by"]),
        _period(check["every_s"]),
        check["text"],
        _limits(check),
    )


def _result(check: Json) -> str:
    """Return the counts of a check's results, with the nodes that do not pass: `58 passed, 2 failed (n[3,7])`."""
    where = {"failed": check["failing"], "unknown": check["unknown_on"]}
    counts = [(word, check[word]) for word in _OUTCOMES if check[word]]
    return ", ".join(f"{count} {word}{_names(where.get(word, []))}" for word, count in counts)


def _names(found: list[Json]) -> str:
    return f" ({fold(one['node'] for one in found)})" if found else ""


def _limits(check: Json) -> str:
    return ", ".join(_set_by(f"{one['name']} {one['value']:g}", one["by"]) for one in check["numbers"])


def _set_by(text: str, by: str) -> str:
    return text if by == _DEFAULT else f"{text} {by}"


def _period(seconds: float) -> str:
    if not seconds:
        return "at once"
    if seconds % 3600 == 0:
        return f"{seconds / 3600:g} h"
    return f"{seconds:g} s"
