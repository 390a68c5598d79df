"""The door to Slurm's accounting: accounts, QOS, limits, and the effects of quotas on jobs.

Errors are those of `steward.ports`. Only objects with our mark are changed: QOS named `stw-...`, the limits of accounts
that a quota names, and jobs of those accounts. All other accounts, QOS and limits stay.
"""

from typing import Protocol

from steward.model.accounting import Accounting
from steward.model.action import CancelJob, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam


class AccountingPort(Protocol):
    """Slurm's accounting as quotas need it. A read returns a whole picture; the next one shows what a write changed."""

    def picture(self) -> Accounting:
        """Return all of accounting, from slurmctld's own copy. Raises Retryable if it cannot be read.

        `reachable` is False while slurmdbd does not answer: then no limit can be changed.
        """

    def set_qos(self, action: SetQos) -> None:
        """Make or change a QOS. Raises Permanent for a QOS of others, Retryable while slurmdbd does not answer."""

    def drop_qos(self, action: DropQos) -> None:
        """Delete a QOS; one that is gone is success. Raises Permanent for a QOS of others, Stale while it is in use."""

    def set_team(self, action: SetTeam) -> None:
        """Set the QOS and limits of an account.

        Raises Stale if the account does not exist, Permanent for the root account, Retryable as `set_qos` does.
        """

    def make_account(self, name: str) -> None:
        """Make an account with our mark on this cluster; an existing one is success, and keeps its own mark."""

    def remove_account(self, name: str) -> None:
        """Remove an account; one that is gone is success.

        Raises Stale if the account is not ours, or has users, jobs or accounts below it.
        """

    def move_job(self, action: MoveJob) -> None:
        """Move a job to other QOS. Raises Stale if it is not pending, Permanent for a QOS that its user may not use."""

    def mark_job(self, action: MarkJob) -> None:
        """Set a job's priority. Raises Stale if the job is over or in another run."""

    def set_node_count(self, action: SetNodeCount) -> None:
        """Set how many nodes a job asks for. Raises Stale if the job is not pending."""

    def cancel_job(self, action: CancelJob) -> None:
        """Cancel a job. Raises Stale if the job is over or in another run."""
