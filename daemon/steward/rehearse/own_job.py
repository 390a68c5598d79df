"""The job of a rehearsal, by Slurm's own commands with its user's rights."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steward.adapters.process import Failed, run
from steward.model.job import ENDED

_WAIT_S = 60.0
_ENDED = {state.value for state in ENDED}
NONE_KNOWN = "GONE"


class SubmitRefused(Exception):
    """A script that cannot be rehearsed; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLook:
    """The job as Slurm shows it now."""

    state: str = NONE_KNOWN
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED

    @property
    def restarts(self) -> int:
        return int(self.fields.get("Restarts", "0"))

    @property
    def nodes(self) -> str:
        return self.fields.get("NodeList", "")

    @property
    def reason(self) -> str:
        return self.fields.get("Reason", "")

    @property
    def exit_code(self) -> str:
        """The exit code, or the signal in words."""
        code, _, number = self.fields.get("ExitCode", "0:0").partition(":")
        return f"signal {number}" if number not in ("", "0") else f"exit code {code}"

    @property
    def outputs(self) -> list[Path]:
        return [Path(self.fields[name]) for name in ("StdOut", "StdErr") if self.fields.get(name, "").startswith("/")]


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A submitted job."""

    id: int

    def look(self) -> JobLook:
        """Return what Slurm shows; an empty look where it does not answer. Raises SubmitRefused for several jobs."""
        try:
            shown = run(["scontrol", "-o", "show", "job", str(self.id)], timeout_s=_WAIT_S, check=False).text
        except Failed:
            return JobLook()
        records = [line for line in shown.splitlines() if line.startswith("JobId=")]
        if len(records) > 1 or "ArrayTaskId=" in shown or "HetJobId=" in shown:
            raise SubmitRefused(
                "it is an array or a heterogeneous job, which cannot be rehearsed: take its --array out for now"
            )
        fields = dict(re.findall(r"(\w+)=(\S*)", records[0])) if records else {}
        return JobLook(state=fields.get("JobState", NONE_KNOWN), fields=fields)

    def shorten(self, minutes: int) -> None:
        """Lower the time limit."""
        _try(["scontrol", "update", f"jobid={self.id}", f"timelimit={minutes}"])

    def kill_all(self) -> None:
        """Kill every process of the job without a warning, as a power cut does."""
        steps = _try(["squeue", "-h", "-s", "-j", str(self.id), "-o", "%i"]).split()
        numbered = [step for step in steps if step.rpartition(".")[2].isdigit()]
        if numbered:  # its tasks first: the end of the script would have them told to end
            _try(["scancel", "--signal=KILL", *numbered])
        _try(["scancel", "--signal=KILL", "--batch", str(self.id)])

    def requeue(self) -> str:
        """Put the job back into the queue and hold it there; return what Slurm has against it.

        Its processes are told to end. The hold keeps the output of two runs apart; `release` ends it.
        """
        try:
            done = run(["scontrol", "requeuehold", str(self.id)], timeout_s=_WAIT_S, check=False)
        except Failed as error:
            return str(error)
        return done.error_text or done.text.strip() if done.returncode else ""

    def release(self) -> None:
        _try(["scontrol", "release", str(self.id)])

    def hurry(self) -> None:
        """Ask for a start now; Slurm alone waits two minutes after a requeue."""
        _try(["scontrol", "update", f"jobid={self.id}", "starttime=now"])

    def cancel(self) -> None:
        _try(["scancel", str(self.id)])


def _try(argv: Sequence[str]) -> str:
    """Return a command's output; empty where it failed."""
    try:
        return run(argv, timeout_s=_WAIT_S, check=False).text
    except Failed:
        return ""


def submit(words: Sequence[str]) -> OwnJob:
    """Submit a script with the words of sbatch. Raises SubmitRefused."""
    env = {"STEWARD_AUTO_RESUME": os.environ.get("STEWARD_AUTO_RESUME", "1"), "STEWARD_REHEARSAL": "1"}
    try:
        done = run(
            ["sbatch", "--parsable", "--requeue", "--open-mode=append", *words], timeout_s=_WAIT_S, env=env, check=False
        )
    except Failed as error:
        raise SubmitRefused(str(error)) from error
    number = re.match(r"(\d+)", done.text.strip())
    if done.returncode or number is None:
        raise SubmitRefused(
            re.sub(r"\s*sbatch: (?:error: )?", " ", f" {done.error_text}").strip()
            or f"sbatch ended with {done.returncode}"
        )
    return OwnJob(int(number[1]))


def kill_wait_s() -> float:
    """Return how long Slurm waits between SIGTERM and SIGKILL."""
    found = re.search(r"^KillWait\s*=\s*(\d+)", _try(["scontrol", "show", "config"]), re.MULTILINE)
    return float(found[1]) if found else 30.0
