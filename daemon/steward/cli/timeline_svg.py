"""A job's time as a picture: nodes as rows, runs as bars coloured by phase, faults as marks, a time axis below.

Written with `xml.etree` alone. Colours are legible on white and on black; texts follow the viewer's scheme.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

_WIDTH, _LEFT, _RIGHT, _TOP = 1000.0, 130.0, 24.0, 74.0
_ROW, _BAR = 24.0, 16.0
_MOST_ROWS = 64
_COLOURS = {
    "work": "#2e9e6b",
    "start": "#6aa5d8",
    "redo": "#d9822b",
    "detect": "#d64545",
    "decide": "#b0449e",
    "release": "#8a6fd1",
    "queue": "#8c98a4",
}
_STYLE = """
svg { background: #ffffff; color: #1c2733 }
text { font: 12px system-ui, sans-serif; fill: currentColor }
.head { font-size: 15px; font-weight: 600 }
.quiet { fill-opacity: .65 }
.grid { stroke: currentColor; stroke-opacity: .14 }
.fault { stroke: #d64545; stroke-width: 1.5; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) { svg { background: #12181f; color: #e6edf3 } }
"""
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800)


class _Scale:
    """Maps seconds to pixels."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin, self.end = begin, max(end, begin + 1.0)
        self._factor = (_WIDTH - _LEFT - _RIGHT) / (self.end - self.begin)

    def x(self, at: float) -> float:
        return round(_LEFT + (min(max(at, self.begin), self.end) - self.begin) * self._factor, 2)


def timeline_svg(job: Mapping[str, Any], now: float) -> str:
    """Return the picture of a `job` as `GET /v1/report?job=` returns it, with `history` and `timeline`."""
    segments, runs = job["timeline"], job["history"]
    nodes = _rows(runs)
    scale = _Scale(
        min((one["begin"] for one in segments), default=now), max((one["end"] for one in segments), default=now)
    )
    bottom = _TOP + _ROW * len(nodes)
    svg = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH:g} {bottom + 78:g}", role="img")
    SubElement(svg, "title").text = f"job {job['job']}"
    SubElement(svg, "style").text = _STYLE
    _head(svg, job)
    _axis(svg, scale, bottom)
    for number, node in enumerate(nodes):
        _row(svg, node, _TOP + number * _ROW, job, scale)
    for one in job["incidents"]:
        _fault(svg, one, nodes, scale, bottom)
    _legend(svg, bottom + 56, {one["phase"] for one in segments})
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(svg, encoding="unicode") + "\n"


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every node the job ran on, in order of use, up to the limit of rows."""
    named = dict.fromkeys(node for run in runs for node in _natural(run["nodes"]))
    return list(named)[:_MOST_ROWS]


def _natural(nodes: Sequence[str]) -> list[str]:
    return sorted(nodes, key=lambda name: (len(name), name))


def _head(svg: Element, job: Mapping[str, Any]) -> None:
    sums = job["sums"]
    ettr = "" if sums["ettr"] is None else f"ETTR {sums['ettr'] * 100:.1f} %"
    parts = [f"{job['runs']} runs", ettr, f"{sums['lost_node_s']:.0f} node-seconds lost", job["state"]]
    _text(svg, _LEFT, 26, f"job {job['job']}: {job['name']}", "head")
    _text(svg, _LEFT, 46, " · ".join(filter(None, parts)), "quiet")


def _axis(svg: Element, scale: _Scale, bottom: float) -> None:
    step = next((one for one in _TICKS if (scale.end - scale.begin) / one <= 9), _TICKS[-1])
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%m-%d"
    at = math.ceil(scale.begin / step) * step
    while at <= scale.end:
        x = scale.x(at)
        SubElement(svg, "line", {"class": "grid"}, x1=f"{x:g}", x2=f"{x:g}", y1=f"{_TOP - 6:g}", y2=f"{bottom + 4:g}")
        _text(svg, x, bottom + 20, datetime.fromtimestamp(at).strftime(form), "quiet", "middle")
        at += step
    day = datetime.fromtimestamp(scale.begin).astimezone().strftime("%Y-%m-%d %Z")
    _text(svg, _LEFT - 12, bottom + 20, day, "quiet", "end")


def _row(svg: Element, node: str, y: float, job: Mapping[str, Any], scale: _Scale) -> None:
    _text(svg, _LEFT - 12, y + _BAR - 3, node if len(node) <= 16 else f"{node[:15]}…", "", "end")
    had = {run["key"] for run in job["history"] if node in run["nodes"]}
    for one in job["timeline"]:
        if one["run"] not in had:
            continue
        x, end = scale.x(one["begin"]), scale.x(one["end"])
        bar = SubElement(
            svg,
            "rect",
            x=f"{x:g}",
            y=f"{y if one['held'] else y + _BAR / 2 - 2:g}",
            width=f"{max(end - x, 0.6):g}",
            height=f"{_BAR if one['held'] else 4:g}",
            rx="1.5",
            fill=_COLOURS[one["phase"]],
        )
        SubElement(bar, "title").text = f"{one['phase']}: {one['end'] - one['begin']:.1f} s"


def _fault(svg: Element, one: Mapping[str, Any], nodes: Sequence[str], scale: _Scale, bottom: float) -> None:
    """Draw a fault: a dashed line through all rows, and a cross on the nodes to blame."""
    at = next((one[name] for name in ("fault", "detected", "decided") if one[name] is not None), None)
    if at is None:
        return
    x = scale.x(at)
    rule = SubElement(svg, "line", {"class": "fault"}, x1=f"{x:g}", x2=f"{x:g}", y1=f"{_TOP - 8:g}", y2=f"{bottom:g}")
    SubElement(rule, "title").text = f"{', '.join(one['culprits']) or 'no node'}: {one['why']}"
    _text(svg, x, _TOP - 12, one["cause"] or one["rule"], "quiet", "middle")
    for node in set(one["culprits"]) & set(nodes):
        y = _TOP + nodes.index(node) * _ROW + _BAR / 2
        SubElement(
            svg,
            "path",
            {"stroke": "#d64545", "stroke-width": "2.5", "fill": "none"},
            d=f"M{x - 5:g} {y - 5:g}L{x + 5:g} {y + 5:g}M{x - 5:g} {y + 5:g}L{x + 5:g} {y - 5:g}",
        )


def _legend(svg: Element, y: float, phases: set[str]) -> None:
    x = _LEFT
    for phase in (name for name in _COLOURS if name in phases):
        SubElement(svg, "rect", x=f"{x:g}", y=f"{y - 10:g}", width="11", height="11", rx="1.5", fill=_COLOURS[phase])
        _text(svg, x + 16, y, phase, "")
        x += 34 + 7 * len(phase)


def _text(svg: Element, x: float, y: float, text: str, kind: str, anchor: str = "start") -> None:
    said = SubElement(svg, "text", {"text-anchor": anchor}, x=f"{x:g}", y=f"{y:g}")
    if kind:
        said.set("class", kind)
    said.text = text
