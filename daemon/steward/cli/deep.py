"""`steward check deep`: deep checks, which measure nodes that no job uses."""

import click

from steward.cli.capacity import ProgressView, follow
from steward.cli.context import Context, print_json, with_json
from steward.cli.show import line, listed, table, when
from steward.client import Client, HeadError, Json
from steward.model.deep import DeepKind, DeepResult
from steward.model.node_names import expand_nodes, fold

_MOST_WORDS = 400
_COLUMNS = ("NODE", "CHECK", "STATE", "RESULT", "WHY")
_KINDS = click.Choice([kind.value for kind in DeepKind])


@click.command()
@click.argument("nodes", nargs=-1, required=True, metavar="NODES...")
@click.option("--kind", "kinds", multiple=True, type=_KINDS, help="Only this kind of deep check; may be repeated.")
@click.option("--wait", is_flag=True, help="Show progress until it is over; exit status 1 when a node failed.")
@with_json
def deep(context: Context, nodes: tuple[str, ...], kinds: tuple[str, ...], wait: bool) -> None:
    """Load and measure NODES (n1 or n[1-8]) while no job uses them. Running jobs go on, waiting ones come first."""
    client = context.client()
    answer = client.check_deep(_folded(nodes), kinds)
    if wait:
        _follow(client, answer["runs"], as_json=context.as_json)
    if context.as_json:
        print_json([one for one in client.array("/v1/checks/deep") if _is_of(one, answer["runs"])] if wait else answer)
    elif not wait:
        line(f"Asked for deep check {', '.join(answer['runs'])}: `steward check show ID` shows how far it is.")
    if wait and any(_results(client, answer["runs"], DeepResult.FAILED)):
        raise click.exceptions.Exit(1)


@click.command("list")
@with_json
def list_(context: Context) -> None:
    """List running and recent deep checks."""
    found = context.client().array("/v1/checks/deep")
    rows = (
        (one["id"], one["cause"], one["who"], one["state"], when(one["asked"]), _count(one), ", ".join(one["kinds"]))
        for one in found
    )
    columns = ("CHECK", "CAUSE", "WHO", "STATE", "ASKED", "NODES", "KINDS")
    listed(context, found, columns, rows, empty="No deep check is remembered: `steward check deep NODES` asks for one.")


@click.command()
@click.argument("id")
@with_json
def show(context: Context, id: str) -> None:
    """Show one deep check: results, evidence and all measures."""
    found = context.client().deep(id)
    if context.as_json:
        print_json(found)
        return
    line(f"deep check {found['id']} ({', '.join(found['kinds'])}): {found['state']}, {found['cause']}, {found['who']}")
    table(_COLUMNS, _rows(found), empty="")
    measures = [
        (one["node"], one["check"], one["partner"] or "", one["outcome"], _value(one), one["text"])
        for one in found["measures"]
    ]
    line("")
    table(("NODE", "MEASURE", "WITH", "OUTCOME", "VALUE", "TEXT"), measures, empty="Nothing was measured yet.")


def _folded(words: tuple[str, ...]) -> str:
    """Return the names as one host list. Raises HeadError for a bad list, or one too long for the head."""
    try:
        nodes = fold(expand_nodes(",".join(words)))
    except ValueError as error:
        raise HeadError(f"{' '.join(words)}: {error}") from error
    if len(nodes) > _MOST_WORDS:
        raise HeadError(f"a host list of {len(nodes)} characters is too long (at most {_MOST_WORDS}): ask in parts")
    return nodes


def _is_of(found: Json, runs: list[str]) -> bool:
    """Return whether `found` is one of the runs, or a part of one that waits for its turn."""
    return found["id"].split("-")[0] in runs


def _follow(client: Client, runs: list[str], *, as_json: bool) -> None:
    def look() -> ProgressView:
        mine = [one for one in client.array("/v1/checks/deep") if _is_of(one, runs)]
        rows = sorted((row for one in mine for row in _rows(one)), key=lambda row: (len(row[0]), row[0]))
        return ProgressView(rows=[] if as_json else rows, is_over=all(one["state"] == "done" for one in mine))

    follow(look, _COLUMNS)


def _rows(found: Json) -> list[tuple[str, ...]]:
    return [
        (name, found["id"], node["progress"] or found["state"], node["result"] or "", node["why"])
        for name, node in found["nodes"].items()
    ]


def _results(client: Client, runs: list[str], wanted: DeepResult) -> list[bool]:
    mine = [one for one in client.array("/v1/checks/deep") if _is_of(one, runs)]
    return [node["result"] == wanted.value for one in mine for node in one["nodes"].values()]


def _count(found: Json) -> str:
    results = [node["result"] for node in found["nodes"].values() if node["result"]]
    told = ", ".join(f"{results.count(word)} {word}" for word in sorted(set(results)))
    return f"{len(found['nodes'])}{f' ({told})' if told else ''}"


def _value(measure: Json) -> str:
    return "" if measure["value"] is None else f"{measure['value']:.4g} {measure['unit']}"
