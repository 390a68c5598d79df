"""Reads the settings file, and holds it against the catalogue of checks."""

import dataclasses
import logging
import stat
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType

from steward.adapters.files import write_whole
from steward.adapters.settings_path import settings_path
from steward.checks import known
from steward.checks.limits import limits_of
from steward.model.desired import Desired
from steward.model.former_settings import Contradiction
from steward.model.settings import Problem, Settings, SettingsError, parse
from steward.model.settings.migrate import ByHand, Migration, migration

_log = logging.getLogger(__name__)


def load(path: Path | None, env: Mapping[str, str]) -> Settings:
    """The settings in use. Raises SettingsError when the file is not there, not readable or wrong."""
    where = settings_path(path, env)
    return _judged(_text(where), where, env, lambda line: _log.warning("%s: %s", where, line))


def _text(where: Path) -> str:
    try:
        with where.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        remedy = "write it (docs/config.md), or name another with --config or STEWARD_CONFIG"
        problem = Problem(key="", text=f"cannot be read ({error}): {remedy}")
        raise SettingsError(str(where), [problem]) from error


def _judged(text: str, where: Path, env: Mapping[str, str], tell: Callable[[str], None]) -> Settings:
    settings = parse(text, source=str(where), env=env, tell=tell)
    if problems := wrong_names(settings):
        raise SettingsError(str(where), problems)
    return settings


# A file of an earlier version in today's words.


def migrated(path: Path | None, env: Mapping[str, str]) -> Migration:
    """What `rewrite` would write. Raises SettingsError where the file is wrong, before or after."""
    where = settings_path(path, env)
    text = _text(where)
    _judged(text, where, env, lambda line: None)
    try:
        new = migration(text)
    except (Contradiction, ByHand) as error:
        raise SettingsError(str(where), [Problem(key="", text=str(error))]) from error
    _judged(new.text, where, env, lambda line: None)
    return new


def rewrite(path: Path | None, env: Mapping[str, str], text: str) -> Path:
    """The path of the old file, which is kept. Owner and mode of both are what they were. Raises OSError."""
    where = settings_path(path, env).resolve()
    names = (where.with_name(f"{where.name}.before-migrate{number or ''}") for number in count())
    old = next(name for name in names if not name.exists())
    own = where.stat()
    for file, content in ((old, _text(where)), (where, text)):
        write_whole(file, content, mode=stat.S_IMODE(own.st_mode), owner=(own.st_uid, own.st_gid), sync=True)
    return old


# The settings against the catalogue of checks: the layer of the settings does not know the checks.


def wrong_names(settings: Settings) -> tuple[Problem, ...]:
    """What is wrong with the tables of checks."""
    return tuple(
        Problem(key=line.partition(": ")[0].partition(" = ")[0], text=line) for line in known.problems(settings.checks)
    )


def desired(settings: Settings) -> Desired:
    """The settings that decisions use, with the mode of every check; a check that the file does not name has its own
    mode."""
    return dataclasses.replace(settings.desired(), modes=MappingProxyType(known.modes(limits_of(settings.checks))))
