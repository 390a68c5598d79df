"""docs/reliability.md, made from what the matrix found."""

from collections.abc import Sequence

from tests.chaos.cell import Result
from tests.chaos.columns import COLUMNS, LASTS_S, Column
from tests.chaos.table import Row
from tests.chaos.trouble import Point
from tests.chaos.watch import INVARIANTS

HEAD = """# Reliability: what Steward's death, and that of others, can break

<!-- Made by `make chaos` (python -m tests.chaos.matrix). Do not edit. -->

For those who ask what happens when Steward itself, or what Steward needs, fails in the middle of a repair, a resume
or a change of size. In each cell of the matrix, the flow on the left is brought to its step, the fault of the column
begins, and the run goes on until all is well or a time limit is over. The head is the real one (cycle, applier,
journal and SQLite store of `daemon/steward`), without threads and on one simulated clock. Slurm, the machines, their
agents and the shims are simulated. A fault lasts {lasts:g} s unless the column says otherwise; a head is killed three
times in a row.

A number is the simulated time in seconds from the fault until all was well again. `-`: the fault had nothing to touch
at that step ([why](#where-a-fault-was-not-felt)). Empty: not run. **RED**: an invariant did not hold.

## Invariants, checked in every cell

{invariants}

`tests/chaos/test_mutations.py` shows that the invariants are really looked at: it breaks one rule of the head at a
time (the head forgets its memory, launches without a token, takes an old picture for a fresh one, ...) and demands
that cells turn red.

"""
TAIL = """
## Where a fault was not felt

{reasons}

## What a cell does not show

- Real processes, real time and real Slurm: `tests/e2e/test_crash.py`, `test_safety.py` and `test_docker_chaos.py`.
- Slurm's answers cut in half or with other words in them: `tests/contract` and `tests/property` demand that the
  adapters call that a failed look, as the simulated `scontrol prints garbage` does.
- Which sizes an elastic run goes through where the clock jumps ahead (its pause is over, so that it grows again) or
  its base is cut off (the job begins anew). There only the invariants are looked at.
- A clock that is set back while the head is away: the head notices only what happens while it runs.

## A known failure of another program

When clustermgtd (AWS ParallelCluster 3.11) is restarted while a node is being replaced, it takes the booting
replacement for a broken node and ends it. `tests/chaos/test_peers.py` tries the same with Steward: the head is killed
at every kind of write and act while the replacement boots, and stays away for longer than the boot takes. One machine
is made, and that one serves."""


def text(rows: Sequence[Row]) -> str:
    invariants = "\n".join(f"- *{name}*: {words}" for name, words in INVARIANTS.items())
    return HEAD.format(lasts=LASTS_S, invariants=invariants) + table(rows) + TAIL.format(reasons=reasons(rows))


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
    kills = {f"stewardd killed {point.value}": point for point in Point}
    if column in kills:
        return f'nothing of the kind was left to do, so that there is no "{kills[column].value}"'
    return {
        "agent killed": "its node has no machine at this step, and so no agent",
        "provider acts, answers too late": "nothing more is asked of the provider",
        "disk full": "nothing is written any more while it lasts, or what is written is small enough",
        "store locked": "nothing is written any more while it lasts",
    }.get(column, "it touches nothing that is used at this step")


def line(row: Row) -> str:
    """For whoever watches the run."""
    bad = "; ".join(f"{one.column}: {', '.join(one.broken)}" for one in row.red)
    return f"{row.flow}: {row.step}: {bad or 'green'}"
