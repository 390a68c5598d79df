"""A run's size and throughput over time, as lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from steward.model.elastic import ElasticRun

WIDTH = 72
_MOST_ROWS = 12
_LEVELS = " ▁▂▃▄▅▆▇█"
_NOTHING = "·"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of time (Unix s) with a number of nodes; 0 nodes while the run formed or waited.

    `rate` is samples per second; None: not known.
    """

    began: float
    ended: float
    nodes: int
    rate: float | None = None


def stretches_of(run: ElasticRun, now: float, consumed: int | None) -> list[Stretch]:
    """Return the stretches between the run's changes, up to now or its end; `consumed` is the samples up to now."""
    ends = [(change.at, change.consumed) for change in run.events[1:]]
    ends.append((now, consumed) if run.ended is None else (run.ended, run.consumed))
    found = list[Stretch]()
    for change, (end, by_then) in zip(run.events, ends, strict=True):
        begun = end if change.done is None else min(change.done, end)
        found.append(Stretch(began=change.at, ended=begun, nodes=0))
        taken = None if by_then is None or change.resumed is None else max(by_then - change.resumed, 0)
        rate = taken / (end - begun) if taken is not None and end > begun else None
        found.append(Stretch(began=begun, ended=end, nodes=change.after, rate=rate))
    return found


def picture(stretches: Sequence[Stretch], *, width: int = WIDTH) -> list[str]:
    """Draw nodes as bars, one column for each part of the time, with the throughput below; empty without any time."""
    lasting = [one for one in stretches if one.ended > one.began]
    if not lasting:
        return []
    began, took = lasting[0].began, lasting[-1].ended - lasting[0].began
    edges = [began + took * place / width for place in range(width + 1)]
    columns = [_mean(lasting, *edge) for edge in pairwise(edges)]
    return [*_bars([nodes for nodes, _ in columns]), *_axis(took, width), *_rates([rate for _, rate in columns])]


def _mean(stretches: Sequence[Stretch], began: float, ended: float) -> tuple[float, float | None]:
    """Return the node count that lasted longest within a column's time, and its mean rate (None: not known)."""
    held: dict[int, float] = {}
    done, known = 0.0, 0.0
    for one in stretches:
        shared = min(one.ended, ended) - max(one.began, began)
        if shared <= 0:
            continue
        held[one.nodes] = held.get(one.nodes, 0.0) + shared
        if one.rate is not None:
            done, known = done + one.rate * shared, known + shared
    return max(held, key=lambda nodes: held[nodes], default=0), done / known if known else None


def _bars(sizes: Sequence[float]) -> list[str]:
    most = max(1, int(max(sizes)))
    step = -(-most // _MOST_ROWS)
    rows = range(-(-most // step) * step, 0, -step)
    lines = [f"{row:>5} │" + "".join("█" if size > row - step else " " for size in sizes).rstrip() for row in rows]
    return ["nodes", *lines]


def _axis(took: float, width: int) -> list[str]:
    line = [" "] * (width + 8)
    for number in range(5):
        tick = _span(took * number / 4)
        at = number * (width - 1) // 4
        line[at : at + len(tick)] = tick
    return ["      └" + "─" * width, "       " + "".join(line).rstrip()]


def _span(seconds: float) -> str:
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:.1f} h"


def _rates(rates: Sequence[float | None]) -> list[str]:
    most = max((rate for rate in rates if rate is not None), default=0.0)
    if most <= 0:
        return []
    marks = (_NOTHING if rate is None else _LEVELS[round(rate / most * (len(_LEVELS) - 1))] for rate in rates)
    return [f"       {''.join(marks).rstrip()}", f"       samples/s (full height: {most:,.0f})"]
