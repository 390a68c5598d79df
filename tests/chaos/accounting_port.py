"""AccountingPort on the simulated cluster with teams: the same broken `scontrol`, and a slurmdbd that can die."""

from collections.abc import Callable
from dataclasses import dataclass

from steward.model.accounting import Accounting
from steward.model.action.quota import CancelJob, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam
from tests.chaos.slurm_port import SlurmOfWorld
from tests.chaos.trouble import Point
from tests.fakes.accounting import FakeAccounting


@dataclass(slots=True, kw_only=True)
class AccountingOfWorld:
    """`slurm` is the door to the same slurmctld."""

    inner: FakeAccounting
    slurm: SlurmOfWorld

    def picture(self) -> Accounting:
        self.slurm.fail_early()
        if not self.inner.dbd_up:
            self.slurm.trouble.bite()
        return self.inner.picture()

    def set_qos(self, action: SetQos) -> None:
        self._edit(lambda: self.inner.set_qos(action))

    def drop_qos(self, action: DropQos) -> None:
        self._edit(lambda: self.inner.drop_qos(action))

    def set_team(self, action: SetTeam) -> None:
        self._edit(lambda: self.inner.set_team(action))

    def make_account(self, name: str) -> None:
        self._edit(lambda: self.inner.make_account(name))

    def remove_account(self, name: str) -> None:
        self._edit(lambda: self.inner.remove_account(name))

    def move_job(self, action: MoveJob) -> None:
        self._edit(lambda: self.inner.move_job(action))

    def mark_job(self, action: MarkJob) -> None:
        self._edit(lambda: self.inner.mark_job(action))

    def set_node_count(self, action: SetNodeCount) -> None:
        self._edit(lambda: self.inner.set_node_count(action))

    def cancel_job(self, action: CancelJob) -> None:
        self._edit(lambda: self.inner.cancel_job(action))

    def _edit(self, do: Callable[[], None]) -> None:
        trouble = self.slurm.trouble
        trouble.point(Point.BEFORE_ACT)
        self.slurm.fail_early()
        do()
        trouble.point(Point.AFTER_ACT)
