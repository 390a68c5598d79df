"""The way from a node's death to the tasks that run again, phase by phase: from the logs of head and slurmd.

A phase is in seconds after the end of the fault command. What happened before that end is negative: the connection of a
killed agent is reset while its machine is still being ended. A phase that left no line in a log is left out.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from rich.table import Table

from tests.bench.summary import percentile

Way = Mapping[str, float]
"""Name of a phase -> seconds after the fault."""
PHASES: Mapping[str, str] = MappingProxyType(
    {
        "seen": "the head hears that the agent's connection ended",
        "second source": "a second source confirms the loss, and that is written down",
        "drained": "the commands that take the node out have ended",
        "asked": "the first shim asks",
        "decided": "what is to be done is written down",
        "answered": "the answer is on its way to the shim",
        "nudged": "a requeued job was made eligible (the first time)",
        "srun started": "the new step's first task, or the job's script, is being launched",
        "tasks": "the last task, or the script, runs",
    }
)
_BEFORE_S = 1.0
_LINE = re.compile(r"^(?P<at>\d{4}-\d\d-\d\dT\S+) (?P<text>.*)$")
_SLURMD = re.compile(r"^\[(?P<at>[^\]]+)\] (?P<text>.*)$")


def way(head: Iterable[str], slurmds: Iterable[str], *, node: str, job: int, fault: float, tasks: float) -> Way:
    """Of one recovery: lines of the head's log and of those of slurmd, which may begin long before; `fault` and `tasks`
    are Unix seconds."""
    ours, theirs = list(_lines(_LINE, head, fault - _BEFORE_S)), sorted(_lines(_SLURMD, slurmds, fault))
    found = {
        "seen": _first(ours, lambda text: f"node={node} " in text and "agent gone" in text),
        "second source": _first(ours, lambda text: f"node={node} " in text and "event=case.opened" in text),
        "drained": _first(ours, lambda text: f"node={node} " in text and "action=DownNode" in text),
        "asked": _first(ours, lambda text: f"job={job} " in text and "a shim asks" in text),
        "decided": _first(ours, lambda text: f"job={job} " in text and "event=job.decided" in text),
        "answered": _first(ours, lambda text: "action=AnswerAsk" in text and f"-{job}." in text),
        "nudged": _first(ours, lambda text: f" job={job} " in text and "action=NudgeJob" in text),
        "srun started": _first(theirs, lambda text: _starts(job, text)),
        "tasks": tasks,
    }
    return {name: at - fault for name, at in found.items() if at is not None}


def _starts(job: int, text: str) -> bool:
    return f"launch task StepId={job}." in text or f"Launching batch job {job} " in text


def way_of(logs: Mapping[str, Path], *, node: str, job: int, fault: float, tasks: float) -> Way:
    """From the logs of a bed."""
    head = _text(logs["stewardd"]) if "stewardd" in logs else []
    slurmds = (line for name, path in logs.items() if name.startswith("slurmd-") for line in _text(path))
    return way(head, slurmds, node=node, job=job, fault=fault, tasks=tasks)


def _text(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines()


def as_table(ways: Sequence[Way], title: str) -> Table:
    """`after` is counted from the fault, `takes` from the phase before in the same run."""
    table = Table(title=title, title_justify="left")
    table.add_column("phase", no_wrap=True)
    for head in ("runs", "after, p50", "after, p95", "takes, p50", "takes, p95"):
        table.add_column(head, justify="right")
    table.add_column("what")
    for name, told in PHASES.items():
        after, takes = [way[name] for way in ways if name in way], [steps(way)[name] for way in ways if name in way]
        if after:
            shown = (percentile(after, 50), percentile(after, 95), percentile(takes, 50), percentile(takes, 95))
            table.add_row(name, str(len(after)), *(f"{each:.3f}" for each in shown), told)
    return table


def steps(way: Way) -> Way:
    """What each phase took after the one that came before it in time; the first: after the fault."""
    found, before = dict[str, float](), 0.0
    for name, at in sorted(way.items(), key=lambda each: each[1]):
        found[name] = at - before
        before = at
    return found


def _lines(form: "re.Pattern[str]", lines: Iterable[str], since: float) -> Iterable[tuple[float, str]]:
    """When each was written, and its text."""
    for line in lines:
        if (match := form.match(line)) is not None and (at := _at(match["at"])) is not None and at >= since:
            yield at, match["text"]


def _at(text: str) -> float | None:
    """Unix seconds; a time without a zone is of this machine's."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _first(lines: Iterable[tuple[float, str]], is_it: Callable[[str], bool]) -> float | None:
    return next((at for at, text in lines if is_it(text)), None)
