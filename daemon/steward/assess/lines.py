"""The assessment as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .answer import day
from .savings import NODE_HOURS, WAITING

_ROWS = 10


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the assessment."""
    price = found["per_node_hour"]
    where = f"{found['cluster'] or 'this cluster'}, {day(found['since'])} to {day(found['until'])}"
    yield f"What faults cost on {where} (Slurm {found['slurm'] or '?'}, {found['nodes']:,} nodes)"
    used = f"{found['used_node_hours']:,.0f} node-hours; nodes in use: {found['use']:.0%} of the time"
    yield f"{found['runs']:,} runs of jobs, {used}"
    yield ""
    yield "Lost, in node-hours (80 % interval)"
    head = ("", "count", "lost", "between", *(("money",) if price else ()))
    rows = [
        (one["title"], f"{one['count']:,}", number(one["middle"]), between(one), *money(one["middle"], price))
        for one in found["costs"]
    ]
    total = ("all", "", number(found["lost_node_hours"]), "", *money(found["lost_node_hours"], price))
    yield from table(head, [*rows, total])
    for name in ("user", "partition", "node"):
        yield from _by(name, found[f"by_{name}"], price)
    yield from _nodes(found)
    yield from _savings(found, price)
    yield ""
    yield "What the data cannot tell"
    for text in found["unknown"]:
        yield from wrapped(text)
    yield ""
    yield "Assumed (80 % of sites lie between; --assume KEY=LOW..HIGH)"
    yield from table(
        ("key", "low", "high", "unit", "meaning"),
        [
            (one["key"], f"{one['low']:g}", f"{one['high']:g}", one["unit"], one["meaning"])
            for one in found["assumptions"]
        ],
    )


def _by(name: str, rows: Sequence[Mapping[str, Any]], price: float | None) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"Lost by {name}"
    shown = [
        (called(one["name"]), f"{one['count']:,}", number(one["node_hours"]), *money(one["node_hours"], price))
        for one in rows[:_ROWS]
    ]
    yield from table((name, "setbacks", "lost", *(("money",) if price else ())), shown)
    if len(rows) > _ROWS:
        yield f"  and {len(rows) - _ROWS:,} more (--json has them)"


def _nodes(found: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "Nodes out of service"
    yield from table(
        ("because", "times", "node-hours", "still out"),
        [
            (one["title"], f"{one['count']:,}", number(one["node_hours"]), f"{one['open']:,}")
            for one in found["outages"]
        ],
    )
    lemons = [one for one in found["node_records"] if one["lemon"]]
    if lemons:
        yield ""
        yield "Lemons: nodes that fail more often than chance allows"
        yield from table(
            ("node", "faults", "jobs hit", "hours out"),
            [(one["node"], f"{one['faults']}", f"{one['jobs']}", number(one["out_hours"])) for one in lemons],
        )


def _savings(found: Mapping[str, Any], price: float | None) -> Iterator[str]:
    yield ""
    yield "What Steward would have saved, if every job had asked for it (80 % interval)"
    for unit, title in ((NODE_HOURS, "node-hours"), (WAITING, "hours in which jobs waited")):
        own = [one for one in found["savings"] if one["unit"] == unit]
        total = found["saved"][unit]
        cost = price if unit == NODE_HOURS else None
        head = (title, "saved", "between", *(("money",) if cost else ()), "")
        rows = [
            (one["title"], number(one["middle"]), between(one), *money(one["middle"], cost), one["why"]) for one in own
        ]
        yield from table(
            head, [*rows, ("all", number(total["middle"]), between(total), *money(total["middle"], cost), "")]
        )


def called(name: str | None) -> str:
    """Return the name as it is shown: printable, and words for none."""
    if name is None:
        return "others"
    return "".join(each if each.isprintable() else "?" for each in name[:60]) or "not known"


def number(value: float) -> str:
    """Return a number as it is read: with fewer decimals the larger it is."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 or not value else f"{value:,.2f}"


def between(one: Mapping[str, Any]) -> str:
    """Return the ends of the interval; empty if they are one."""
    return "" if one["low"] == one["high"] else f"{number(one['low'])} to {number(one['high'])}"


def money(node_hours: float, price: float | None) -> tuple[str, ...]:
    """Return what the node-hours cost, as a cell; none without a price."""
    return (number(node_hours * price),) if price else ()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table whose numbers stand at the right."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    right = [all(row[place][:1].isdigit() or not row[place] for row in rows) for place in range(len(head))]
    for row in (head, *rows):
        cells = (
            cell.rjust(width) if at_right else cell.ljust(width) for cell, width, at_right in zip(row, widths, right)
        )
        yield f"  {'  '.join(cells)}".rstrip()


def wrapped(text: str, width: int = 110) -> Iterator[str]:
    """Yield the text as an item of a list, in lines."""
    line = "  -"
    for word in text.split():
        if len(line) + 1 + len(word) > width:
            yield line
            line = "   "
        line += f" {word}"
    yield line
