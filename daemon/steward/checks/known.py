"""The settings and modes of all checks together: which tables are valid, and which values are in force."""

import difflib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from steward.checks import CHECKS, kernel_log, site
from steward.checks.disk import CLEAR, FULL
from steward.checks.limits import MODE, OPEN, WORDS, Limits, Names, Setting, Threshold, quoted, table_of
from steward.model.dotted import ALL, leaves, lookup_dotted
from steward.model.node_names import expand_nodes
from steward.model.text import as_in_file

DEEP = ("deep.stress", "deep.connectivity")
"""The check ids under which deep checks open cases."""

_IDS = frozenset((*(check.id for check in CHECKS), *DEEP, *OPEN))

SETTINGS: Mapping[str, Setting] = {
    one.name: one
    for one in (
        *(one for check in CHECKS for one in check.settings),
        *kernel_log.THRESHOLDS,
        site.TIMEOUT_S,
        site.NHC,
    )
}
OWN_MODES: Mapping[str, str] = {
    **{check.id: check.default_mode for check in CHECKS},
    "kernel_log": "drain",
    "site": site.MODE,
}
"""The default mode of each check, and of the lines and files without a table of their own."""


_NUMBERS = frozenset(one.name for one in SETTINGS.values() if isinstance(one, Threshold))
"""The settings that a table may set differently for some nodes."""


def limits_of(tables: Mapping[str, Any]) -> Limits:
    """Return the limits in the tables, which `problems` has found valid."""
    values: dict[str, Any] = {name: value for name, value in leaves(tables, _NUMBERS) if value != {}}
    by_node = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    found: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in values.items()}
    modes = {name.removesuffix(f".{MODE}"): word for name, word in found.items() if name.endswith(f".{MODE}")}
    modes |= {f"{id}{ALL}": modes[id] for id in OPEN if id in modes}  # for lines and files without their own table
    said = {name: value for name, value in found.items() if not name.endswith(f".{MODE}") and name not in by_node}
    return Limits(modes=MappingProxyType(modes), values=MappingProxyType(said), by_node=MappingProxyType(by_node))


def modes(limits: Limits) -> dict[str, str]:
    """Return the mode (off, report or drain) of each check id, from the settings or else the check's default.

    The ids include patterns, for checks that only agents know: lines, files, and checks of agents of another version.
    """
    said = {**{id: OWN_MODES[id] for id in OPEN}, **limits.modes}
    unlisted = {f"{id}{ALL}": word for id, word in said.items() if id in OWN_MODES}
    return {**{id: lookup_dotted(id, limits.modes) or own for id, own in OWN_MODES.items()}, **unlisted, **limits.modes}


def mode_of(limits: Limits) -> Callable[[str], str]:
    """Return a function from check id to the mode that the head applies; an unknown check drains."""
    said = modes(limits)
    return lambda check: lookup_dotted(check, said) or "drain"


def in_force(tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every table with all its keys, set by the site or default; None for a key without a value."""
    limits = limits_of(tables)
    ids = (*OWN_MODES, *(id for id in limits.modes if id.removesuffix(ALL) not in OPEN))
    words = {f"{id}.{MODE}": word for id, word in modes(limits).items() if id in ids}
    own = {name: getattr(setting, "default", None) for name, setting in SETTINGS.items()}
    found: dict[str, dict[str, Any]] = {}
    for name, value in {**words, **own, **limits.values, **limits.by_node}.items():
        id, _, key = name.rpartition(".")
        found.setdefault(id, {})[key] = value
    return found


def settings_at(id: str) -> dict[str, Setting]:
    """Return the settings by key, but for the mode, that the table of this check id or pattern may hold."""
    own = site.settings_of(id) if id.startswith("site.") else ()
    return {one.key: one for one in (*own, *(one for one in SETTINGS.values() if one.id == id))}


# Problems of the tables: a line with a remedy for each.


def problems(tables: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a line for each problem of the tables, with its remedy; empty if they are valid."""
    found = list(leaves(tables, _NUMBERS))
    wrong = (line for name, value in found for line in _problems_at(name, value))
    times = Counter(name for name, _ in found)
    twice = (f"{_key_path(name)}: set twice; remove one" for name, count in times.items() if count > 1)
    return tuple(dict.fromkeys((*wrong, *twice))) or tuple(_contradictions(limits_of(tables)))


def _problems_at(name: str, value: Any) -> Iterator[str]:
    id, _, key = (name, "", "") if isinstance(value, Mapping) and name not in _NUMBERS else name.rpartition(".")
    if not id:
        yield f"checks.{key} = {as_in_file(value)}: move it into the table of its check, such as [checks.disk]"
    elif no_such := _no_such_id(id):
        yield f"checks.{quoted(id)}: {no_such}"
    elif key == MODE:
        if value not in WORDS:
            yield f'{_key_path(name)} = {as_in_file(value)}: use "off", "report" or "drain"'
    elif key:
        yield from _problems_of_setting(name, id, key, value)


def _no_such_id(id: str) -> str:
    first, family = id.partition(".")[0], id.removesuffix(ALL)
    if family != id and family in OPEN:
        return f"set the mode of all of them in {table_of(family)}"
    if first in OPEN or id in _IDS:
        return ""
    if any(one.startswith(f"{family}.") for one in _IDS):
        return "" if family != id else f'there is no check `{id}`; for all of them write [checks."{id}{ALL}"]'
    if family != id:
        return f"no check's id begins with `{family}.`; {_nearest(family, {one.partition('.')[0] for one in _IDS})}"
    return f"there is no check `{id}`; {_nearest(id, _IDS)}"


def _problems_of_setting(name: str, id: str, key: str, value: Any) -> Iterator[str]:
    known = settings_at(id)
    place = f"{_key_path(name)} = {as_in_file(value)}"
    match known.get(key):
        case None if id.endswith(ALL) and not known:
            yield f"{place}: only `mode` can be set for a family; move it into the table of one check"
        case None:
            may = f"it has {', '.join((MODE, *sorted(known)))}"
            near = difflib.get_close_matches(key, (MODE, *known), n=1, cutoff=0.5)
            yield f"{place}: unknown key; {f'did you mean {near[0]}?' if near else may}"
        case Threshold() as setting if isinstance(value, Mapping):
            yield from _problems_by_node(_key_path(name), setting, value)
        case Threshold() as setting:
            yield from _problems_of_number(place, setting, value)
        case Names():
            if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
                yield f"{place}: use a list of strings"
            elif len(set(value)) < len(value):
                yield f"{place}: a name is listed twice; remove one"
        case _:
            if not isinstance(value, str):
                yield f"{place}: use a string"


def _problems_of_number(place: str, setting: Threshold, value: Any) -> Iterator[str]:
    is_number = isinstance(value, int if setting.is_whole else int | float) and not isinstance(value, bool)
    if not is_number or not setting.low <= value <= setting.high:
        a_number = "whole number" if setting.is_whole else "number"
        yield f"{place}: use a {a_number} from {setting.low:.15g} to {setting.high:.15g} ({setting.unit})"


def _problems_by_node(place: str, setting: Threshold, numbers: Mapping[str, Any]) -> Iterator[str]:
    """Judge a table of node list -> number."""
    named: Counter[str] = Counter()
    for nodes, number in numbers.items():
        yield from _problems_of_number(f"{place}.{json.dumps(nodes)} = {as_in_file(number)}", setting, number)
        try:
            named.update(expand_nodes(nodes))
        except ValueError as error:
            yield f"{place}.{json.dumps(nodes)}: {error}"
    if twice := sorted(name for name, times in named.items() if times > 1):
        yield f"{place}: {twice[0]} is named twice; remove one"
    if not numbers:
        yield f'{place}: name nodes and a number for them, such as "gpu[1-8]" = 8'


def _contradictions(limits: Limits) -> Iterator[str]:
    full, clear = limits.number(FULL), limits.number(CLEAR)
    if clear > full:
        yield f"checks.disk.clear_percent = {clear:g}: use at most checks.disk.full_percent ({full:g})"


def _key_path(name: str) -> str:
    id, _, key = name.rpartition(".")
    return f"checks.{quoted(id)}.{key}"


def _nearest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "`steward checks` lists them"
