"""The tables `[checks.*]` of the settings: what a site says of checks, and how a check declares what may be said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from steward.model.dotted import ALL
from steward.model.setting_types import expand_nodes

MODE = "mode"
NO_END = 1e12
WORDS = ("off", "report", "drain")
"""What a mode may be: not run, only reported, acted on."""

OPEN = ("kernel_log", "site")
"""Ids of which there are more (`kernel_log.xid79`, `site.scratch`) than any list has: the table of each speaks for
those without one of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Something that a site may say of a check. `name` is the check's id and the key in its table
    (`gpu.temp.margin_c`); of a family's table the pattern (`net.*.interfaces`)."""

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
    """A number that a check judges by; `default` None: it does not. `low` and `high` bound what a site may say."""

    default: float | None
    unit: str
    is_whole: bool = False
    low: float = 0.0
    high: float = NO_END


@dataclass(frozen=True, slots=True, kw_only=True)
class Names(Setting):
    """A list of paths, units and the like, each once."""

    default: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Setting):
    """A word, or nothing."""

    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a site says: `modes` by check id or pattern (`ib.*`), all else by the setting's name. `by_node`: numbers
    that are said for some nodes only, by the setting's name and the list of nodes."""

    modes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    said: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    by_node: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, node: str) -> "Limits":
        """Return what holds on one node."""
        here = {
            name: number
            for name, numbers in self.by_node.items()
            for nodes, number in numbers.items()
            if node in expand_nodes(nodes)
        }
        return Limits(modes=self.modes, said=MappingProxyType({**self.said, **here}))

    def number(self, setting: Threshold) -> float:
        """0 where there is none."""
        return float(self.said.get(setting.name, setting.default) or 0)

    def says(self, setting: Setting) -> bool:
        return setting.name in self.said

    def names(self, setting: Names) -> tuple[str, ...]:
        return tuple(self.said.get(setting.name, setting.default))

    def word(self, setting: Text) -> str:
        return cast(str, self.said.get(setting.name, setting.default))


def table_of(entry: str) -> str:
    """The heading of the table of a check id or pattern, as a file has it."""
    id = entry.removesuffix(ALL) if entry.removesuffix(ALL) in OPEN else entry
    return f"[checks.{quoted(id)}]"


def quoted(id: str) -> str:
    return f'"{id}"' if "." in id else id
