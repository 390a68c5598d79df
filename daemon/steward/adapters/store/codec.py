"""Model values to JSON-shaped ones and back, by type: `decode(T, encode(T, x)) == x` for all stored values.

Understood are text, numbers, booleans, None, NewType, Enum, `X | None`, tuples, frozen sets, mappings and dataclasses.
Any other type is a TypeError when the codec is made. A missing field takes its default; an unknown field is left out;
an unknown word of an Enum raises ValueError, because half a case is worse than none.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple


class Codec(NamedTuple):
    """Both directions for one type."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def encode(kind: Any, value: Any) -> Any:
    """Return the value in JSON's types."""
    return codec(kind).encode(value)


def decode(kind: Any, stored: Any) -> Any:
    """Return the value. Raises ValueError (or TypeError, KeyError) if `stored` is not from `encode` for `kind`."""
    return codec(kind).decode(stored)


@cache
def codec(kind: Any) -> Codec:
    """Return the codec of a type, made once. Raises TypeError for an unknown type."""
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
    """Return the codec of a type of JSON; a float that came back as an int becomes a float again."""

    def check(stored: Any) -> Any:
        allowed = (int, float) if kind is float else (kind,)
        if not isinstance(stored, allowed) or (kind is not bool and isinstance(stored, bool)):
            raise ValueError(f"{stored!r} is not a {kind.__name__}")
        return kind(stored)

    return Codec(lambda value: value, check)


def _generic(kind: Any, origin: Any, args: tuple[Any, ...]) -> Codec:
    if origin in (typing.Union, types.UnionType) and len(args) == 2 and types.NoneType in args:
        return _optional(codec(args[0] if args[1] is types.NoneType else args[1]))
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


def _optional(inner: Codec) -> Codec:
    return Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda stored: None if stored is None else inner.decode(stored),
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
    """Return the codec of a mapping, as a list of pairs, because JSON's keys are text only."""
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
