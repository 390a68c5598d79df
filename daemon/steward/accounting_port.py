"""The door to Slurm's accounting: accounts, QOS, limits, and the effects of quotas on jobs.

Errors are those of `steward.ports`. Steward changes only its own QOS (`stw-...`) and accounts, the QOS and limits of
accounts that a quota names, and the jobs of those accounts.
"""

from typing import Protocol

from steward.model.accounting import Accounting
from steward.model.action import CancelJob, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam


class AccountingPort(Protocol):
    """Slurm's accounting, as far as quotas need it. The effect of a write shows in the next `picture`."""

    def picture(self) -> Accounting:
        """Return all of accounting, from slurmctld's own copy. Raises Retryable if it cannot be read.

        `reachable` is False while slurmdbd does not answer: then no limit can be changed.
        """

    def set_qos(self, action: SetQos) -> None:
        """Make or change a QOS of ours. Raises Permanent for any other, Retryable while slurmdbd does not answer."""

    def drop_qos(self, action: DropQos) -> None:
        """Delete a QOS of ours; success if it is gone. Raises Permanent for any other, Stale while it is in use."""

    def set_team(self, action: SetTeam) -> None:
        """Set the QOS and limits of an account.

        Raises Stale if the account does not exist, Permanent for the root account, Retryable as `set_qos` does.
        """

    def make_account(self, name: str) -> None:
        """Make an account with our mark on this cluster; success if it exists, with whatever mark it has."""

    def remove_account(self, name: str) -> None:
        """Remove an account; success if it is gone.

        Raises Stale if the account is not ours, or has users, jobs or accounts below it.
        """

    def move_job(self, action: MoveJob) -> None:
        """Set a job's QOS. Raises Stale if the job is not pending, Permanent for a QOS that its account may not use."""

    def mark_job(self, action: MarkJob) -> None:
        """Set a job's priority; None: leave it to Slurm again. Raises Stale if the job is over or in another run."""

    def set_node_count(self, action: SetNodeCount) -> None:
        """Set how many nodes a job asks for. Raises Stale if the job is not pending."""

    def cancel_job(self, action: CancelJob) -> None:
        """Cancel a job. Raises Stale if the job is over or in another run."""
