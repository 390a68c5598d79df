"""The agent's part of steward.toml, read without pydantic to keep the agent small.

Names and defaults are those of `model/settings` (a test compares them). The head, `steward config check` and the
installation check the whole file; the agent refuses a wrong type or an unknown key in its own tables.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from steward.adapters.codec import decode
from steward.adapters.owners import OthersMayChange, settings_text
from steward.checks import known
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.mend import RESTARTABLE

T = TypeVar("T")


class ConfigError(Exception):
    """An error in the settings, as one line: file, key, value, remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTable:
    """The keys of `[cluster]` that the agent reads; it ignores the head's."""

    slurm_conf: Path = Path("/etc/slurm/slurm.conf")
    slurm_user: str = "slurm"
    munge_socket: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTable:
    """The keys of `[agent]`."""

    head: str = "localhost:6861"
    node_name: str = ""
    socket: Path = Path("/run/steward/agent.sock")
    state_dir: Path = Path("/run/steward")
    instance_id_file: Path | None = None
    boot_id_file: Path = Path("/proc/sys/kernel/random/boot_id")
    site_checks_dir: Path = Path("/etc/steward/checks.d")
    kernel_log: Path = Path("/dev/kmsg")
    proc_dir: Path = Path("/proc")
    sys_dir: Path = Path("/sys")
    board_serial_file: Path = Path("/sys/class/dmi/id/board_serial")
    job_dir: Path = Path("/run/steward/jobs")
    setup_dir: Path = Path("/var/lib/steward-agent")
    setup_log: Path = Path("/var/log/provision/provisioning.log")
    config_dir: Path = Path("/opt/ml/config")
    restart_units: tuple[str, ...] = RESTARTABLE
    check_interval_s: float = 15.0
    hold_head_absent_s: float = 70.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthTable:
    """The keys of `[health]`."""

    bad_samples: int = 2
    last_samples: int = 3
    clear_after_s: float = 600.0
    features: bool = True
    canary_node_count: int = 5
    canary_h: float = 4.0
    canary_failing_percent: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The agent's settings."""

    cluster: ClusterTable = ClusterTable()
    agent: AgentTable = AgentTable()
    health: HealthTable = HealthTable()
    checks: Limits = field(default_factory=Limits)

    @property
    def head_address(self) -> tuple[str, int]:
        """Return the host and port of `agent.head`, an IPv6 address without its brackets."""
        host, _, port = self.agent.head.rpartition(":")
        return host.strip("[]"), int(port)

    def for_node(self, node: str) -> "AgentConfig":
        """Return the settings for one node: `%n` in paths of `[agent]` is its name; numbers are its own."""
        table = self.agent
        paths = {name: value for name in _names(AgentTable) if isinstance(value := getattr(table, name), Path)}
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
        raise ConfigError(f"{path}: cannot be read ({error}): write it (docs/config.md) or name another") from None
    return parse(tables, source=str(path), env=env)


def parse(tables: Mapping[str, Any], *, source: str, env: Mapping[str, str]) -> AgentConfig:
    """Build the agent's settings from parsed tables, as `load` does from a file. Raises ConfigError."""
    cluster, checks = (_table(tables.get(name, {}), f"{source}: {name}") for name in ("cluster", "checks"))
    if env.get("SLURM_CONF"):
        cluster = {"slurm_conf": env["SLURM_CONF"], **cluster}
    if wrong := known.problems(checks):
        raise ConfigError(f"{source}: {wrong[0]}")
    config = AgentConfig(
        cluster=_read(ClusterTable, cluster, f"{source}: cluster"),
        agent=_read(AgentTable, tables.get("agent", {}), f"{source}: agent"),
        health=_read(HealthTable, tables.get("health", {}), f"{source}: health"),
        checks=limits_of(checks),
    )
    host, _, port = config.agent.head.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{source}: agent.head = {config.agent.head!r}: write HOST:PORT, for example head1:6861")
    return config


def _read(kind: type[T], table: Any, where: str) -> T:
    """Return the table's values. Raises ConfigError for a wrong type or an unknown key."""
    try:
        read: T = decode(kind, table, where)
    except ValueError as error:
        raise ConfigError(f"{error} (docs/config.md)") from None
    unknown = sorted(set(table) - _names(kind))
    if unknown and kind is not ClusterTable:
        raise ConfigError(f"{where}.{unknown[0]}: unknown key; remove it (`steward config check` says more)")
    return read


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} = {value!r}: use a dict (docs/config.md)")
    return value


def _names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}
