"""One change of the settings on a command line: `repair.mode=act`, `resume.hot_spares=4`."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from steward.model.settings.errors import Problem, SettingsError

_CHANGE = re.compile(r"([a-z_]+(?:\.[a-z_]+)+)=(.*)", re.DOTALL)


def changed(tables: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the tables with the change. A value that is no TOML is a text. Raises SettingsError."""
    match = _CHANGE.fullmatch(text)
    if match is None:
        raise _wrong(text, "give TABLE.KEY=VALUE, such as repair.breaker_percent=10")
    *path, key = match[1].split(".")
    return _with(tables, path, key, _value(match[2]), text)


def _with(tables: Mapping[str, Any], path: list[str], key: str, value: object, text: str) -> dict[str, Any]:
    if not path:
        return {**tables, key: value}
    inner = tables.get(path[0], {})
    if not isinstance(inner, Mapping):
        raise _wrong(text, f"{path[0]} is no single table")
    return {**tables, path[0]: _with(inner, path[1:], key, value, text)}


def _value(word: str) -> object:
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except tomllib.TOMLDecodeError:
        return word


def _wrong(text: str, why: str) -> SettingsError:
    return SettingsError("--set", [Problem(key=text.partition("=")[0], text=f"{text}: {why}")])
