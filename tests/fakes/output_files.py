"""Output of jobs with rules of their own, by the names of the files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from steward.adapters.node.as_user import FileEnd, Matched, Matches
from steward.ports import Retryable

RULES = json.dumps(
    {
        "enabled": True,
        "logMonitoringConfiguration": [
            {"name": "steps", "logPattern": "step", "expectedRecurringFrequencyInSeconds": 300}
        ],
    }
)


@dataclass(kw_only=True)
class FakeFiles:
    """Files of users by name; `outputs` are what processes write to."""

    rules: str = RULES
    outputs: dict[int, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """How many new lines match."""
    bad: dict[int, str] = field(default_factory=dict)
    hangs: bool = False
    read: list[list[str]] = field(default_factory=list)

    def output(self, pid: int) -> tuple[str, str] | None:
        name = self.outputs.get(pid)
        return None if name is None else (name, f"/proc/{pid}/fd/1")

    def text(self, path: str, uid: int, *, max_bytes: int) -> str:
        if path != "/rules.json":
            raise Retryable("No such file or directory")
        return self.rules

    def matches(self, files: Sequence[FileEnd], patterns: Sequence[str], uid: int, *, timeout_s: float) -> Matched:
        if self.hangs:
            raise Retryable("user_look.py ran longer than 5 s")
        self.read.append([file.path for file in files])
        counts = [self.lines.pop(self.outputs[int(file.path.split("/")[2])], 0) for file in files]
        found = (
            Matches(end=replace(file, inode=1, at=100), counts=(count, 0), numbers=((), ()))
            for file, count in zip(files, counts, strict=True)
        )
        return Matched(files=tuple(found), bad=self.bad)
