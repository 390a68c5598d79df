"""docs/reliability.md, made from what the matrix found."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.chaos.cell import Result
from tests.chaos.columns import COLUMNS, LASTS_S, Column
from tests.chaos.trouble import Point
from tests.chaos.watch import INVARIANTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`results` are by column; one named `no fault` is there only when the control run itself went wrong."""

    flow: str
    step: str
    undisturbed_s: float
    results: tuple[Result, ...]

    @property
    def red(self) -> list[Result]:
        return [result for result in self.results if result.broken]


HEAD = """# Reliability: what happens when Steward, or what Steward needs, fails

<!-- Made by `make chaos` (python -m tests.chaos.matrix). Do not edit. -->

In each cell of the matrix, the flow on the left is brought to its step, the fault of the column begins, and the run
goes on until all is well or a time limit is over. The head is real, with its store; Slurm, machines, agents, shims and
the clock are simulated. A fault lasts {lasts:g} s unless the column names another time.
A head is killed three times in a row.

A number is the simulated time in seconds from the fault until all was well again. `-`: the fault had nothing to touch
at that step ([why](#where-a-fault-was-not-felt)). Empty: not run. **RED**: an invariant did not hold.

## Invariants, checked in every cell

{invariants}

`tests/chaos/test_mutations.py` breaks one rule of the head at a time (the head forgets its memory, launches without a
token, ...) and demands that cells turn red.

"""
TAIL = """
## Where a fault was not felt

{reasons}

## What a cell does not show

- Real processes, real time and real Slurm: `tests/e2e/test_crash.py`, `test_safety.py`, `test_two_heads.py`,
  `test_docker_two_heads.py` and `test_docker_chaos.py`.
- Slurm's answers cut in half or with other words in them: `tests/contract` and `tests/property`.
- That Slurm itself starts a job that it put back an hour later if the clock was set back by an hour meanwhile. Steward
  makes jobs that opted in eligible at once; it leaves the others to Slurm.
- How an elastic run starts again when only its base is lost: here half of the nodes are cut off at once, an outage for
  which no node is taken out."""


_HEADS = "\n## With two heads\n"
_AFTER = "\n## Where a fault"
_OF_HEADS = """\
The same steps, with a second head on a shared database; made by `make chaos HEADS=2`. The other head leads when the
lease has run out; the first one acts on nothing when it is woken. *Another end* counts in each of these cells but those
of a leader that is cut off from slurmctld, and of a database that is away for 25 s. A network that is cut between the
heads alone touches nothing here: who leads is told by the database (`tests/e2e/test_docker_two_heads.py`). Random
stories (`make chaos HEADS=2 N=1000`) have all faults of the matrix and these.
"""


def text(rows: Sequence[Row], before: str) -> str:
    """Return the page; what the last one said of two heads stays."""
    invariants = "\n".join(f"- *{name}*: {words}" for name, words in INVARIANTS.items())
    kept = _HEADS + before.partition(_HEADS)[2].partition(_AFTER)[0] if _HEADS in before else ""
    return HEAD.format(lasts=LASTS_S, invariants=invariants) + table(rows) + kept + TAIL.format(reasons=reasons(rows))


def with_heads(before: str, found: Sequence[Result]) -> str:
    """Return the page with what was found with two heads."""
    start, after = before.partition(_HEADS)[0].partition(_AFTER)[0], before.partition(_AFTER)
    return start + heads_section(found) + after[1] + after[2]


def heads_section(found: Sequence[Result]) -> str:
    """Return what each fault of the head that leads did, over all steps."""
    felt = [one for one in found if one.felt or one.broken]
    green = sum(one.is_green for one in felt)
    lines = [_HEADS, _OF_HEADS, f"{green} of {len(felt)} cells are green.", ""]
    lines += ["| Fault of the head that leads | steps | RED | median s | longest s |", "|---|--:|--:|--:|--:|"]
    for name in dict.fromkeys(one.column for one in found):
        of_fault = [one for one in felt if one.column == name]
        times = sorted(one.seconds for one in of_fault) or [0.0]
        red = sum(bool(one.broken) for one in of_fault)
        lines.append(f"| {name} | {len(of_fault)} | {red} | {median(times):.0f} | {times[-1]:.0f} |")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Row]) -> str:
    """The columns have numbers: their names are too long for a head line."""
    names = [column.name for column in COLUMNS]
    green, felt = _count(rows)
    lines = [f"## The matrix: {green} of {felt} cells green", ""]
    lines += [f"{number}. {told(column)}" for number, column in enumerate(COLUMNS, 1)]
    lines += ["", "| Step | no fault | " + " | ".join(str(n) for n in range(1, len(names) + 1)) + " |"]
    lines.append("|---|" + "--:|" * (len(names) + 1))
    for row in rows:
        by_name = {result.column: result for result in row.results}
        cells = " | ".join(cell(by_name.get(name)) for name in names)
        lines.append(f"| {row.flow}: {row.step} | {row.undisturbed_s:.0f} | {cells} |")
    return "\n".join(lines) + "\n"


def told(column: Column) -> str:
    """Its name, and how long it lasts where that is its own."""
    return column.name + (f" ({column.lasts_s:g} s)" if column.lasts_s not in (0.0, LASTS_S) else "")


def _count(rows: Sequence[Row]) -> tuple[int, int]:
    felt = [result for row in rows for result in row.results if result.felt or result.broken]
    return sum(1 for result in felt if result.is_green), len(felt)


def cell(result: Result | None) -> str:
    if result is None:
        return ""
    if result.broken:
        return "**RED**"
    return f"{result.seconds:.0f}" if result.felt else "-"


def reasons(rows: Sequence[Row]) -> str:
    found: dict[str, list[str]] = {}
    for row in rows:
        for result in row.results:
            if not result.felt and not result.broken:
                found.setdefault(result.column, []).append(f"{row.flow}: {row.step}")
    return "\n".join(f"- {column}: {why(column)} ({counted(steps)})." for column, steps in found.items()) or "None."


def counted(steps: Sequence[str]) -> str:
    """The matrix shows where: a long list is only counted."""
    return "; ".join(steps) if len(steps) <= 3 else f"{len(steps)} steps"


def why(column: str) -> str:
    """Why a fault could not be felt at a step."""
    if column in {f"stewardd killed {point.value}" for point in Point}:
        return "nothing was left to write or to do"
    return {
        "agent killed": "its node has no machine at this step",
        "slurmd and agent restarted at once": "its node has no machine at this step",
        "provider acts, answers too late": "nothing more is asked of the provider",
        "disk full": "nothing is written while it lasts, or little enough",
        "store locked": "nothing is written while it lasts",
        "store damaged": "nothing is read or written after it",
    }.get(column, "it touches nothing that is used at this step")


def line(row: Row) -> str:
    """For whoever watches the run."""
    bad = "; ".join(f"{one.column}: {', '.join(one.broken)}" for one in row.red)
    return f"{row.flow}: {row.step}: {bad or 'green'}"
