"""The agent's part of steward.toml, read without pydantic to keep the agent small.

Names and defaults are those of `model/settings` (a test compares them). The head, `steward config check` and the
installation check the whole file; the agent refuses a wrong type or an unknown key in its own tables.
"""

import dataclasses
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from steward.adapters.owners import OthersMayChange, settings_text
from steward.checks import known
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.mend import RESTARTABLE
from steward.model.text import cause

T = TypeVar("T")


class ConfigError(Exception):
    """An error in the settings, as one line: file, key, value, remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTable:
    """The keys of `[cluster]` that the agent reads."""

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
        paths = {name: value for name in _fields(AgentTable) if isinstance(value := getattr(table, name), Path)}
        own = {name: Path(str(path).replace("%n", node)) for name, path in paths.items()}
        agent = dataclasses.replace(table, **own)  # type: ignore[arg-type]  # all paths
        return dataclasses.replace(self, agent=agent, checks=self.checks.at(node))


LENIENT = frozenset({"cluster"})
"""Tables that also hold keys of the head, which the agent ignores."""


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
    ours = {name: tables[name] for name in _fields(AgentConfig) if name in tables}
    if env.get("SLURM_CONF"):
        ours["cluster"] = {"slurm_conf": env["SLURM_CONF"], **_table(ours.get("cluster", {}), f"{source}: cluster")}
    checks = _table(ours.pop("checks", {}), f"{source}: checks")
    if wrong := known.problems(checks):
        raise ConfigError(f"{source}: {wrong[0]}")
    config = dataclasses.replace(_build(AgentConfig, ours, f"{source}: "), checks=limits_of(checks))
    host, _, port = config.agent.head.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{source}: agent.head = {config.agent.head!r}: write HOST:PORT, for example head1:6861")
    return config


def _build(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    fields = _fields(kind)
    unknown = sorted(set(table) - set(fields))
    if unknown and where.split(": ")[-1].rstrip(".") not in LENIENT:
        raise ConfigError(f"{where}{unknown[0]}: unknown key; remove it (`steward config check` says more)")
    values = {name: _value(fields[name], value, where + name) for name, value in table.items() if name in fields}
    return kind(**values)


def _fields(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _value(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, _table(value, where), f"{where}.")
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_value(str, item, where) for item in _typed(list, value, where))
    if hint is Path:
        return Path(_typed(str, value, where))
    if hint is float:
        return float(_typed((int, float), value, where))
    return _typed(hint, value, where)


def _table(value: Any, where: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = _typed(dict, value, where)
    return table


def _typed(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        wanted = kind.__name__ if isinstance(kind, type) else "number"
        raise ConfigError(f"{where} = {value!r}: use a {wanted} (docs/config.md)")
    return value
