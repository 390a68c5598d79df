"""A failure of a job, with everything usual but what a test says."""

from typing import Any

from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.job_report import Lean, LogSign, TaskExit
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumePolicy
from steward.policy.job.evidence import Evidence
from steward.policy.job.failure import Failure, FailureSource
from steward.policy.job.options import options


def a_failure(mode: str = "1", rules: ResumePolicy | None = None, **fields: Any) -> Failure:
    """A batch script of an hour's age that ended with exit code 1 on good nodes."""
    chosen = options(ResumeMode.parse(mode), rules or ResumePolicy())
    default: dict[str, Any] = {
        "kind": FailureSource.BATCH,
        "state": JobState.RUNNING,
        "status": 1 << 8,
        "age_s": 3600.0,
    }
    return Failure(**{**default, "options": chosen, **fields})


def against(node: str = "n2", text: str = "Xid 79", at: float = 0.0) -> Evidence:
    return Evidence(node=NodeName(node), text=f"{node}: {text}", at=at)


def a_sign(lean: Lean, line: str = "a line", *, strong: bool = True, order: int = 0) -> LogSign:
    return LogSign(sign=lean.value, lean=lean, strong=strong, line=line, order=order)


def an_exit(status: int, task: int = 0, node: str = "n1", at: float = 0.0) -> TaskExit:
    return TaskExit(job=JobId(7), restart=0, step="0", node=NodeName(node), task=task, status=status, at=at)
