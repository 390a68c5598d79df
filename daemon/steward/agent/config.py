"""The agent's part of steward.toml, read without pydantic to keep the agent small.

The keys are declared in `model/agent_tables.py`, which the head reads with pydantic. The agent refuses an unknown key
or a wrong value in these tables; the head, `steward config check` and the installation judge the whole file.
"""

import dataclasses
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from steward.adapters.owners import OthersMayChange, settings_text
from steward.checks import known
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.agent_tables import AgentSettings, ClusterSettings, HealthPolicy
from steward.model.setting_types import range_words, split_host_port
from steward.model.text import cause

T = TypeVar("T")


class ConfigError(Exception):
    """An error in the settings, as one line: file, key, value, remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The agent's settings."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    health: HealthPolicy = field(default_factory=HealthPolicy)
    checks: Limits = field(default_factory=Limits)

    @property
    def head_address(self) -> tuple[str, int]:
        """Return the host and port of `agent.head`, an IPv6 address without its brackets."""
        return split_host_port(self.agent.head)

    def for_node(self, node: str) -> "AgentConfig":
        """Return the settings for one node: `%n` in paths of `[agent]` is its name; numbers are its own."""
        table = self.agent
        paths = {name: value for name in _hints(AgentSettings) if isinstance(value := getattr(table, name), Path)}
        own = {name: Path(str(path).replace("%n", node)) for name, path in paths.items()}
        agent = dataclasses.replace(table, **own)  # type: ignore[arg-type]  # all paths
        return dataclasses.replace(self, agent=agent, checks=self.checks.at(node))


def load(path: Path, env: Mapping[str, str]) -> AgentConfig:
    """Read the agent's settings; `SLURM_CONF` in `env` is the default of `cluster.slurm_conf`. Raises ConfigError."""
    try:
        tables = tomllib.loads(settings_text(path))
    except OthersMayChange as error:
        raise ConfigError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({cause(error)}): write it (docs/config.md) or name another"
        ) from None
    return parse(tables, source=str(path), env=env)


def parse(tables: Mapping[str, Any], *, source: str, env: Mapping[str, str]) -> AgentConfig:
    """Build the agent's settings from parsed tables, as `load` does from a file. Raises ConfigError."""
    ours = {name: tables[name] for name in _hints(AgentConfig) if name in tables}
    if env.get("SLURM_CONF"):
        ours["cluster"] = {"slurm_conf": env["SLURM_CONF"], **_table(ours.get("cluster", {}), f"{source}: cluster")}
    checks = _table(ours.pop("checks", {}), f"{source}: checks")
    if wrong := known.problems(checks):
        raise ConfigError(f"{source}: {wrong[0]}")
    return dataclasses.replace(_build(AgentConfig, ours, f"{source}: "), checks=limits_of(checks))


def _build(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    hints, limits = _hints(kind), {one.name: one.metadata for one in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(table.keys() - hints):
        raise ConfigError(f"{where}{unknown[0]}: unknown key; remove it (`steward config check` says more)")
    return kind(**{name: _value(hints[name], value, where + name, limits[name]) for name, value in table.items()})


def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _value(hint: Any, value: Any, where: str, limits: Mapping[str, Any]) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, _table(value, where), f"{where}.")
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    if get_origin(hint) is Annotated:
        return _checked(hint, _value(get_args(hint)[0], value, where, limits), where)
    if get_origin(hint) is tuple:
        return tuple(_typed(str, item, where) for item in _typed(list, value, where))
    if hint is Path:
        return Path(_typed(str, value, where))
    found = float(_typed((int, float), value, where)) if hint is float else _typed(hint, value, where)
    if not _is_within(found, limits):
        wanted = f"a number {range_words(limits)}" if hint in (int, float) else "a text of another length"
        raise ConfigError(f"{where} = {value!r}: use {wanted} (docs/config.md)")
    return found


def _checked(hint: Any, value: Any, where: str) -> Any:
    try:
        return [each.rule(value) for each in hint.__metadata__][-1]
    except ValueError as error:
        raise ConfigError(f"{where} = {value!r}: {error}") from error


def _is_within(value: Any, limits: Mapping[str, Any]) -> bool:
    size = len(value) if isinstance(value, str) else value
    low, high = limits.get("ge", limits.get("min_length", size)), limits.get("le", limits.get("max_length", size))
    return bool(low <= size <= high)


def _table(value: Any, where: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = _typed(dict, value, where)
    return table


def _typed(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        wanted = kind.__name__ if isinstance(kind, type) else "number"
        raise ConfigError(f"{where} = {value!r}: use a {wanted} (docs/config.md)")
    return value
