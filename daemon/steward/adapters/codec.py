"""Frozen dataclasses to JSON-shaped values and back.

`FrameCodec` is for records from other machines, which are hostile: each is read within the bounds of its fields
(`model/bounds.py`), or refused with one clear line. `codec` is for records that this machine keeps, in the store and in
its settings file: no bounds are checked, and a missing field takes its default. Both ignore unknown keys.
"""

import dataclasses
import logging
import math
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin

from steward.model import bounds
from steward.model.port_error import Permanent
from steward.model.setting_types import WrittenAs
from steward.model.text import as_in_file, printable, repr_line

T = TypeVar("T")

log = logging.getLogger(__name__)

_ABSENT: Any = object()
_TEXT_LIMIT = 128
_LINES = re.compile(r"[\n\t -~]*")
_VALUE = operator.attrgetter("value")
_DIGITS = re.compile(r"[0-9]{1,19}")
_LARGEST = 1e15
_LENGTH_BOUNDS = (bounds.MaxLen, bounds.Printable, bounds.Uncut, bounds.Lines)
"""The bounds of a text that limit its length."""


Frame = dict[str, Any]


class Malformed(Permanent):
    """A frame that no Steward sends: the connection is to be closed."""


class Shape(NamedTuple):
    """A writer and a reader of values. `read` takes the value in the record (None if missing), and the key."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


class _Field(NamedTuple):
    name: str
    key: str
    shape: Shape
    absent: Any
    """The value if the key is missing; `_ABSENT` means the same as for null."""
    age: bounds.Age | None = None
    is_sparse: bool = False
    is_flat: bool = False
    is_whole: bool = False
    """Whether the field is a whole number, which a word gives in digits."""


class FrameCodec(Generic[T]):
    """A writer and reader of values of `kind`, as a frame of the type `t`, or (`t` empty) as a record within a frame.

    Raises TypeError for a class with a field that cannot be in a frame.
    """

    def __init__(self, kind: type[T], t: str = "") -> None:
        self._kind = kind
        self._head = {"t": t} if t else {}
        self._fields = tuple(_fields(kind))

    def write(self, value: T, now: float = 0.0) -> Frame:
        """Return the record of the value; times are by the clock of `now`."""
        record: Frame = dict(self._head)
        for one in self._fields:
            told = getattr(value, one.name)
            if one.age is not None and told is not None:
                told = _bounded_age(one.age, now - told)
            told = one.shape.write(told)
            if one.is_flat:
                record.update(told)
            elif not one.is_sparse or told not in (None, "", 0.0, []):
                record[one.key] = told
        return record

    def read(self, record: object, now: float = 0.0, **given: Any) -> T:
        """Return the value in the record; `given` are its fields that no frame has. Raises Malformed."""
        if not isinstance(record, dict):
            raise Malformed("an element of a list is not an object")
        for name, key, shape, absent, age, _, is_flat, _ in self._fields:
            value = record if is_flat else record.get(key, _ABSENT)
            if value is not _ABSENT:
                told = shape.read(value, key)
            else:
                told = absent if absent is not _ABSENT else shape.read(None, key)
            given[name] = told if age is None or told is None else now - told
        return self._kind(**given)

    def read_words(self, words: Mapping[str, str], **given: Any) -> T:
        """Return the value in the words of a line, within the same bounds. Raises Malformed."""
        numbers = {one.key for one in self._fields if one.is_whole}
        record = {key: _digits(word, key) if key in numbers else word for key, word in words.items()}
        for one in self._fields:
            if one.key not in words and one.absent is _ABSENT:
                raise Malformed(f"{one.key}= is missing")
        return self.read(record, **given)


def int_field(frame: Mapping[str, Any], key: str, *, low: int = 0, high: int = 2**63 - 1) -> int:
    """Return an integer field within its range. Raises Malformed."""
    return _whole(frame.get(key), key, low, high)


def number_field(frame: Mapping[str, Any], key: str) -> float:
    return _number(frame.get(key), key)


def text_field(frame: Mapping[str, Any], key: str, limit: int = _TEXT_LIMIT) -> str:
    """Return a text field without control characters, not longer than `limit`. Raises Malformed."""
    return _text(frame.get(key), key, limit)


def list_field(frame: Mapping[str, Any], key: str, limit: int) -> list[Any]:
    """Return a list field, empty if it is missing. Raises Malformed."""
    return _items(frame.get(key, []), key, limit)


def readable_records(frame: Mapping[str, Any], key: str, limit: int, read: Callable[[Any], T]) -> tuple[T, ...]:
    """Return the readable records of a list; leave out malformed ones, such as those of one user's job."""
    found = []
    for record in list_field(frame, key, limit):
        try:
            found.append(read(record))
        except Malformed as error:
            log.warning("ignored one malformed entry of %s: %s", key, error)
    return tuple(found)


def _fields(kind: Any) -> Iterator[_Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        base, marks = _marks(hints[field.name])
        if bounds.Given in marks:
            continue
        called = marks.get(bounds.Called)
        shape = _shape(base, marks)
        empty: Any = get_origin(base)() if get_origin(base) in (tuple, frozenset) else _ABSENT
        yield _Field(
            name=field.name,
            key=called.key if called is not None else field.name,
            shape=shape,
            absent=field.default if bounds.Sparse in marks else empty,
            age=marks.get(bounds.Age),
            is_sparse=bounds.Sparse in marks,
            is_flat=bounds.Flat in marks,
            is_whole=int in (base, *(_marks(one)[0] for one in get_args(base))),
        )


def _marks(hint: Any) -> tuple[Any, dict[type, Any]]:
    """Return the type without its bounds, and its bounds by kind."""
    marks: dict[type, Any] = {}
    while get_origin(hint) is Annotated or isinstance(hint, typing.NewType):
        if isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            hint, *more = get_args(hint)
            marks = {type(one): one for one in more} | marks
    return hint, marks


def _shape(base: Any, marks: dict[type, Any]) -> Shape:
    origin = get_origin(base)
    if origin in (Union, types.UnionType):
        return _optional_shape(base, marks)
    if origin in (tuple, frozenset):
        return _list_shape(base, marks)
    if dataclasses.is_dataclass(base) and bounds.Parsed not in marks:
        return _record_shape(base)
    if base is float:
        return _float_shape(marks)
    if base is bool:
        return Shape(_same, _lenient_bool if bounds.Lenient in marks else _bool)
    if base is int:
        low, high = dataclasses.astuple(marks.get(bounds.Range, bounds.Range()))
        return Shape(_same, lambda value, key: _whole(value, key, low, high))
    if isinstance(base, type) and issubclass(base, Enum):
        return Shape(_VALUE, lambda value, key: _member(base, value, key))
    if base is str or bounds.Parsed in marks:
        return _text_shape(base, marks)
    raise TypeError(f"{base} cannot be in a frame")


def _same(value: Any) -> Any:
    return value


def _optional_shape(base: Any, marks: dict[type, Any]) -> Shape:
    inner, more = _marks(_inner_type(base))
    return _or_null(_shape(inner, marks | more))


def _record_shape(base: Any) -> Shape:
    codec = FrameCodec(base)
    return Shape(codec.write, lambda value, _: codec.read(value))


def _list_shape(base: Any, marks: dict[type, Any]) -> Shape:
    """Return the shape of a tuple or set; a set is sent sorted."""
    make, inner, more = get_origin(base), *_marks(get_args(base)[0])
    write, read = _shape(inner, more)
    first, last = marks.get(bounds.First), marks.get(bounds.Last)
    bound = first or last or marks[bounds.MaxLen]
    sent = slice(first.limit) if first else slice(-last.limit, None) if last else slice(None)
    called = more[bounds.Called].key if bounds.Called in more else None

    def told(value: Any) -> list[Any]:
        return [write(one) for one in (sorted(value) if make is frozenset else value)[sent]]

    def understood(value: Any, key: str) -> Any:
        name = called or key
        return make([read(one, name) for one in _items(value, key, bound.limit)])

    return Shape(told, understood)


def _float_shape(marks: dict[type, Any]) -> Shape:
    seconds = marks.get(bounds.Seconds)
    if seconds is not None:
        most = seconds.most
        return Shape(_same, lambda value, key: 0.0 if value is None else _bounded(_number(value, key), most))
    if bounds.Age in marks:
        most = marks[bounds.Age].most
        return Shape(_same, lambda value, key: _bounded(_number(value, key), most))
    if bounds.NanIsNull in marks:
        return Shape(
            lambda value: value if math.isfinite(value) else None,
            lambda value, key: math.nan if value is None else _number(value, key),
        )
    return Shape(_same, _number)


def _text_shape(base: Any, marks: dict[type, Any]) -> Shape:
    if bounds.Free in marks:
        return Shape(_same, _any_text)
    limit = next((marks[kind].limit for kind in _LENGTH_BOUNDS if kind in marks), _TEXT_LIMIT)
    if bounds.Lines in marks:
        return Shape(_same, lambda value, key: _lines(value, key, limit))
    write = _text_writer(base, marks, limit)
    if bounds.Form in marks:
        return Shape(write, _pattern_reader(marks[bounds.Form], limit))
    if bounds.Parsed in marks:
        return Shape(write, _parsing_reader(base, marks[bounds.Parsed].parse, limit))
    return Shape(write, lambda value, key: _text(value, key, limit))


def _text_writer(base: Any, marks: dict[type, Any], limit: int) -> Callable[[Any], Any]:
    text = _same if base is str else operator.attrgetter("text")
    if bounds.Printable in marks:
        return lambda value: printable(text(value), limit)
    if bounds.Uncut in marks:
        return lambda value: text(value) if printable(text(value), limit) == text(value) else ""
    return text


def _pattern_reader(form: bounds.Form, limit: int) -> Callable[[Any, str], str]:
    def read(value: Any, key: str) -> str:
        word = _text(value, key, limit)
        if not form.pattern.fullmatch(word):
            raise Malformed(f"{key}={word!r} {form.why}")
        return word

    return read


def _parsing_reader(base: Any, parse: Callable[[str], Any], limit: int) -> Callable[[Any, str], Any]:
    def read(value: Any, key: str) -> Any:
        try:
            found = parse(_text(value, key, limit))
            return found.text if base is str else found
        except ValueError as error:
            raise Malformed(str(error)) from None

    return read


def _whole(value: Any, key: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Malformed(f"{key}={repr_line(value)} is not a whole number from {low} to {high}")
    return value


def _digits(word: str, key: str) -> int:
    if not _DIGITS.fullmatch(word):
        raise Malformed(f"{key}={repr_line(word)} is not a whole number")
    return int(word)


def _number(value: Any, key: str) -> float:
    """Return the value as a finite number. Raises Malformed."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _LARGEST:
        raise Malformed(f"{key}={repr_line(value)} is not a number")
    return float(value)


def _bounded(seconds: float, most: float) -> float:
    return min(max(seconds, 0.0), most)


def _bounded_age(bound: bounds.Age, age: float) -> float:
    kept = min(max(age, bound.least), bound.most)
    return kept if bound.digits is None else round(kept, bound.digits)


def _text(value: Any, key: str, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit or printable(value, limit) != value:
        raise Malformed(f"{key} is not a printable text of at most {limit} characters")
    return value


def _any_text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{key} is not a text")
    return value


def _lines(value: Any, key: str, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit or not _LINES.fullmatch(value):
        raise Malformed(f"{key} is not printable lines of at most {limit} characters")
    return value


def _items(value: Any, key: str, limit: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > limit:
        raise Malformed(f"{key} is not a list of at most {limit}")
    return value


def _bool(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise Malformed(f"{key}={repr_line(value)} is neither true nor false")
    return value


def _lenient_bool(value: Any, _key: str) -> bool:
    return value is True


def _member(kind: Any, value: Any, key: str) -> Any:
    """Return the member of the enum `kind`. Raises Malformed."""
    try:
        return kind(value)
    except ValueError:
        raise Malformed(f"{key}={repr_line(value)} is not a known value") from None


# Records that this machine keeps, written and read by their type alone


def encode(kind: Any, value: Any) -> Any:
    """Return the value in JSON's types: `decode(kind, encode(kind, value)) == value`."""
    return codec(kind).write(value)


def decode(kind: Any, stored: Any, where: str = "") -> Any:
    """Return the value. Raises ValueError (or TypeError, KeyError) if `stored` is not from `encode` for `kind`.

    The error names the place below `where`.
    """
    return codec(kind).read(stored, where)


@cache
def codec(kind: Any) -> Shape:
    """Return the shape in which values of a type are kept. Raises TypeError for an unsupported type."""
    kind, marks = _marks(kind)
    origin, args = get_origin(kind), get_args(kind)
    if WrittenAs in marks:
        return _as_written(marks[WrittenAs], codec(kind))
    if kind in (str, int, bool):
        return Shape(_same, lambda stored, key: _typed(kind, stored, key))
    if kind is float:
        return Shape(_same, lambda stored, key: float(_typed((int, float), stored, key)))
    if kind is Path:
        return Shape(str, lambda stored, key: Path(_typed(str, stored, key)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        # an unknown value raises ValueError: half a case is worse than none
        return Shape(_VALUE, lambda stored, _: kind(stored))
    if dataclasses.is_dataclass(kind):
        return _kept_record(kind)
    if origin in (Union, types.UnionType) and len(args) == 2 and types.NoneType in args:
        return _or_null(codec(_inner_type(kind)))
    if origin in (tuple, frozenset):
        return _kept_list(origin, args)
    if origin in (Mapping, dict):
        return _kept_mapping(*args)
    raise TypeError(f"{kind!r} cannot be kept")


def _as_written(written: WrittenAs, shape: Shape) -> Shape:
    """Return the shape of a value that a settings file may write in more than one way."""

    def read(stored: Any, key: str) -> Any:
        try:
            return written.read(stored)
        except ValueError as error:
            raise ValueError(f"{key} = {as_in_file(stored)}: {error}") from None

    return Shape(shape.write, read)


def _kept_record(kind: Any) -> Shape:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [(field.name, *codec(hints[field.name])) for field in dataclasses.fields(kind)]

    def read(stored: Any, key: str) -> Any:
        record, above = _typed(dict, stored, key), f"{key}." if key else ""
        return kind(**{name: of(record[name], above + name) for name, _, of in fields if name in record})

    return Shape(lambda value: {name: write(getattr(value, name)) for name, write, _ in fields}, read)


def _kept_list(make: Any, args: tuple[Any, ...]) -> Shape:
    if make is tuple and args[1:] != (Ellipsis,):
        items = [codec(arg) for arg in args]
        return Shape(
            lambda value: [item.write(one) for item, one in zip(items, value, strict=True)],
            lambda stored, key: tuple(item.read(one, key) for item, one in zip(items, stored, strict=True)),
        )
    write, read = codec(args[0])
    order: Callable[[Any], Any] = _same if make is tuple else lambda told: sorted(told, key=str)
    return Shape(
        lambda value: order([write(one) for one in value]),
        lambda stored, key: make([read(one, key) for one in _typed(list, stored, key)]),
    )


def _kept_mapping(key_kind: Any, kind: Any) -> Shape:
    """Return the shape of a mapping: a list of pairs, because JSON's keys are text only."""
    name, item = codec(key_kind), codec(kind)
    return Shape(
        lambda value: [[name.write(k), item.write(v)] for k, v in value.items()],
        lambda stored, key: types.MappingProxyType({name.read(k, key): item.read(v, key) for k, v in stored}),
    )


_WANTED: Mapping[Any, str] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    dict: "a table",
    list: "a list",
}


def _typed(kind: Any, stored: Any, key: str) -> Any:
    if not isinstance(stored, kind) or (isinstance(stored, bool) and kind is not bool):
        raise ValueError(f"{key} = {as_in_file(stored)}: use {_WANTED.get(kind, 'a number')}")
    return stored


# Used for both kinds of records


def _inner_type(optional: Any) -> Any:
    return next(one for one in get_args(optional) if one is not types.NoneType)


def _or_null(inner: Shape) -> Shape:
    write, read = inner
    return Shape(
        lambda value: None if value is None else write(value),
        lambda value, key: None if value is None else read(value, key),
    )
