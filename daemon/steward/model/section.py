"""The base of the tables of the settings file that only the head and the command read.

Where decisions use the keys of a table unchanged, the table is also their policy: each number is declared once, with
its default, its range and its meaning.
"""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings: frozen, strict about types, without unknown keys.

    Keys in hours and percent are also properties in seconds and as fractions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
