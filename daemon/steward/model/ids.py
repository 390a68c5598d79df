"""Types of names and ids, so that a job id is never passed in place of a case id."""

from typing import NewType

NodeName = NewType("NodeName", str)
JobId = NewType("JobId", int)
InstanceId = NewType("InstanceId", str)
BootId = NewType("BootId", str)
CaseId = NewType("CaseId", str)
AskId = NewType("AskId", str)
Key = NewType("Key", str)
"""The idempotency key of an action: a second action with the same key is a duplicate."""
