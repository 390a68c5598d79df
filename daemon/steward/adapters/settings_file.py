"""The settings file in use."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from steward.adapters.owners import OthersMayChange, settings_text
from steward.adapters.settings_path import settings_path
from steward.checks import known
from steward.checks.known import limits_of
from steward.model.desired import Desired
from steward.model.settings import Problem, Settings, SettingsError, parse
from steward.model.settings.change import changed
from steward.model.settings.parse import parse_tables, tables_of
from steward.model.text import cause
from steward.views.notify import problem_of


def load(path: Path | None, env: Mapping[str, str]) -> Settings:
    """Return the settings in use. Raises SettingsError if the file is missing, unreadable or wrong."""
    where = settings_path(path, env)
    return _named_well(parse(_text(where), source=str(where), env=env), str(where))


def load_changed(path: Path | None, default: str, changes: Iterable[str], env: Mapping[str, str]) -> Settings:
    """Return the settings of a file, or of the text `default` without one, with changes of `TABLE.KEY=VALUE`.

    Raises SettingsError if the file, or what it is with the changes, is wrong.
    """
    where = "--set" if path is None else str(path)
    tables = tables_of(default if path is None else _text(path), where)
    for change in changes:
        tables = changed(tables, change)
    return _named_well(parse_tables(tables, source=where, env=env), where)


def _named_well(settings: Settings, where: str) -> Settings:
    if problems := wrong_names(settings):
        raise SettingsError(where, problems)
    return settings


def _text(where: Path) -> str:
    try:
        return settings_text(where)
    except OthersMayChange as error:
        raise SettingsError(str(where), [Problem(key="", text=str(error))]) from error
    except (OSError, UnicodeDecodeError) as error:
        remedy = "`steward init` writes a first one; another file is named with --config or STEWARD_CONFIG"
        problem = Problem(key="", text=f"cannot be read ({cause(error)}): {remedy}")
        raise SettingsError(str(where), [problem]) from error


# The names of checks and the templates of channels are verified here, since the layer of the settings knows neither the
# catalogue of checks nor how a message is written.


def wrong_names(settings: Settings) -> tuple[Problem, ...]:
    """Return the problems in the settings' tables of checks, and in templates of channels."""
    lines = known.problems(settings.checks)
    checks = [Problem(key=line.partition(": ")[0].partition(" = ")[0], text=line) for line in lines]
    return (*checks, *_wrong_templates(settings))


def _wrong_templates(settings: Settings) -> Iterator[Problem]:
    for number, one in enumerate(settings.notify):
        if why := problem_of(one.template):
            key = f"notify[{number}].template"
            yield Problem(key=key, text=f"{key}: the template of channel {one.name} {why}")


def desired(settings: Settings) -> Desired:
    """Return the settings that decisions use, with the mode of every check.

    A check that the file does not name has its own default mode.
    """
    return dataclasses.replace(settings.desired(), modes=MappingProxyType(known.modes(limits_of(settings.checks))))
