"""Faults over time: drawn from counts or from a rate, or read from a trace."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from steward.simulate.faults import KINDS, LLAMA3, FaultEvent, FaultKind, FaultSign
from steward.simulate.numbers import WorldNumbers

DAY_S, HOUR_S = 86_400.0, 3600.0
HEADER = "hours,kind,node"
MOST_LINES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSource:
    """Where faults come from.

    `counts`: exactly so many of each kind in the time; `per_1000_node_days`: drawn at this rate, of kinds in the ratio
    of `mix`; `lines`: (hours, kind, node) of a trace. `hits_jobs`: each fault hits a node with a job.
    """

    name: str
    counts: Mapping[str, int] | None = None
    per_1000_node_days: float = 0.0
    mix: Mapping[str, int] | None = None
    lines: Sequence[tuple[float, str, int | None]] = ()
    hits_jobs: bool = False


LLAMA3_SOURCE = FaultSource(name="Llama 3, 54 days", counts=LLAMA3, hits_jobs=True)
_HARDWARE = {name: count for name, count in LLAMA3.items() if KINDS[name].sign in (FaultSign.SILENT, FaultSign.FOUND)}


def steady(name: str, per_1000_node_days: float) -> FaultSource:
    """Return faults of nodes at a steady rate, of kinds in the ratio of Llama 3's."""
    return FaultSource(name=name, per_1000_node_days=per_1000_node_days, mix=_HARDWARE)


RSC1_SOURCE = steady("Meta RSC-1", 6.50)


def faults_of(source: FaultSource, days: float, nodes: int, numbers: WorldNumbers, seed: int) -> list[FaultEvent]:
    """Return the faults of a simulated time, in order; the same seed gives the same ones."""
    dice = random.Random(f"faults {seed}")
    drawn = [_drawn(at, KINDS[kind], node, numbers, dice) for at, kind, node in _times(source, days, nodes, dice)]
    return sorted((fault for fault in drawn if fault.at < days * DAY_S), key=lambda fault: fault.at)


def _times(
    source: FaultSource, days: float, nodes: int, dice: random.Random
) -> Iterator[tuple[float, str, int | None]]:
    for hours, kind, node in source.lines:
        yield hours * HOUR_S, kind, node
    for kind, count in (source.counts or {}).items():
        for _ in range(count):
            yield dice.uniform(0.0, days * DAY_S), kind, None
    mix, per_s = source.mix or {}, source.per_1000_node_days / 1000.0 * nodes / DAY_S
    at = dice.expovariate(per_s) if per_s else days * DAY_S
    while at < days * DAY_S:
        yield at, dice.choices(list(mix), list(mix.values()))[0], None
        at += dice.expovariate(per_s)


def _drawn(at: float, kind: FaultKind, node: int | None, numbers: WorldNumbers, dice: random.Random) -> FaultEvent:
    is_taken = kind.name == "maintenance"
    cures = numbers.revive_cures if kind.sign is FaultSign.SILENT else numbers.reboot_cures
    return FaultEvent(
        at=at,
        kind=kind,
        pick=dice.random(),
        phase=dice.random(),
        node=node,
        reset_cures=dice.random() < numbers.reset_cures and kind.name == "gpu-memory",
        reboot_cures=dice.random() < cures and not is_taken,
        repair_s=numbers.maintained_s if is_taken else numbers.person_s,
    )


def read_trace(text: str, name: str, nodes: int) -> FaultSource:
    """Return the faults of a trace; raise ValueError with one line that names the wrong one."""
    rows = text.splitlines()
    if len(rows) > MOST_LINES:
        raise ValueError(f"{name} has more than {MOST_LINES:,} lines")
    if not rows or rows[0].replace(" ", "") != HEADER:
        raise ValueError(f"{name}, line 1: the first line must be {HEADER}")
    lines = [_line(row, f"{name}, line {number}", nodes) for number, row in enumerate(rows[1:], 2) if row.strip()]
    return FaultSource(name=name, lines=sorted(lines, key=lambda line: line[0]))


def _line(row: str, where: str, nodes: int) -> tuple[float, str, int | None]:
    parts = [part.strip() for part in row.split(",")]
    if len(parts) not in (2, 3):
        raise ValueError(f"{where}: {len(parts)} fields; give {HEADER} (no node: any node)")
    hours, kind, node = parts[0], parts[1], parts[2] if len(parts) == 3 else ""
    try:
        at = float(hours)
    except ValueError:
        raise ValueError(f"{where}: {hours!r} is no number of hours") from None
    if not 0.0 <= at <= 1e6:
        raise ValueError(f"{where}: {hours} hours are not between 0 and 1,000,000")
    if kind not in KINDS:
        raise ValueError(f"{where}: {kind!r} is no kind of fault; there are {', '.join(KINDS)}")
    if node and not (node.isascii() and node.isdigit() and 1 <= int(node) <= nodes):
        raise ValueError(f"{where}: node {node!r} is not a number from 1 to {nodes}")
    return at, kind, int(node) if node else None
