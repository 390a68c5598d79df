"""The tables `[checks.*]` of the settings: the values that a site sets, and how a check declares its settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from steward.model.dotted import ALL
from steward.model.node_names import expand_nodes

MODE = "mode"
NO_END = 1e12
WORDS = ("off", "report", "drain")
"""The modes of a check: not run, only reported, acted on."""

OPEN = ("kernel_log", "site")
"""Families with an open number of checks (`kernel_log.xid79`, `site.scratch`). A family's table sets the mode of its
checks that have no table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of a check. `name` is the check's id, or a family's pattern, with the key in its table.

    Examples: `gpu.temp.margin_c`, `net.*.interfaces`.
    """

    name: str
    text: str

    @property
    def id(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(Setting):
    """A number that a check judges by. `low` and `high` bound the site's value; `default` None means no limit."""

    default: float | None
    unit: str
    is_whole: bool = False
    low: float = 0.0
    high: float = NO_END


@dataclass(frozen=True, slots=True, kw_only=True)
class Names(Setting):
    """A setting that is a list of paths, units and the like, each once."""

    default: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSetting(Setting):
    """A setting that is a text; empty if it is not set."""

    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The values that a site sets: `modes` by check id or pattern (`ib.*`), all others (`said`) by setting name.

    `by_node`: numbers that are set for some nodes only, by setting name and node list.
    """

    modes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    by_node: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, node: str) -> "Limits":
        """Return the values for one node."""
        here = {
            name: number
            for name, numbers in self.by_node.items()
            for nodes, number in numbers.items()
            if node in expand_nodes(nodes)
        }
        return Limits(modes=self.modes, values=MappingProxyType({**self.values, **here}))

    def number(self, setting: Threshold) -> float:
        """Return the site's value or the default; 0 if there is neither."""
        return float(self.values.get(setting.name, setting.default) or 0)

    def is_set(self, setting: Setting) -> bool:
        return setting.name in self.values

    def names(self, setting: Names) -> tuple[str, ...]:
        return tuple(self.values.get(setting.name, setting.default))

    def text(self, setting: TextSetting) -> str:
        return cast(str, self.values.get(setting.name, setting.default))


def table_of(entry: str) -> str:
    """Return the heading of the table of a check id or pattern, as written in the file."""
    id = entry.removesuffix(ALL) if entry.removesuffix(ALL) in OPEN else entry
    return f"[checks.{quoted(id)}]"


def quoted(id: str) -> str:
    return f'"{id}"' if "." in id else id
