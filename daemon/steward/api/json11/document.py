"""JSON as it comes from strangers: bounded in depth, one value a key, no NaN, no text that is not Unicode."""

import json
from typing import Any

from steward.api.json11.errors import ApiError, Code

_MAX_DEPTH = 32


def parse(body: bytes) -> dict[str, Any]:
    """The object in `body`; an empty body is an empty object. Raises ApiError (SerializationException) otherwise."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_no_constant) if body else {}
    except RecursionError as error:
        raise _malformed(f"nested deeper than {_MAX_DEPTH} levels") from error
    except ValueError as error:
        raise _malformed(str(error)) from error
    if not isinstance(value, dict):
        raise _malformed("not an object")
    _look_through(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _look_through(value: Any) -> None:
    """Level by level, so that depth costs no stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise _malformed(f"nested deeper than {_MAX_DEPTH} levels")
        level = [inner for outer in level for inner in _inside(outer)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, str):
        _need_unicode(value)
    return value if isinstance(value, list) else []


def _need_unicode(text: str) -> None:
    """Half of a surrogate pair can be written in JSON, but neither stored nor sent back."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _malformed("a text is not Unicode") from error


def _malformed(why: str) -> ApiError:
    return ApiError(Code.MALFORMED, f"The body is not a JSON object that we read: {why}")
