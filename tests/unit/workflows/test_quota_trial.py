"""`steward quota doctor --try`: what its jobs show, and that nothing of it stays whatever ends it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from steward.accounting_port import TrialJob
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.ports import Retryable
from steward.workflows.doctor import DoctorLine, Health
from steward.workflows.quota_setup import TEAM, QuotaTrial
from tests.fakes.accounting import FakeAccounting


@dataclass(kw_only=True)
class OneNode:
    """A Slurm of one node, looked at once a second: it holds to limits (or not), preempts by QOS (or not)."""

    now: float = 0.0
    job_table: dict[JobId, Job] = field(default_factory=dict)
    enforces: bool = True
    preempts: bool = True
    breaks_at: int = 0
    """The submission that raises (1 is the first)."""
    accounts: FakeAccounting = field(init=False)
    members: set[str] = field(default_factory=set)
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.accounts = FakeAccounting(cluster=self)

    def enter(self, account: str) -> None:
        assert account in self.accounts.accounts
        self.members.add(account)

    def leave(self, account: str) -> None:
        self.members.discard(account)

    def submit(self, account: str, qos: str, *, partition: str, node: NodeName, gres: str = "") -> JobId:
        assert account in self.members
        id = JobId(next(self.ids))
        if id == self.breaks_at:
            raise KeyboardInterrupt
        asked = "cpu=4" + (",gres/gpu=1" if gres else "")
        self.job_table[id] = Job(
            id=id, name="t", state=JobState.PENDING, user_id=0, account=account, qos=qos, requested=asked
        )
        return id

    def job(self, id: JobId) -> TrialJob | None:
        job = self.job_table.get(id)
        return TrialJob(state=job.state.value, reason=job.reason, restarts=job.restarts) if job else None

    def end_all(self, account: str) -> int:
        ended = len(self.job_table)
        self.job_table.clear()
        return ended

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for job in sorted(self.job_table.values(), key=lambda job: -self.accounts.qos[job.qos].priority):
            if job.is_pending:
                self._try(job)

    def _try(self, job: Job) -> None:
        limits = self.accounts.qos[job.qos].limits
        held = [name for name, most in limits.items() if f"{name}=" in job.requested and most == 0]
        others = [other for other in self.job_table.values() if other.is_active]
        if held and self.enforces:
            self.job_table[job.id] = replace(job, reason="QOSGrpCpuLimit")
        elif not others:
            self.job_table[job.id] = replace(job, state=JobState.RUNNING, reason="")
        elif self.preempts and others[0].qos in self.accounts.qos[job.qos].preempts:
            self.job_table[others[0].id] = replace(others[0], state=JobState.PENDING, restarts=1)
            self.job_table[job.id] = replace(job, state=JobState.RUNNING, reason="")


def a_trial(slurm: OneNode, *, preempts: bool = True, kind: str = "") -> QuotaTrial:
    return QuotaTrial(
        jobs=slurm,
        accounts=slurm.accounts,
        node=NodeName("n1"),
        partition="main",
        preempts=preempts,
        kind=kind,
        now=lambda: slurm.now,
        sleep=slurm.sleep,
    )


def told(lines: list[DoctorLine]) -> list[tuple[Health, str]]:
    return [(line.health, line.text) for line in lines]


def is_clean(slurm: OneNode) -> bool:
    names = {*slurm.accounts.qos, *slurm.accounts.accounts, *slurm.members}
    return names == {"normal"} and not slurm.job_table


def test_where_all_is_well_each_trial_says_so_and_nothing_stays() -> None:
    slurm = OneNode()
    found = told(a_trial(slurm, kind="l4").run())
    assert [health for health, _ in found] == [Health.OK] * 4
    assert found[0][1] == "a limit of 0 held a job up (QOSGrpCpuLimit)"
    assert "--gres=gpu:1 passed a limit of gres/gpu:l4=0" in found[2][1]
    assert "an owner's job had the node of a borrowed one after" in found[3][1]
    assert is_clean(slurm)


def test_a_slurm_that_holds_to_no_limit_is_bad() -> None:
    slurm = OneNode(enforces=False)
    first = a_trial(slurm).run()[0]
    assert (first.health, "AccountingStorageEnforce" in first.remedy) == (Health.BAD, True)
    assert is_clean(slurm)


def test_a_slurm_that_says_it_preempts_and_does_not_is_bad() -> None:
    slurm = OneNode(preempts=False)
    last = a_trial(slurm).run()[-1]
    assert (last.health, last.text[:56]) == (Health.BAD, "an owner's job got no node from a borrowed one within 90")
    assert is_clean(slurm)


def test_without_preemption_the_reclaim_is_not_tried() -> None:
    assert "(not tried)" in a_trial(OneNode(), preempts=False).run()[-1].text


@pytest.mark.parametrize("job", [1, 2, 3])
def test_who_ends_it_in_the_middle_leaves_nothing_behind(job: int) -> None:
    slurm = OneNode(breaks_at=job)
    with pytest.raises(KeyboardInterrupt):
        a_trial(slurm).run()
    assert is_clean(slurm)


def test_what_a_killed_trial_left_behind_is_taken_away_by_the_next() -> None:
    slurm = OneNode()
    killed = a_trial(slurm)
    killed._set_up()
    slurm.submit(TEAM, "stw-steward-trial-b", partition="main", node=NodeName("n1"))
    assert not is_clean(slurm)
    assert all(line.health is Health.OK for line in a_trial(slurm).run())
    assert is_clean(slurm)


def test_what_slurm_refuses_is_a_line() -> None:
    slurm = OneNode()

    def refuse(account: str) -> None:
        raise Retryable("sacctmgr: no")

    slurm.enter = refuse  # type: ignore[method-assign]
    lines = a_trial(slurm).run()
    assert told(lines) == [(Health.BAD, "Slurm refused: sacctmgr: no")]
    assert is_clean(slurm)
