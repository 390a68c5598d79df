"""The agent's part of steward.toml, read without pydantic to keep the agent small.

The keys are declared in `model/agent_tables.py`, which the head reads with pydantic. The agent refuses an unknown key
or a wrong value in these tables; the head, `steward config check` and the installation judge the whole file.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from steward.adapters.codec import decode
from steward.adapters.owners import OthersMayChange, settings_text
from steward.checks import known
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.agent_tables import AgentSettings, ClusterSettings, HealthPolicy
from steward.model.setting_types import problems_of, split_host_port
from steward.model.text import as_in_file, cause

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
    def heads(self) -> tuple[tuple[str, int], ...]:
        """Return the hosts and ports of `agent.head`, IPv6 addresses without their brackets."""
        return tuple(map(split_host_port, self.agent.head))

    def for_node(self, node: str) -> "AgentConfig":
        """Return one node's settings: its name in place of `%n` in the paths of `[agent]`, and its own numbers."""
        table = self.agent
        values = {one.name: getattr(table, one.name) for one in dataclasses.fields(table)}
        own = {name: Path(str(value).replace("%n", node)) for name, value in values.items() if isinstance(value, Path)}
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
    cluster, checks = (_table(tables.get(name, {}), f"{source}: {name}") for name in ("cluster", "checks"))
    if env.get("SLURM_CONF"):
        cluster = {"slurm_conf": env["SLURM_CONF"], **cluster}
    if wrong := known.problems(checks):
        raise ConfigError(f"{source}: {wrong[0]}")
    return AgentConfig(
        cluster=_read(ClusterSettings, cluster, f"{source}: cluster"),
        agent=_read(AgentSettings, tables.get("agent", {}), f"{source}: agent"),
        health=_read(HealthPolicy, tables.get("health", {}), f"{source}: health"),
        checks=limits_of(checks),
    )


def _read(kind: type[T], table: Any, where: str) -> T:
    """Return the table's values. Raises ConfigError for an unknown key, a wrong type or a wrong value."""
    try:
        read: T = decode(kind, table, where)
    except ValueError as error:
        raise ConfigError(f"{error} (docs/config.md)") from None
    if unknown := sorted(set(table) - {one.name for one in dataclasses.fields(cast(Any, kind))}):
        raise ConfigError(f"{where}.{unknown[0]}: unknown key; remove it (`steward config check` says more)")
    for name, problem in problems_of(read):
        raise ConfigError(f"{where}.{name} = {as_in_file(table[name])}: {problem} (docs/config.md)")
    return read


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} = {as_in_file(value)}: use a table (docs/config.md)")
    return value
