"""Keys of the settings file that earlier versions had: one table, for whoever reads the file and for `steward config
migrate`. No pydantic here: agents read the file, too."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steward.model.dotted import ALL, Path, leaves

HOW = "`steward config migrate` rewrites the file"


class Contradiction(ValueError):
    """A key and its former name are both there: nobody knows which of them is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A key that is no more. `now` is its name since, in the same table or in `tables`; empty: it is gone, and `why`
    says more. `words`: what stood in its value, and what means the same now."""

    key: str
    now: str = ""
    why: str = ""
    words: tuple[str, str] = ("", "")
    tables: tuple[Path, ...] = ()

    @property
    def fate(self) -> str:
        if self.tables:
            return f"it is {self.now} of {' and of '.join(map(_heading, self.tables))} now"
        turned = f", and {self.words[0]} in it is {self.words[1]}" if self.words[0] else ""
        return f"its name is {self.now} now{turned}" if self.now else f"not in use any more: {self.why}"

    def turned(self, value: Any) -> Any:
        """The old value in today's words."""
        if isinstance(value, list):
            return [self.turned(one) for one in value]
        return value.replace(*self.words) if isinstance(value, str) and self.words[0] else value


def _of_check(key: str, id: str, now: str, *more: str) -> Former:
    return Former(key=key, now=now, tables=tuple(("checks", one) for one in (id, *more)))


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
    _of_check("checks.services.units", "svc.units", "units"),
    _of_check("checks.modules.required", "os.modules", "required"),
    _of_check("checks.mounts.shared", "fs.shared", "paths"),
    _of_check("checks.net.interfaces", f"net{ALL}", "interfaces"),
)

_OF_SITE = {"modes": "mode", "every_s": "every_s", "params": "params"}
"""Tables of `[checks.site]` with a key for each file."""
EMPTIED: tuple[Path, ...] = (
    *(("checks", name) for name in ("mode", "limit", "services", "modules", "net")),
    *(("checks", "site", name) for name in _OF_SITE),
)
"""Tables of which all keys moved away."""
FAMILIES = frozenset(
    (
        *("amd", "bmc", "clock", "cpu", "deep", "disk", "efa", "fs", "gpu", "gpu.ecc", "gpu.nvlink", "gpu.pcie"),
        *("gpu.remap", "ib", "mem", "net", "neuron", "os", "proc", "roce", "slurm", "svc"),
    )
)
"""What `[checks.mode]` took for all checks that begin so ..."""
_CHECKS_TOO = frozenset(("clock", "disk", "gpu"))
"""... and what is a check as well, whose own table said less than this word."""
_MAY_BE_THERE = {(id, "mode") for id in _CHECKS_TOO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A former key in a file: `path` are the keys of the tables that lead to it, its own last. `to` are those of what
    it became."""

    former: Former
    path: Path

    @property
    def line(self) -> str:
        return f"{self.former.key}: {self.former.fate}"

    @property
    def to(self) -> tuple[Path, ...]:
        tables = self.former.tables or (self.path[:-1],)
        return tuple((*table, self.former.now) for table in tables) if self.former.now else ()


def in_todays_words(tables: Mapping[str, Any], tell: Callable[[str], None]) -> Mapping[str, Any]:
    """What a file of an earlier version means: it serves until a person has the time, and `tell` gets a line a key.
    Raises Contradiction."""
    found = found_in(tables)
    for one in found:
        tell(f"{one.line}; {HOW}")
    return brought_up(tables, found)


def found_in(tables: Mapping[str, Any]) -> tuple[Found, ...]:
    """The former keys that a file has. Raises Contradiction where one stands beside its own new name."""
    named = [Found(former=former, path=path) for former in FORMER for path in _at(tables, former.key)]
    gone = {one.path for one in named}
    checks = (one for one in _of_checks(tables.get("checks")) if one.path not in gone)
    return tuple(_sound(tables, one) for one in (*named, *checks))


def brought_up(tables: Mapping[str, Any], found: tuple[Found, ...]) -> dict[str, Any]:
    """The same settings in today's words."""
    new: dict[str, Any] = _copy(tables)
    for one in found:
        value = _as_it_ran(new, one, one.former.turned(table_of(new, one.path).pop(one.path[-1])))
        for to in one.to:
            _put(new, to, value)
    for path in EMPTIED:
        _drop_empty(new, path)
    return new


def table_of(tables: Any, path: Path) -> Any:
    """The table that holds the key at `path`."""
    for name in path[:-1]:
        tables = tables[name]
    return tables


def _of_checks(checks: Any) -> Iterator[Found]:
    """`[checks.site.modes]` and its like, `[checks.limit]` and `[checks.mode]`, in which any check could be named."""
    site = checks.get("site") if isinstance(checks, Mapping) else None
    for old, now in _OF_SITE.items() if isinstance(site, Mapping) else ():
        for path, file in _names(site, old):
            yield _in_checks(("site", *path), f"site.{file}", now=now)
    for path, name in _names(checks, "limit"):
        id, _, now = name.rpartition(".")
        yield _in_checks(path, id, now=now)
    for path, name in _names(checks, "mode"):
        ids = (f"{name}{ALL}", *((name,) if name in _CHECKS_TOO else ())) if name in FAMILIES else (name,)
        yield _in_checks(path, *ids, now="mode")


def _in_checks(path: Path, *ids: str, now: str) -> Found:
    key = ".".join(("checks", *path))
    return Found(former=_of_check(key, ids[0], now, *ids[1:]), path=("checks", *path))


def _names(table: Any, key: str) -> Iterator[tuple[Path, str]]:
    """Each value in the table `key`, and its keys there joined."""
    inner = table.get(key) if isinstance(table, Mapping) else None
    if isinstance(inner, Mapping):
        yield from (((key, *path), ".".join(path)) for path, value in leaves(inner) if path and value != {})


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
    there = {".".join(path) for path, _ in leaves(tables)}
    if any(".".join(to) in there for to in one.to if to[-2:] not in _MAY_BE_THERE):
        raise Contradiction(f"{one.former.key}: {one.former.fate}, which is there as well: remove one of the two")
    return one


def _put(tables: dict[str, Any], to: Path, value: Any) -> None:
    """A check that a table of its own switches off stays off, whatever was said of its family."""
    for name in to[:-1]:
        tables = tables.setdefault(name, {})
        if not isinstance(tables, dict):
            return  # no table stands there, which is refused by whoever reads the file
    if tables.get(to[-1]) != "off":
        tables[to[-1]] = value


def _as_it_ran(tables: Mapping[str, Any], one: Found, word: Any) -> Any:
    """A file that `[checks.mode]` alone named did not run where `[checks.site]` was off."""
    if not one.former.key.startswith("checks.mode.site."):
        return word
    said = {".".join(path): value for path, value in leaves(tables)}
    is_off = said.get("checks.site.mode") == "off" and ".".join(one.to[0]) not in said
    return "off" if is_off else word


def _drop_empty(tables: Any, path: Path) -> None:
    """Takes the table at `path` away where nothing is in it."""
    for name in path[:-1]:
        tables = tables.get(name) if isinstance(tables, Mapping) else None
    found = tables.get(path[-1]) if isinstance(tables, dict) else None
    if isinstance(found, Mapping) and all(value == {} for _, value in leaves(found)):
        del tables[path[-1]]


def _copy(value: Any) -> Any:
    return {key: _copy(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value


def _heading(table: Path) -> str:
    return f"[{'.'.join(f'{chr(34)}{name}{chr(34)}' if '.' in name else name for name in table)}]"
