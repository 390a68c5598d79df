"""The errors in the settings file, one line each: key, value, remedy."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast, get_args, get_type_hints

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from steward.model.setting_types import range_words
from steward.model.text import as_in_file

Place = tuple[int | str, ...]
_KINDS = {"dict": "table", "model": "table", "dataclass": "table", "list": "list", "tuple": "list", "set": "list"}
"""The settings file's words for what pydantic asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A wrong setting, and its remedy."""

    key: str
    text: str

    @staticmethod
    def of(key: str, value: object, remedy: str) -> "Problem":
        """Make the problem of a wrong `value` at `key`; `remedy` completes "use ..."."""
        return Problem(key=key, text=f"{key} = {as_in_file(value)}: use {remedy}")

    def __str__(self) -> str:
        return self.text


class SettingsError(Exception):
    """An unusable settings file, with all its `problems`; the text has a line for each."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))
        self.source = source
        self.problems = tuple(problems)


def problems_in(error: ValidationError, model: type[BaseModel]) -> tuple[Problem, ...]:
    """Return pydantic's errors as problems."""
    return tuple(_problem(detail, model) for detail in error.errors())


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    key = dotted(detail["loc"])
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown(key, detail, model)
    if detail["type"] == "missing":
        return Problem(key=key, text=f"{key} is missing: add it")
    return Problem(key=key, text=f"{key} = {_shown_at(detail, model)}: {_remedy(detail, model)}")


def _unknown(key: str, detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    *path, name = detail["loc"]
    known = sorted(_fields_at(model, tuple(path)))
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    remedy = f"did you mean {close[0]}?" if close else f"remove it, or use one of: {', '.join(known)}"
    return Problem(key=key, text=f"{key} = {_shown_at(detail, model)}: unknown key; {remedy}")


def _shown_at(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Return the wrong value for a message; `...` in place of a possible secret."""
    # the value of an unknown key may be a secret that belongs to a neighbouring key
    words = [part for part in detail["loc"] if isinstance(part, str)]
    here = _fields_at(model, tuple(words[:-1]))
    fields = [here[words[-1]]] if words and words[-1] in here else list(here.values())
    if any(_holds_secrets(field.annotation) for field in fields):
        return "..."
    return as_in_file(detail["input"])


def _holds_secrets(annotation: Any) -> bool:
    if annotation is SecretStr:
        return True
    table = section_of(annotation) if isinstance(annotation, type) else None
    inner = [field.annotation for field in fields_of(table).values()] if table else get_args(annotation)
    return any(_holds_secrets(one) for one in inner)


def _remedy(detail: ErrorDetails, model: type[BaseModel]) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    if wanted := _range_at(model, detail["loc"]):
        return f"use a number {wanted}"
    if detail["type"] == "string_pattern_mismatch" and (example := _example_at(model, detail["loc"])):
        return f"use a value such as {as_in_file(example)} (its form is {detail['ctx']['pattern']})"
    if word := _KINDS.get(detail["type"].removesuffix("_type")):
        return f"use {_heading(word, detail)}"
    return detail["msg"].replace("Input should be a valid", "use a").replace("Input should be", "use").replace("'", '"')


def _heading(kind: str, detail: ErrorDetails) -> str:
    """Return how the file writes a table, or a list of tables, if it has one for the other; else `a` and the kind."""
    key, found = dotted(detail["loc"]), detail["input"]
    if kind == "table" and isinstance(found, list):
        return f"one table, [{key}]"
    if kind == "list" and isinstance(found, dict):
        return f"a list of tables, [[{key}]] for each"
    return f"a {kind}"


def _example_at(model: type[BaseModel], place: Place) -> str:
    """Return the example of the key at `place`; empty if it has none."""
    field = _field_at(model, place)
    return str(field.examples[0]) if field is not None and field.examples else ""


def _range_at(model: type[BaseModel], place: Place) -> str:
    field = _field_at(model, place)
    return range_text(field) if field is not None else ""


def _field_at(model: type[BaseModel], place: Place) -> FieldInfo | None:
    """Return the key at `place`; None if it is none of a table of fixed keys."""
    *path, name = place
    return _fields_at(model, tuple(path)).get(str(name))


def dotted(place: Place) -> str:
    """Return the path `("groups", 0, "name")` as `groups[0].name`."""
    words = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(words).lstrip(".")


def _fields_at(model: type[BaseModel], place: Place) -> dict[str, FieldInfo]:
    """Return the fields of the table at `place`; empty if it is no table of fixed keys."""
    here: type | None = model
    for part in place:
        if isinstance(part, str) and here is not None:
            field = fields_of(here).get(part)
            here = section_of(field.annotation) if field else None
    return fields_of(here) if here else {}


def fields_of(table: type) -> dict[str, FieldInfo]:
    """Return the keys of a table, which is a Section or a dataclass."""
    if issubclass(table, BaseModel):
        return dict(table.model_fields)
    hints = get_type_hints(table, include_extras=True)
    return {one.name: FieldInfo.from_annotated_attribute(hints[one.name], one) for one in fields(cast(Any, table))}


def section_of(annotation: Any) -> type | None:
    """Return the table in `Table`, `Table | None` or `tuple[Table, ...]`; None for a plain value."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        return annotation
    return next((found for arg in get_args(annotation) if (found := section_of(arg))), None)


def range_text(field: FieldInfo) -> str:
    """Return a number's range as `from 0 to 60` or `above 0, up to 100`; empty for a field without limits."""
    return range_words({n: getattr(rule, n) for rule in field.metadata for n in ("gt", "ge", "le") if hasattr(rule, n)})
