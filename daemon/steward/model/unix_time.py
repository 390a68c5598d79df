"""The type of a time that the head remembers.

A field of this type moves when the head finds that its clock was set back (`workflows/set_back.py`); any other number
stays. A stamp of Slurm that is only compared with Slurm's own stays too: it is a plain `float`.
"""

from typing import Annotated


class OnHeadsClock:
    """The mark of a number that is seconds since 1970 on the head's clock; 0 means never."""


UnixTime = Annotated[float, OnHeadsClock()]
