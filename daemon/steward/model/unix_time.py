"""The type of a time that the head remembers.

A field of this type moves when the head finds that its clock was set (`workflows/clock_change.py`); any other number
stays. So a time of Slurm's that is only compared with other times of Slurm's is a plain `float`.
"""

from typing import Annotated


class OnHeadsClock:
    """The mark of a number that is seconds since 1970 on the head's clock; 0 means never."""


UnixTime = Annotated[float, OnHeadsClock()]
