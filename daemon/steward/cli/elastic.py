"""`steward elastic`: the elastic runs, which grow into idle nodes and give them back."""

from collections.abc import Sequence

import click

from steward.cli.context import Context, IntegerInRange, print_json, with_context, with_json
from steward.cli.show import line, listed, table, when
from steward.client import HeadError, Json

_COLUMNS = ("RUN", "SIZE", "BASE", "SPEC", "PHASE", "REPLICAS", "CHANGES", "NODE-HOURS+")


@click.group()
def elastic() -> None:
    """Elastic runs: their sizes; limit or pause their growth."""


@elastic.command("list")
@with_json
def list_runs(context: Context) -> None:
    """List every run, open ones first."""
    found = context.client().array("/v1/elastic")
    listed(context, found, _COLUMNS, map(_row, found), empty="No elastic runs: `sbatch --elastic=8` starts one.")


@elastic.command()
@click.argument("run", type=IntegerInRange(min=1))
@with_json
def show(context: Context, run: int) -> None:
    """Show one run: its sizes over time, and what it waits for."""
    found = next((one for one in context.client().array("/v1/elastic") if one["run"] == run), None)
    if found is None:
        raise HeadError(f"there is no elastic run {run}: `steward elastic list` shows them")
    if context.as_json:
        print_json(found)
        return
    for text in found["lines"]:
        line(text)
    size_table(found["events"])


def size_table(events: Sequence[Json]) -> None:
    """Print every remembered change of size, oldest first."""
    rows = [
        (
            when(one["at"]),
            f"{one['before']} -> {one['after']}",
            one["cause"],
            _seconds(one, "saved_s"),
            _took(one),
            _again(one),
        )
        for one in events
    ]
    table(("AT", "NODES", "CAUSE", "SAVED", "FIRST-STEP", "STEPS-AGAIN"), rows, empty="Its size did not change yet.")


def _again(one: Json) -> str:
    """Return how many steps are done again; `?` if that is not known, `-` if none are."""
    # A rank that had not saved loses its work; the number is known only for runs that report steps.
    unknown = "?" if one["unsaved"] or one["done"] is None else "-"
    return str(one["steps_again"]) if one["steps_again"] is not None else unknown


@elastic.command()
@click.argument("run", type=IntegerInRange(min=1))
@click.argument("nodes", type=IntegerInRange(min=0), metavar="NODES")
@with_context
def resize(context: Context, run: int, nodes: int) -> None:
    """Limit RUN to NODES nodes; 0: any of its sizes."""
    context.client().change_run(run, {"size": str(nodes)})
    line(f"Run {run}: {f'at most {nodes} nodes' if nodes else 'any of its sizes'}; see `steward elastic show {run}`.")


@elastic.command()
@click.argument("run", type=IntegerInRange(min=1))
@click.option("--off", is_flag=True, help="Let the run grow again.")
@with_context
def pause(context: Context, run: int, off: bool) -> None:
    """Keep RUN from growing. Nodes that other jobs need are still given back."""
    context.client().change_run(run, {"paused": "false" if off else "true"})
    line(f"Run {run} {'may grow again' if off else 'does not grow until `--off`'}.")


def _row(one: Json) -> tuple[str, ...]:
    jobs = ",".join(str(each["job"]) for each in one["replicas"] if each["job"]) or "-"
    hours = f"{one['node_hours_beyond_base']:.2f}"
    phase = f"{one['phase']}{' (paused)' if one['paused'] else ''}"
    return (str(one["run"]), str(one["size"]), str(one["base"]), one["spec"], phase, jobs, str(one["changes"]), hours)


def _seconds(one: Json, key: str) -> str:
    return f"{one[key]:.1f} s" if one[key] is not None else "-"


def _took(one: Json) -> str:
    return f"{one['done'] - one['at']:.1f} s" if one["done"] is not None else "-"
