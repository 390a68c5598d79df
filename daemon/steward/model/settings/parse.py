"""The parser from the settings file's text to Settings: pure, so that a test needs no file."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from steward.model.settings.errors import Problem, SettingsError, problems_in
from steward.model.settings.root import Settings
from steward.model.settings.rules import broken_rules


def parse(text: str, *, source: str, env: Mapping[str, str]) -> Settings:
    """Return the settings in `text` (TOML), with the default of `cluster.slurm_conf` from `env`.

    Raises SettingsError that names every wrong key, its value and a remedy.
    """
    return parse_tables(tables_of(text, source), source=source, env=env)


def tables_of(text: str, source: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises SettingsError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(source, [Problem(key="", text=f"not TOML: {error}")]) from error


def parse_tables(tables: Mapping[str, Any], *, source: str, env: Mapping[str, str]) -> Settings:
    """Return the settings in `tables`, as `parse` does."""
    try:
        settings = Settings.model_validate_json(json.dumps(_with_env(tables, env), default=str))
    except ValidationError as error:
        raise SettingsError(source, problems_in(error, Settings)) from error
    if problems := broken_rules(settings):
        raise SettingsError(source, problems)
    return settings


def _with_env(tables: Mapping[str, Any], env: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the tables with `SLURM_CONF` as default of `cluster.slurm_conf`, as for every Slurm command."""
    cluster = tables.get("cluster", {})
    where = env.get("SLURM_CONF", "")
    if not where or not isinstance(cluster, dict):
        return tables
    return {**tables, "cluster": {"slurm_conf": where, **cluster}}
