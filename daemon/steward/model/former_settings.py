"""Keys of the settings file that earlier versions had: one table, for whoever reads the file and for `steward config
migrate`. No pydantic here: agents read the file, too."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]

HOW = "`steward config migrate` rewrites the file"


class Contradiction(ValueError):
    """A key and its former name are both there: nobody knows which of them is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A key that is no more. `now` is its name since, in the same table; empty: it is gone, and `why` says more.
    `words`: what stood in its value, and what means the same now."""

    key: str
    now: str = ""
    why: str = ""
    words: tuple[str, str] = ("", "")

    @property
    def fate(self) -> str:
        turned = f", and {self.words[0]} in it is {self.words[1]}" if self.words[0] else ""
        return f"its name is {self.now} now{turned}" if self.now else f"not in use any more: {self.why}"

    def turned(self, value: Any) -> Any:
        """The old value in today's words."""
        if isinstance(value, list):
            return [self.turned(one) for one in value]
        return value.replace(*self.words) if isinstance(value, str) and self.words[0] else value


_NO_SUCH_CHECK = "the check is gone, as a site's own tools say the same"

FORMER: tuple[Former, ...] = (
    Former(key="provider.static.reboot_command", now="reboot", words=("{node}", "%n")),
    Former(key="provider.static.command_timeout_s", now="reboot_timeout_s"),
    Former(key="health.canary_nodes", now="canary_node_count"),
    Former(key="repair.concurrent_most", now="concurrent_all_count"),
    Former(key="elastic.at_once", now="growths_at_once"),
    Former(key="quota.edits", now="edits_at_once"),
    Former(key="checks.mode.gpu.count", why="the check gpu counts them; its mode is in [checks.gpu]"),
    Former(key="checks.mode.os.uptime", why=_NO_SUCH_CHECK),
    Former(key="checks.mode.os.unattended", why=_NO_SUCH_CHECK),
    Former(key="checks.mode.sec.etc", why=_NO_SUCH_CHECK),
    Former(key="checks.mode.sec", why="its one check, sec.etc, is gone"),
    Former(key="checks.limit.os.uptime.min_s", why=_NO_SUCH_CHECK),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A former key in a file: `path` are the keys of the tables that lead to it, its own last."""

    former: Former
    path: Path

    @property
    def line(self) -> str:
        return f"{self.former.key}: {self.former.fate}"


def in_todays_words(tables: Mapping[str, Any], tell: Callable[[str], None]) -> Mapping[str, Any]:
    """What a file of an earlier version means: it serves until a person has the time, and `tell` gets a line a key.
    Raises Contradiction."""
    found = found_in(tables)
    for one in found:
        tell(f"{one.line}; {HOW}")
    return brought_up(tables, found) if found else tables


def found_in(tables: Mapping[str, Any]) -> tuple[Found, ...]:
    """The former keys that a file has. Raises Contradiction where one stands beside its own new name."""
    return tuple(
        _sound(tables, Found(former=former, path=path)) for former in FORMER for path in _at(tables, former.key)
    )


def brought_up(tables: Mapping[str, Any], found: tuple[Found, ...]) -> dict[str, Any]:
    """The same settings in today's words."""
    new: dict[str, Any] = _copy(tables)
    for one in found:
        table = table_of(new, one.path)
        value = table.pop(one.path[-1])
        if one.former.now:
            table[one.former.now] = one.former.turned(value)
    return new


def table_of(tables: Any, path: Path) -> Any:
    """The table that holds the key at `path`."""
    for name in path[:-1]:
        tables = tables[name]
    return tables


def _at(table: Any, key: str) -> Iterator[Path]:
    """Where `key` stands; `"os.uptime" = 1` and `os.uptime = 1` mean the same. A table in place of a value is not it:
    `sec.etc` stands in one that is named sec."""
    if not isinstance(table, Mapping):
        return
    for name, value in table.items():
        if name == key and not isinstance(value, Mapping):
            yield (name,)
        elif key.startswith(f"{name}."):
            yield from ((name, *rest) for rest in _at(value, key[len(name) + 1 :]))


def _sound(tables: Mapping[str, Any], one: Found) -> Found:
    if one.former.now and one.former.now in table_of(tables, one.path):
        raise Contradiction(f"{one.former.key}: {one.former.fate}, which is there as well: remove one of the two")
    return one


def _copy(value: Any) -> Any:
    return {key: _copy(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value
