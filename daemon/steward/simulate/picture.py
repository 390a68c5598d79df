"""A study as one picture (SVG): where the jobs' time goes with each way, and what a sweep found.

The study itself is in the picture's `metadata`, so that it can be drawn again.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape, unescape
from typing import Any

from steward.simulate.training import Use

_COLORS = {
    Use.SAVE: "#a5b1c2",
    Use.REDO: "#eb6e4b",
    Use.START: "#8854d0",
    Use.DETECT: "#f7b731",
    Use.QUEUE: "#3867d6",
}
_TEXTS = {
    Use.SAVE: "pauses to save",
    Use.REDO: "work done again",
    Use.START: "starts",
    Use.DETECT: "until the run was over",
    Use.QUEUE: "between two runs",
}
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1d2433}.dim{fill:#667085}.line{stroke:#d9dee7}"
    ".curve{fill:none;stroke:#3867d6;stroke-width:2}.paper{fill:#fff}"
)
_WIDTH, _LEFT, _BAR, _TOP = 860, 200, 480, 64
_PLOT_W, _PLOT_H = 300, 130
_OPEN, _CLOSE = "<metadata>", "</metadata>"


def picture_of(found: Mapping[str, Any]) -> str:
    """Return the picture."""
    told = escape(json.dumps(found, sort_keys=True), quote=False)
    plots = list(_sweeps(found))
    height = _TOP + 3 * 38 + 60 + (_PLOT_H + 70 if plots else 0)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            f"{_OPEN}{told}{_CLOSE}",
            f"<title>{escape(_title(found))}</title><style>{_STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
            f'<text x="16" y="26" font-weight="600">{escape(_title(found))}</text>',
            '<text x="16" y="46" class="dim">Time that is no work, in % of all time of the jobs (simulated)</text>',
            *_bars(found),
            *plots,
            "</svg>",
            "",
        ]
    )


def study_in(picture: str) -> Mapping[str, Any]:
    """Return the study that a picture was made from."""
    told = picture.partition(_OPEN)[2].partition(_CLOSE)[0]
    found: Mapping[str, Any] = json.loads(unescape(told))
    return found


def _title(found: Mapping[str, Any]) -> str:
    return f"{found['source']}: {found['nodes']:,} nodes, {found['spares']} of them spare, {found['faults']:.0f} faults"


def _bars(found: Mapping[str, Any]) -> Iterator[str]:
    ways = found["ways"]
    shares = {name: _lost_shares(way) for name, way in ways.items()}
    most = max(sum(each.values()) for each in shares.values()) or 1.0
    for row, (name, way) in enumerate(ways.items()):
        y, x = _TOP + row * 38, float(_LEFT)
        yield f'<text x="{_LEFT - 10}" y="{y + 17}" text-anchor="end">{escape(name)}</text>'
        for use, share in shares[name].items():
            width = share / most * _BAR
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="24" fill="{_COLORS[use]}"/>'
            x += width
        text = f"{100 * sum(shares[name].values()):.1f} % lost, ETTR {100 * way['ettr']['mean']:.1f} %"
        yield f'<text x="{x + 8:.1f}" y="{y + 17}">{text}</text>'
    for number, (use, text) in enumerate(_TEXTS.items()):
        x, y = 16 + number * 166, _TOP + 3 * 38 + 16
        yield f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{_COLORS[use]}"/>'
        yield f'<text x="{x + 17}" y="{y}" class="dim">{text}</text>'


def _lost_shares(way: Mapping[str, Any]) -> dict[Use, float]:
    hours = way["node_hours"]
    total = sum(hours.values()) or 1.0
    return {use: hours[use.value] / total for use in _COLORS}


def _sweeps(found: Mapping[str, Any]) -> Iterator[str]:
    top = _TOP + 3 * 38 + 80
    for number, sweep in enumerate(found["sweep"][:2]):
        yield from _plot(sweep, 60 + number * (_PLOT_W + 120), top)


def _plot(sweep: Mapping[str, Any], left: int, top: int) -> Iterator[str]:
    points = sweep["points"]
    values = [point["ettr"]["mean"] for point in points]
    low, high = min(values), max(values)
    wide = (high - low) or 0.01
    places = [
        (left + _PLOT_W * i / max(1, len(points) - 1), top + _PLOT_H * (1 - (value - low) / wide))
        for i, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<text x="{left}" y="{top - 14}">ETTR by {escape(sweep["axis"])}; best: {escape(sweep["best"])}</text>'
    yield f'<line class="line" x1="{left}" y1="{top + _PLOT_H}" x2="{left + _PLOT_W}" y2="{top + _PLOT_H}"/>'
    yield f'<polyline class="curve" points="{line}"/>'
    for (x, y), point, value in zip(places, points, values, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#3867d6"/>'
        yield f'<text x="{x:.1f}" y="{top + _PLOT_H + 18}" text-anchor="middle" class="dim">{point["text"]}</text>'
        if value in (low, high):
            below = 14 if value == high else -6
            yield f'<text x="{x + 6:.1f}" y="{y + below:.1f}" class="dim">{100 * value:.1f} %</text>'
