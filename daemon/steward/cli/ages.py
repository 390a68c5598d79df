"""Lengths of time as people give them: `30m`, `12h`, `7d`, `4w`."""

import re

import click

DAY_S = 86_400.0
_UNITS = {"m": 60.0, "h": 3600.0, "d": DAY_S, "w": 7 * DAY_S}


def age(context: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """An option's value in seconds."""
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", value or "")
    if value is not None and match is None:
        raise click.BadParameter(f"{value} is not a duration: use 30m, 12h, 7d or 4w")
    return int(match[1]) * _UNITS[match[2]] if match else None
