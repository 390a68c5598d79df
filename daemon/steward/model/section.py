"""A table of the settings file. Where the decisions use its keys as they are, the table is their policy, too: each
number is declared once, with its default, its range and what it means.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Section(BaseModel):
    """Frozen, strict about types, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    kept = tuple(words)
    if twice := next((word for word in kept if kept.count(word) > 1), None):
        raise ValueError(f"{twice!r} is there twice; write each once")
    return kept


Words = Annotated[tuple[str, ...], AfterValidator(_unique)]
