"""Names of things, so that a job id is never passed where a case id is meant."""

from typing import NewType

NodeName = NewType("NodeName", str)
JobId = NewType("JobId", int)
InstanceId = NewType("InstanceId", str)
BootId = NewType("BootId", str)
CaseId = NewType("CaseId", str)
AskId = NewType("AskId", str)
Key = NewType("Key", str)
"""Idempotency key of an action: the same key is the same wish, however often it is expressed."""
