"""Reads the settings file."""

from collections.abc import Mapping
from pathlib import Path

from steward.adapters.known_checks import wrong_names
from steward.adapters.settings_path import settings_path
from steward.model.settings import Problem, Settings, SettingsError, parse


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
