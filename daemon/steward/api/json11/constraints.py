"""What the model demands of one value, each broken demand in the service's own words."""

import math
from collections.abc import Iterator
from functools import lru_cache

import regex
from botocore.model import Shape

_MAX_MATCHED = 8192
_INT_BITS = {"integer": 31, "long": 63}


def of_text(shape: Shape, text: str) -> Iterator[str]:
    """Length first: a pattern is only tried on a text that the length rule lets pass."""
    too_long_or_short = list(of_length(shape, len(text)))
    yield from too_long_or_short
    words = shape.metadata.get("enum")
    if words and text not in words:
        yield f"Member must satisfy enum value set: [{', '.join(words)}]"
    pattern = shape.metadata.get("pattern")
    if pattern and not too_long_or_short and not _matches(pattern, text):
        yield f"Member must satisfy regular expression pattern: {pattern}"


def of_number(shape: Shape, number: float) -> Iterator[str]:
    """Range of the model, and of the number's own type."""
    bits = _INT_BITS.get(shape.type_name)
    lowest = shape.metadata.get("min", None if bits is None else -(2**bits))
    highest = shape.metadata.get("max", None if bits is None else 2**bits - 1)
    if not math.isfinite(number):
        yield "Member must be a finite number"
    elif lowest is not None and number < lowest:
        yield f"Member must have value greater than or equal to {lowest}"
    elif highest is not None and number > highest:
        yield f"Member must have value less than or equal to {highest}"


def of_length(shape: Shape, length: int) -> Iterator[str]:
    """Of a text, a list or a map."""
    shortest, longest = shape.metadata.get("min"), shape.metadata.get("max")
    if shortest is not None and length < shortest:
        yield f"Member must have length greater than or equal to {shortest}"
    if longest is not None and length > longest:
        yield f"Member must have length less than or equal to {longest}"


def _matches(pattern: str, text: str) -> bool:
    return len(text) <= _MAX_MATCHED and _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> "regex.Pattern[str]":
    """The model's patterns are Java's, where `\\d` and `\\s` mean ASCII; `\\p{L}` is Unicode's in both."""
    return regex.compile(pattern, 0 if "\\p{" in pattern else regex.ASCII)
