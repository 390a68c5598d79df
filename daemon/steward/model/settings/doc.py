"""The generator of docs/config.md from the settings themselves."""

import inspect
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from steward.model.setting_types import WrittenAs
from steward.model.settings.errors import fields_of, range_text, section_of
from steward.model.settings.root import Settings

_HEAD = """# Settings

Made by `steward config doc` from the declarations of the keys in `daemon/steward/model/`; do not edit (a test looks).

One TOML file for the head, the agents and the `steward` command: `/etc/steward/steward.toml`, or the file that
`STEWARD_CONFIG` or `--config` names. The same file may lie on every machine. Names end in their unit: `_s` seconds,
`_h` hours, `_kib` KiB, `_percent` percent; a number without unit is a count. A key without default is marked
*required*.

`steward config check` reads the file as the daemons do and names each wrong key with its value and a remedy: an
unknown key, a value out of range, or keys that cannot work together. `steward config show` prints
every setting of the file, defaults included. The daemons read the file when they start: `steward doctor` names the
settings that were changed since.
"""

_LISTS = (("groups",), ("notify",), ("machine_types",), ("resume", "default"))
_SMALLEST = """## Smallest useful file

```toml
[agent]
head = "head1:6861"

[repair]
mode = "report"            # "ask" or "act" once you have seen what it would do

[[groups]]
name = "gpu"
nodes = "gpu[1-16]"
provider = "static"
```
"""


def settings_page(checks: str) -> str:
    """Return the whole page; `checks` is its part on the tables of checks."""
    return "\n".join((_HEAD, _SMALLEST, *_sections(Settings, (), checks)))


def _sections(model: type, path: tuple[str, ...], checks: str = "") -> Iterator[str]:
    plain = {name: field for name, field in fields_of(model).items() if section_of(field.annotation) is None}
    if path and plain:
        yield _section(model, path, plain)
    for name, field in fields_of(model).items():
        if not path and name == "checks":
            yield checks
        inner = section_of(field.annotation)
        if inner is not None:
            yield from _sections(inner, (*path, name))


def _section(model: type, path: tuple[str, ...], fields: Mapping[str, FieldInfo]) -> str:
    title = f"[[{'.'.join(path)}]]" if path in _LISTS else f"[{'.'.join(path)}]"
    rows = [_row(name, field) for name, field in fields.items()]
    head = ("| Key | Value | Default | Meaning |", "|---|---|---|---|")
    return "\n".join((f"## `{title}`", "", inspect.cleandoc(model.__doc__ or ""), "", *head, *rows, ""))


def _row(name: str, field: FieldInfo) -> str:
    type = f"{_alone(field)}{_type(field.annotation)}"
    value = f"{type} {_short_range(range_text(field))}".strip().removeprefix("number ")
    return f"| `{name}` | {value} | {_default(field)} | {field.description or ''} |"


def _alone(field: FieldInfo) -> str:
    """Return a prefix that says that one of the values may stand without a list; empty where it may not."""
    return "string or " if any(isinstance(mark, WrittenAs) for mark in field.metadata) else ""


def _short_range(words: str) -> str:
    """Return a range such as `from 0 to 60` as the page shows it: `0–60`."""
    open_ended = words.startswith("from ") and " to " not in words
    short = words.replace("from ", "").replace(", up to ", "–").replace(" to ", "–")
    return f"{short} or more" if open_ended else short


def _type(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f'`"{member.value}"`' for member in annotation)
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_type(arg) for arg in get_args(annotation) if arg is not type(None))
    if get_origin(annotation) is tuple:
        return "numbers" if {int, float} & set(get_args(annotation)) else "strings"
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        Path: "path",
        SecretStr: "string",
    }
    return names.get(annotation, "table")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    return "none" if value is None else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Enum():
            return f'"{value.value}"'
        case float() | int():
            return f"{value:.15g}"
        case tuple():
            return f"[{', '.join(_toml(item) for item in value)}]"
        case dict():
            return "{}"
        case _:
            return f'"{value}"'
