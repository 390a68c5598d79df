"""From the file's text to Settings: pure, so that a test needs no file."""

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from steward.model.former_settings import Contradiction, in_todays_words
from steward.model.settings.errors import Problem, SettingsError, problems_in
from steward.model.settings.root import Settings
from steward.model.settings.rules import broken_rules


def _silent(line: str) -> None:
    """For those who do not ask."""


def parse(text: str, *, source: str, env: Mapping[str, str], tell: Callable[[str], None] = _silent) -> Settings:
    """The settings that `text` (TOML) says, with `env` filling in what Slurm itself takes from there. `tell` gets a
    line for each key of an earlier version.

    Raises SettingsError that names every wrong key, its value and a remedy.
    """
    try:
        tables = in_todays_words(tomllib.loads(text), tell)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [Problem(key="", text=f"not TOML: {error}")]) from error
    except Contradiction as error:
        raise SettingsError(source, [Problem(key="", text=str(error))]) from error
    try:
        settings = Settings.model_validate_json(json.dumps(_with_env(tables, env), default=str))
    except ValidationError as error:
        raise SettingsError(source, problems_in(error, Settings)) from error
    if problems := broken_rules(settings):
        raise SettingsError(source, problems)
    return settings


def _with_env(tables: Mapping[str, Any], env: Mapping[str, str]) -> Mapping[str, Any]:
    """`SLURM_CONF` is the default of `cluster.slurm_conf`, as it is for every Slurm command."""
    cluster = tables.get("cluster", {})
    where = env.get("SLURM_CONF", "")
    if not where or not isinstance(cluster, dict):
        return tables
    return {**tables, "cluster": {"slurm_conf": where, **cluster}}
