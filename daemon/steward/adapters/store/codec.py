"""Model values to JSON-shaped ones and back, by their types: `decode(T, encode(T, x)) == x` for all that we store.

Understood: text, numbers, booleans, None, NewType, Enum, `X | None`, tuples, frozen sets, mappings, dataclasses, and
unions of dataclasses (tagged with the class's name). Anything else is a TypeError when the codec is made.

Written by an older Steward: a field that is missing takes its default. By a newer one: a field that we do not know is
left out; a word of an Enum that we do not know raises ValueError, because half a case is worse than none.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

_TAG = "type"


class Codec(NamedTuple):
    """Both ways for one type."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def encode(kind: Any, value: Any) -> Any:
    return codec(kind).encode(value)


def decode(kind: Any, stored: Any) -> Any:
    """Raises ValueError (or TypeError, KeyError) when `stored` is not what `encode` writes for `kind`."""
    return codec(kind).decode(stored)


@cache
def codec(kind: Any) -> Codec:
    """Made once a type. Raises TypeError for a type that is not understood."""
    while isinstance(kind, typing.NewType):
        kind = kind.__supertype__
    if kind in (str, int, bool, float):
        return _plain(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(lambda value: value.value, kind)
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    return _generic(kind, typing.get_origin(kind), typing.get_args(kind))


def _plain(kind: type) -> Codec:
    """JSON has these; a float that came back as an int becomes a float again."""

    def check(stored: Any) -> Any:
        allowed = (int, float) if kind is float else (kind,)
        if not isinstance(stored, allowed) or (kind is not bool and isinstance(stored, bool)):
            raise ValueError(f"{stored!r} is not a {kind.__name__}")
        return kind(stored)

    return Codec(lambda value: value, check)


def _generic(kind: Any, origin: Any, args: tuple[Any, ...]) -> Codec:
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is frozenset:
        item = codec(args[0])
        return Codec(
            lambda value: sorted((item.encode(v) for v in value), key=str),
            lambda stored: frozenset(item.decode(v) for v in stored),
        )
    if origin is tuple:
        return _tuple(args)
    if origin in (Mapping, dict):
        return _mapping(args)
    raise TypeError(f"cannot store a {kind!r}")


def _union(args: tuple[Any, ...]) -> Codec:
    rest = [arg for arg in args if arg is not types.NoneType]
    inner = codec(rest[0]) if len(rest) == 1 else _tagged(rest)
    if len(rest) == len(args):
        return inner
    return Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda stored: None if stored is None else inner.decode(stored),
    )


def _tagged(kinds: list[Any]) -> Codec:
    """A union of dataclasses: the class's name goes with the record."""
    if not all(dataclasses.is_dataclass(kind) for kind in kinds):
        raise TypeError(f"cannot store a union of {kinds!r}")
    by_name = {kind.__name__: kind for kind in kinds}
    return Codec(
        lambda value: {_TAG: type(value).__name__, **encode(type(value), value)},
        lambda stored: decode(by_name[stored[_TAG]], stored),
    )


def _tuple(args: tuple[Any, ...]) -> Codec:
    if len(args) == 2 and args[1] is Ellipsis:
        item = codec(args[0])
        return Codec(
            lambda value: [item.encode(v) for v in value],
            lambda stored: tuple(item.decode(v) for v in stored),
        )
    items = [codec(arg) for arg in args]
    return Codec(
        lambda value: [item.encode(v) for item, v in zip(items, value, strict=True)],
        lambda stored: tuple(item.decode(v) for item, v in zip(items, stored, strict=True)),
    )


def _mapping(args: tuple[Any, ...]) -> Codec:
    """As a list of pairs, because JSON's keys are text only."""
    key, item = codec(args[0]), codec(args[1])
    return Codec(
        lambda value: [[key.encode(k), item.encode(v)] for k, v in value.items()],
        lambda stored: types.MappingProxyType({key.decode(k): item.decode(v) for k, v in stored}),
    )


def _record(kind: Any) -> Codec:
    hints = typing.get_type_hints(kind)
    fields = [(field.name, codec(hints[field.name])) for field in dataclasses.fields(kind)]

    def decode_record(stored: Any) -> Any:
        return kind(**{name: item.decode(stored[name]) for name, item in fields if name in stored})

    return Codec(lambda value: {name: item.encode(getattr(value, name)) for name, item in fields}, decode_record)
