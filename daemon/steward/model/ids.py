"""Types of names, ids and times, so that a job id is never passed in place of a case id."""

import re
from typing import Annotated, NewType

NodeName = NewType("NodeName", str)
JobId = NewType("JobId", int)
JOB_WORD = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10})|_\[[0-9,:%.-]{1,200}\]|\+([0-9]{1,5}))?(?:\.[0-9a-z+]{1,20})?")
"""A job as Slurm shows it: its id, a task of an array (`7_2`), all its waiting tasks (`7_[3-9%2]`), a part of a
heterogeneous job (`7+1`), or a step of any of them (`7.0`, `7.batch`)."""
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
