"""Inputs of AWS operations made from the service's model: good ones, and good ones with one thing wrong."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import regex
from botocore.model import ListShape, MapShape, Shape, StructureShape
from hypothesis import strategies as st

from steward.api.json11.validate import member_name

Values = st.SearchStrategy[Any]

_MAX_OPTIONAL = 3
_MAX_EXTRA_ITEMS = 2
_WORDS = st.text(st.characters(categories=["L", "Z", "N"], include_characters="_.:/=+-@"), max_size=20)
_TAIL = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)

# Where a pattern is not Python's, or a text that matches it is seldom of the wanted length.
_BY_NAME: dict[str, Values] = {
    "TagKey": _WORDS.filter(bool),
    "TagValue": _WORDS,
    "TrainingPlanArn": _TAIL.map("arn:aws:sagemaker:us-east-1:000000000000:training-plan/{}".format),
    "ClusterAccountingDatabaseEndpoint": _TAIL.map("db.{}x.example".format),
    "ClusterAccountingDatabaseSecretArn": _TAIL.map("arn:aws:secretsmanager:us-east-1:000000000000:secret:{}".format),
    "ClusterDnsName": _TAIL.map("fs-0123456789abcdef0.fsx.{}".format),
    "EksClusterArn": _TAIL.map("arn:aws:eks:us-east-1:000000000000:cluster/{}".format),
    "RoleArn": _TAIL.map("arn:aws:iam::000000000000:role/{}".format),
    "AlarmName": st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30),
    "EntityDescription": st.text(st.characters(categories=["L", "M", "Z", "S", "N", "P"]), max_size=30),
    "EntityName": st.from_regex(r"[a-zA-Z0-9](-?[a-zA-Z0-9]){0,20}", fullmatch=True),
    "ClusterArn": st.integers(0, 10**12 - 1).map("arn:aws:sagemaker:steward-1:000000000000:cluster/{:012d}".format),
    "NextToken": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
}

JSON: Values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@lru_cache(maxsize=1024)
def valid(shape: Shape) -> Values:
    """Values that the model allows, small ones: as few items as may be and two more, three optional members a level."""
    match shape.type_name:
        case "structure":
            return _structure(shape)
        case "list":
            least = shape.metadata.get("min", 0)
            most = min(shape.metadata.get("max", 99), least + _MAX_EXTRA_ITEMS)
            return st.lists(valid(shape.member), min_size=least, max_size=most)
        case "map":
            return st.dictionaries(valid(shape.key), valid(shape.value), max_size=_MAX_EXTRA_ITEMS)
        case "string":
            return _text(shape)
        case "integer":
            return st.integers(shape.metadata.get("min", -(2**31)), shape.metadata.get("max", 2**31 - 1))
        case "float":
            return st.floats(shape.metadata.get("min"), shape.metadata.get("max"), allow_nan=False)
        case "boolean":
            return st.booleans()
        case "timestamp":
            return st.integers(0, 2**33)
    raise AssertionError(f"no values for a {shape.type_name}")


def _structure(shape: StructureShape) -> Values:
    if shape.is_tagged_union:
        return st.one_of([st.fixed_dictionaries({name: valid(member)}) for name, member in shape.members.items()])

    optional = sorted(shape.members.keys() - set(shape.required_members))
    few: Values = st.sets(st.sampled_from(optional), min_size=1, max_size=_MAX_OPTIONAL) | st.just(set())

    @st.composite
    def members(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(few) if optional else set()
        return {name: draw(valid(shape.members[name])) for name in (*shape.required_members, *sorted(chosen))}

    return members()


def _text(shape: Shape) -> Values:
    least, most = shape.metadata.get("min", 0), shape.metadata.get("max", 200)
    if "enum" in shape.metadata:
        return st.sampled_from(shape.metadata["enum"])
    if shape.name in _BY_NAME:
        return _BY_NAME[shape.name]
    if pattern := shape.metadata.get("pattern"):
        ascii_only = st.characters(min_codepoint=33, max_codepoint=126)
        texts = st.from_regex(pattern, fullmatch=True, alphabet=ascii_only)
        return texts.filter(lambda text: least <= len(text) <= most)
    return st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=least, max_size=min(most, least + 20))


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """`members` is a valid input but for the one thing at `place` (as the service names it)."""

    members: dict[str, Any]
    place: str
    how: str


@dataclass(frozen=True, slots=True)
class _Break:
    place: str
    how: str
    do: Callable[[], None]


@st.composite
def broken(draw: st.DrawFn, shape: Shape) -> Broken:
    """One thing wrong. Needs an operation that takes any member at all."""
    members = copy.deepcopy(draw(valid(shape)))
    ways = list(_ways(shape, members, ""))
    how = draw(st.sampled_from(sorted({way.how for way in ways})))
    chosen = draw(st.sampled_from([way for way in reversed(ways) if way.how == how]))
    chosen.do()
    return Broken(members=members, place=chosen.place, how=chosen.how)


def _ways(shape: StructureShape, value: dict[str, Any], place: str) -> Iterator[_Break]:
    """Every way to break what is in a structure."""
    yield _Break(_under(place, "zzz"), "unknown", lambda: value.update(zzz=1))
    for name, member in shape.members.items():
        here = _under(place, name)
        if name in shape.required_members:
            yield _Break(here, "missing", lambda name=name: value.pop(name))  # type: ignore[misc]
        if name in value:
            yield from _ways_of(member, value, name, here)
    if shape.is_tagged_union:
        yield _Break(place, "no member of a union", value.clear)


def _ways_of(shape: Shape, holder: Any, key: Any, place: str) -> Iterator[_Break]:
    """Every way to break `holder[key]` or something in it."""
    value = holder[key]
    for how, wrong in _wrong(shape, value):
        yield _Break(place, how, lambda wrong=wrong: holder.__setitem__(key, wrong))  # type: ignore[misc]
    if isinstance(shape, StructureShape):
        yield from _ways(shape, value, place)
    elif isinstance(shape, ListShape):
        for i in range(len(value)):
            yield from _ways_of(shape.member, value, i, f"{place}.{i + 1}.member")
    elif isinstance(shape, MapShape):
        for name in value:
            yield from _ways_of(shape.value, value, name, f"{place}.{name}.value")


def _wrong(shape: Shape, value: Any) -> Iterator[tuple[str, Any]]:
    """Values that break one constraint of the shape."""
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    yield "wrong type", 7 if shape.type_name in ("string", "boolean", "structure", "list", "map") else "seven"
    match shape.type_name:
        case "list":
            if least:
                yield "too few", value[: least - 1]
            if most is not None and value:
                yield "too many", [value[0]] * (most + 1)
        case "integer":
            yield "not whole", 1.5
            yield "a boolean", True
            yield "too small", -(2**31) - 1 if least is None else least - 1
            yield "too large", 2**31 if most is None else most + 1
        case "float":
            yield "a boolean", True
            if least is not None:
                yield "too small", least - 0.5
            if most is not None:
                yield "too large", most * 2.0
        case "timestamp":
            yield "before 1970", -1
        case "string":
            yield from _wrong_text(shape)


def _wrong_text(shape: Shape) -> Iterator[tuple[str, Any]]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least:
        yield "too short", "a" * (least - 1)
    if most is not None:
        yield "too long", "a" * (most + 1)
    if "enum" in shape.metadata:
        yield "no such word", "NoSuchWord"
    pattern, strange = shape.metadata.get("pattern"), "\x00" * max(least or 0, 1)
    if pattern and regex.fullmatch(pattern, strange) is None:
        yield "wrong form", strange


def _under(place: str, name: str) -> str:
    return f"{place}.{member_name(name)}" if place else member_name(name)
