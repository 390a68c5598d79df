"""The assessment as one HTML file: pictures inside, no script, nothing that is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .answer import day
from .history import KINDS
from .lines import between, called, money, number
from .savings import NODE_HOURS, WAITING

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --dim: #667085; --paper: #fff; --line: #d9dee7; --bar: #3867d6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --dim: #98a2b3; --paper: #14181f; --line: #333b47; --bar: #6f9bff; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; }
.figures div { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; }
.figures b { display: block; font-size: 1.5rem; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid var(--line); padding: .2rem .8rem .2rem 0; }
td, th { text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
small, .dim { color: var(--dim); }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font-size: 12px; }
svg .dim { fill: var(--dim); } svg .axis { stroke: var(--line); }
svg .bar { fill: var(--bar); } svg .range { stroke: var(--ink); stroke-width: 1.5; }
.k0 { fill: #3867d6; } .k1 { fill: #8854d0; } .k2 { fill: #20a39e; }
.k3 { fill: #a5b1c2; } .k4 { fill: #eb6e4b; } .k5 { fill: #f7b731; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.legend svg { display: inline; width: 10px; height: 10px; margin-right: .35rem; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WIDTH, _LEFT, _RIGHT, _ROW = 900, 310, 190, 26


def page(found: Mapping[str, Any]) -> str:
    """Return the page."""
    title = f"What faults cost on {called(found['cluster']) if found['cluster'] else 'this cluster'}"
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{day(found['since'])} to {day(found['until'])}; Slurm {escape(found['slurm'] or '?')};",
        f"{found['nodes']:,} nodes, in use {found['use']:.0%} of the time; {found['runs']:,} runs of jobs,",
        f"{found['used_node_hours']:,.0f} node-hours.</p>",
        *_figures(found),
        *_costs(found),
        *_savings(found),
        *_weeks(found["weeks"]),
        *_tables(found),
        *_nodes(found),
        "<h2>What the data cannot tell</h2>",
        "<ul>",
        *(f"<li>{escape(text)}</li>" for text in found["unknown"]),
        "</ul>",
        *_assumed(found),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _figures(found: Mapping[str, Any]) -> Iterator[str]:
    saved, waiting = found["saved"][NODE_HOURS], found["saved"][WAITING]
    price = found["per_node_hour"]
    figures = [
        (number(found["lost_node_hours"]), "node-hours lost to setbacks of jobs"),
        (number(sum(one["node_hours"] for one in found["outages"])), "node-hours out of service"),
        (number(saved["middle"]), f"node-hours that Steward would have saved ({between(saved) or 'exactly'})"),
        *((cell, "the same in money") for cell in money(saved["middle"], price)),
        (number(waiting["middle"]), "hours of waiting that it would have saved jobs"),
    ]
    cells = (f"<div><b>{escape(value)}</b><small>{escape(meaning)}</small></div>" for value, meaning in figures)
    yield f'<div class="figures">{"".join(cells)}</div>'


def _costs(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Node-hours that setbacks of jobs cost</h2>"
    yield bars([(f"{one['title']} ({one['count']:,})", one) for one in found["costs"]])
    yield "<p><small>The line at the end of each bar: 80 % interval.</small></p>"


def _savings(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>What Steward would have saved, if every job had asked for it</h2>"
    for unit, title in ((NODE_HOURS, "Node-hours"), (WAITING, "Hours in which jobs waited")):
        own = [one for one in found["savings"] if one["unit"] == unit]
        yield f"<h3>{title}</h3>"
        yield bars([(one["title"], one) for one in own])
        why = (f"<li>{escape(one['title'])}: {escape(one['why'])}</li>" for one in own)
        yield f"<ul>{''.join(why)}</ul>"


def bars(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Return a picture of rows, each a bar to the middle and a line from the low to the high end of its interval."""
    scale = (_WIDTH - _LEFT - _RIGHT) / (max((one["high"] for _, one in rows), default=0.0) or 1.0)
    found = []
    for place, (title, one) in enumerate(rows):
        top = place * _ROW + 4
        low, middle, high = (_LEFT + scale * one[name] for name in ("low", "middle", "high"))
        label = number(one["middle"]) + (f" ({between(one)})" if between(one) else "")
        found += [
            f'<text x="{_LEFT - 10}" y="{top + 14}" text-anchor="end">{escape(title)}</text>',
            f'<rect class="bar" x="{_LEFT}" y="{top}" width="{max(middle - _LEFT, 1):.1f}" height="{_ROW - 8}"><title>'
            f"{escape(f'{title}: {label}')}</title></rect>",
            f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{top + 9}" y2="{top + 9}"/>',
            f'<text class="dim" x="{high + 8:.1f}" y="{top + 14}">{escape(label)}</text>',
        ]
    return f'<svg viewBox="0 0 {_WIDTH} {len(rows) * _ROW + 4}" role="img">{"".join(found)}</svg>'


def _weeks(weeks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the picture of the weeks: a column for each, a colour for each kind."""
    yield "<h2>Node-hours lost in each week</h2>"
    most = max((sum(week["node_hours"].values()) for week in weeks), default=0.0) or 1.0
    step, height = _WIDTH / max(1, len(weeks)), 160
    found = []
    for place, week in enumerate(weeks):
        top = float(height)
        for colour, (kind, title) in enumerate(KINDS.items()):
            value = week["node_hours"].get(kind, 0.0)
            size = value / most * (height - 10)
            top -= size
            if size:
                told = escape(f"week of {day(week['begin'])}, {title}: {number(value)} node-hours")
                found.append(
                    f'<rect class="k{colour}" x="{place * step + 1:.1f}" y="{top:.1f}" width="{max(step - 2, 1):.1f}" '
                    f'height="{size:.1f}"><title>{told}</title></rect>'
                )
    found.append(f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{height}" y2="{height}"/>')
    if weeks:
        found.append(f'<text class="dim" x="0" y="{height + 16}">{day(weeks[0]["begin"])}</text>')
        found.append(
            f'<text class="dim" x="{_WIDTH}" y="{height + 16}" text-anchor="end">{day(weeks[-1]["begin"])}</text>'
        )
    yield f'<svg viewBox="0 0 {_WIDTH} {height + 22}" role="img">{"".join(found)}</svg>'
    keys = (
        f'<span><svg viewBox="0 0 10 10"><rect class="k{colour}" width="10" height="10"/></svg>{escape(title)}</span>'
        for colour, title in enumerate(KINDS.values())
    )
    yield f'<p class="legend">{"".join(keys)}</p>'


def _tables(found: Mapping[str, Any]) -> Iterator[str]:
    price = found["per_node_hour"]
    for name in ("user", "partition", "node"):
        if rows := found[f"by_{name}"]:
            yield f"<h2>Lost by {name}</h2>"
            cells = [
                (called(one["name"]), f"{one['count']:,}", number(one["node_hours"]), *money(one["node_hours"], price))
                for one in rows[:20]
            ]
            yield grid((name, "setbacks", "node-hours", *(("money",) if price else ())), cells)
            if len(rows) > 20:
                yield f"<p><small>and {len(rows) - 20:,} more</small></p>"


def _nodes(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Nodes out of service</h2>"
    rows = [
        (one["title"], f"{one['count']:,}", number(one["node_hours"]), f"{one['open']:,}") for one in found["outages"]
    ]
    yield grid(("because", "times", "node-hours", "still out"), rows)
    worst = [one for one in found["node_records"] if one["faults"]][:20]
    if worst:
        yield "<h2>Nodes with the most faults</h2>"
        titles = [f"{called(one['node'])}{' (lemon)' if one['lemon'] else ''}" for one in worst]
        yield bars(
            [(title, dict.fromkeys(("low", "middle", "high"), one["faults"])) for title, one in zip(titles, worst)]
        )
        yield "<p><small>A lemon fails more often than chance allows in a cluster of equal nodes.</small></p>"


def _assumed(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>Assumed</h2><p><small>80 % of sites lie between low and high.</small></p>"
    rows = [
        (one["key"], f"{one['low']:g}", f"{one['high']:g}", one["unit"], one["meaning"]) for one in found["assumptions"]
    ]
    yield grid(("key", "low", "high", "unit", "meaning"), rows)


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose numbers stand at the right."""
    right = [all(row[place][:1].isdigit() or not row[place] for row in rows) for place in range(len(head))]

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = (f'<{tag} class="n">' if at_right else f"<{tag}>" for at_right in right)
        return f"<tr>{''.join(f'{mark}{escape(cell)}</{tag}>' for mark, cell in zip(marks, cells))}</tr>"

    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"
