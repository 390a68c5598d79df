"""The lines of the ledger that a commit must write down: those that differ from the last commit's. Each has a key for
ever."""

from collections.abc import Iterator

from steward.model.case import Case, Step
from steward.model.ledger import Run
from steward.model.memory import Memory

Line = Run | Case
"""A run of a job, or the repair of a node."""


def changed_lines(before: Memory, after: Memory) -> tuple[Line, ...]:
    """In the order of their begin, as far as one memory tells."""
    return (*_runs(before, after), *_repairs(before, after))


def key_of(line: Line) -> str:
    """Two lines with the same key are one, seen at different times. Case numbers begin anew where a store was lost."""
    return f"run:{line.key}" if isinstance(line, Run) else f"case:{line.id}.{int(line.opened)}"


def _runs(before: Memory, after: Memory) -> Iterator[Run]:
    for job, runs in after.ledger.items() if after.ledger is not before.ledger else ():
        old = before.ledger.get(job, ())
        if runs is not old:
            yield from (run for run in runs if run not in old)


def _repairs(before: Memory, after: Memory) -> Iterator[Case]:
    """A suspicion that came to nothing is no repair."""
    for id, case in after.cases.items() if after.cases is not before.cases else ():
        old = before.cases.get(id)
        if (
            case is not old
            and case != old
            and (case.marked is not None or case.step not in (Step.SUSPECT, Step.CLOSED))
        ):
            yield case
