"""Reads the settings file, and holds it against the catalogue of checks."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from steward.adapters.settings_path import settings_path
from steward.checks import known
from steward.checks.limits import Limits
from steward.model.desired import Desired
from steward.model.settings import Problem, Settings, SettingsError, parse
from steward.model.settings.checks import ChecksSettings


def load(path: Path | None, env: Mapping[str, str]) -> Settings:
    """The settings in use. Raises SettingsError when the file is not there, not readable or wrong."""
    where = settings_path(path, env)
    try:
        text = where.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        remedy = "write it (docs/config.md), or name another with --config or STEWARD_CONFIG"
        problem = Problem(key="", text=f"cannot be read ({error}): {remedy}")
        raise SettingsError(str(where), [problem]) from error
    settings = parse(text, source=str(where), env=env)
    if problems := wrong_names(settings):
        raise SettingsError(str(where), problems)
    return settings


# The settings against the catalogue of checks: the layer of the settings does not know the checks.


def wrong_names(settings: Settings) -> tuple[Problem, ...]:
    """Checks and thresholds that the file speaks of and that there are none of, and numbers that make no sense."""
    return tuple(
        Problem(key=line.partition(" = ")[0], text=line) for line in known.problems(limits_of(settings.checks))
    )


def desired(settings: Settings) -> Desired:
    """The settings that decisions use, with the mode of every check; a check that the file does not name has its own
    mode."""
    wanted = settings.desired()
    modes = {**known.modes(limits_of(settings.checks)), **wanted.modes}
    return dataclasses.replace(wanted, modes=MappingProxyType(modes))


def limits_of(settings: ChecksSettings) -> Limits:
    """The same tables as the checks know them."""
    tables = settings.model_dump(mode="json")
    own = Limits()
    return Limits(
        **{field.name: _as(getattr(own, field.name), tables[field.name]) for field in dataclasses.fields(own)}
    )


def _as(default: Any, table: dict[str, Any]) -> Any:
    """A table as its dataclass; the two that are plain mappings stay so."""
    if not dataclasses.is_dataclass(default):
        return table
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return dataclasses.replace(default, **values)  # type: ignore[type-var]  # it is an instance
