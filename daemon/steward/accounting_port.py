"""The door to Slurm's accounting: accounts, QOS and limits, and what quotas have done to jobs.

Errors are those of `steward.ports`. Only what carries our mark is changed: QOS named `stw-...`, the limits of accounts
that a quota names, jobs of theirs. A person's own accounts, QOS and limits stay.
"""

from dataclasses import dataclass
from typing import Protocol

from steward.model.accounting import Accounting
from steward.model.action import CancelJob, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam
from steward.model.ids import JobId, NodeName


class AccountingPort(Protocol):
    """Slurm's accounting as quotas need it. Reads are whole pictures; what a write changed is in the next one."""

    def picture(self) -> Accounting:
        """Everything, from slurmctld's own copy. Raises Retryable when it cannot be read. With `reachable` False
        slurmdbd does not answer, and no limit can be changed."""

    def set_qos(self, action: SetQos) -> None:
        """Raises Permanent for a QOS that is not ours, Retryable while slurmdbd does not answer."""

    def drop_qos(self, action: DropQos) -> None:
        """Gone already is success. Raises Permanent for a QOS that is not ours, Stale while one is used."""

    def set_team(self, action: SetTeam) -> None:
        """Raises Stale when there is no such account, Permanent for the root account, Retryable as `set_qos`."""

    def make_account(self, name: str) -> None:
        """With our mark, on this cluster. There already is success, and it stays whose it is."""

    def remove_account(self, name: str) -> None:
        """Gone already is success. Raises Stale where it is not ours, or has users, jobs or accounts of its own."""

    def move_job(self, action: MoveJob) -> None:
        """Raises Stale when the job does not wait, Permanent for a QOS that its user may not have."""

    def mark_job(self, action: MarkJob) -> None:
        """Raises Stale when the job is over or in another run."""

    def set_node_count(self, action: SetNodeCount) -> None:
        """Raises Stale when the job does not wait."""

    def cancel_job(self, action: CancelJob) -> None:
        """Raises Stale when the job is over or in another run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialJob:
    """Slurm's record of one trial job: `state` in its words; `reason` why it waits; `restarts` how often it was put
    back."""

    state: str
    reason: str = ""
    restarts: int = 0


class TrialPort(Protocol):
    """Jobs of the account of trials, as the user who asks for them. Errors are those of `steward.ports`."""

    def enter(self, account: str) -> None:
        """Let this user submit for the account; may be so already."""

    def leave(self, account: str) -> None:
        """The opposite; not in it any more is success."""

    def submit(self, account: str, qos: str, *, partition: str, node: NodeName, gres: str = "") -> JobId:
        """The whole node for five minutes at most, to be requeued; `gres` as `--gres` has it."""

    def job(self, id: JobId) -> TrialJob | None:
        """None: Slurm does not know it any more."""

    def end_all(self, account: str) -> int:
        """Cancel every job of the account; how many there were."""
