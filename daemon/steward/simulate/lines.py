"""A study as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steward.simulate.faults import KINDS
from steward.simulate.training import Use

_USES = {
    Use.REDO: "work done again",
    Use.START: "starts",
    Use.DETECT: "until the run was over",
    Use.QUEUE: "between two runs",
    Use.SAVE: "pauses to save",
}
_CAUSES = {"none": "first start", "checkpoints": "pauses to save", "other": "other"}


def text_of(found: Mapping[str, Any]) -> str:
    """Return the report for people."""
    return "\n".join(
        [*_head(found), *_figures(found), *_lost(found), *_spares(found), *_sweeps(found), *_rest(found), ""]
    )


def _head(found: Mapping[str, Any]) -> Iterator[str]:
    seeds = found["seeds"]
    jobs = ", ".join(f"{job['count']} of {job['nodes']:,} nodes" for job in found["jobs"])
    habits = found["jobs"][0]
    yield f"{found['source']}: {found['days']:g} days, {found['nodes']:,} nodes, {found['spares']} of them spare"
    yield f"  {found['says']}"
    yield f"  jobs: {jobs}"
    yield (
        f"  each saves after {_time(habits['interval_s'])} of work, in a pause of {_time(habits['save_s'])};"
        f" the save counts {_time(habits['durable_s'])} later; a run starts in {_time(habits['start_s'])}"
    )
    runs = "1 run" if len(seeds) == 1 else f"{len(seeds)} runs; in parentheses: 80 % of runs lie there"
    yield f"  {found['faults']:,.0f} faults a run; seed {seeds[0]}, {runs}"
    yield ""


def _figures(found: Mapping[str, Any]) -> Iterator[str]:
    ways = found["ways"]
    yield from _table(
        ["", *ways],
        [
            ["ETTR: work / all time", *(_share(way["ettr"]) for way in ways.values())],
            ["goodput: work / time with nodes", *(_share(way["goodput"]) for way in ways.values())],
            ["lost node-hours", *(_count(way["lost_node_hours"]) for way in ways.values())],
            *(
                [f"  {text}", *(f"{way['node_hours'][use.value]:,.0f}" for way in ways.values())]
                for use, text in _USES.items()
            ),
            ["runs stopped by a fault", *(f"{way['stops']:,.0f}" for way in ways.values())],
        ],
    )
    yield f"Daly's formula, for Steward with enough spares: {found['formula']:.2%}"
    yield ""


def _lost(found: Mapping[str, Any]) -> Iterator[str]:
    ways = found["ways"]
    causes = sorted({cause for way in ways.values() for cause in way["lost_by_cause"]}, key=_most(ways), reverse=True)
    yield "Lost node-hours by cause"
    rows = [
        [_cause(cause), *(f"{way['lost_by_cause'].get(cause, 0):,.0f}" for way in ways.values())] for cause in causes
    ]
    yield from _table(["", *ways], rows)
    yield ""


def _most(ways: Mapping[str, Any]) -> Any:
    return lambda cause: max(way["lost_by_cause"].get(cause, 0.0) for way in ways.values())


def _cause(name: str) -> str:
    return KINDS[name].text if name in KINDS else _CAUSES.get(name, name)


def _spares(found: Mapping[str, Any]) -> Iterator[str]:
    needed = found["spares_needed"]
    yield (
        f"Spares needed, as so many machines were out at once with Steward: {needed['half']} for half of the time,"
        f" {needed['most_of_the_time']} for 95 % of it, {needed['always']} for all of it"
    )


def _sweeps(found: Mapping[str, Any]) -> Iterator[str]:
    for sweep in found["sweep"]:
        yield ""
        yield f"ETTR by {sweep['axis']} (best: {sweep['best']})"
        yield from _table(
            [sweep["axis"], "ETTR"], [[point["text"], _share(point["ettr"])] for point in sweep["points"]]
        )


def _rest(found: Mapping[str, Any]) -> Iterator[str]:
    if found["not_simulated"]:
        yield f"Not simulated, and counted as refused: {', '.join(found['not_simulated'])}"
    yield ""
    yield "Assumptions (--assume NAME=VALUE changes one)"
    rows = [[row["name"], f"{row['value']:g}", f"{row['text']} ({row['source']})"] for row in found["assumptions"]]
    yield from _table(["", "", ""], rows, right=(1,))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] | None = None) -> Iterator[str]:
    """Yield aligned lines; all columns but the first are aligned at the right unless `right` names those."""
    lines = [*([head] if any(head) else []), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    at_right = range(1, len(head)) if right is None else right
    for line in lines:
        cells = [
            word.rjust(width) if at in at_right else word.ljust(width)
            for at, (word, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _share(figure: Mapping[str, float | None]) -> str:
    low, high = figure["low"], figure["high"]
    around = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return f"{figure['mean']:.2%}{around}"


def _count(figure: Mapping[str, float | None]) -> str:
    low, high = figure["low"], figure["high"]
    around = "" if low is None or high is None else f" ({low:,.0f} to {high:,.0f})"
    return f"{figure['mean']:,.0f}{around}"


def _time(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:g} s"
