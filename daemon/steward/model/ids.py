"""Types of names, ids and times, so that a job id is never passed in place of a case id."""

from typing import Annotated, NewType

NodeName = NewType("NodeName", str)
JobId = NewType("JobId", int)
InstanceId = NewType("InstanceId", str)
BootId = NewType("BootId", str)
CaseId = NewType("CaseId", str)
AskId = NewType("AskId", str)
Key = NewType("Key", str)
"""The idempotency key of an action: a second action with the same key is a duplicate."""


class OnHeadsClock:
    """The mark of a number that is seconds since 1970 on the head's clock; 0 means never."""


UnixTime = Annotated[float, OnHeadsClock()]
"""A time that the head remembers. It moves when the head finds that its clock was set (`workflows/clock_change.py`); no
other number does. So a time of Slurm's that is only compared with other times of Slurm's is a plain `float`."""
