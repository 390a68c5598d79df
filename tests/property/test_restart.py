"""P7: kill -9 between any two journal writes, restart: the same end, and no machine launched twice."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from steward.model.case import CaseStep
from steward.model.health import Advice, Severity
from steward.model.ids import NodeName
from steward.model.job import JobState
from tests.fakes.branches import at_each
from tests.fakes.head import Head
from tests.fakes.world_cluster import START
from tests.property.stories import GPU, a_head, dies_at, opted_in

N3 = NodeName("n3")
LATEST = START + 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a story left behind, as far as it matters to people."""

    in_service: tuple[str, ...]
    machines: int
    done: tuple[JobState, ...]
    cases: int


def _kill_inside(head: Head) -> None:
    """A node of the job that has a spare inside dies."""
    head.world.machines.kill(N3)


def _kill_batch_host(head: Head) -> None:
    head.world.machines.kill(NodeName("n1"))


def _xid(head: Head) -> None:
    head.world.machines.fail_check(N3, Severity.FATAL, Advice.REPLACE, head.world.now, "kernel_log")


def _xid_reboot(head: Head) -> None:
    head.world.machines.fail_check(N3, Severity.FATAL, Advice.REBOOT, head.world.now, "kernel_log")


def _service(head: Head) -> None:
    """The restart helps."""
    _light(head, Advice.RESTART_SERVICE, "munge", frozenset({Advice.RESTART_SERVICE}))


def _reset(head: Head) -> None:
    """The reset does not help, and the node is rebooted."""
    _light(head, Advice.RESET_GPU, GPU, frozenset())


def _light(head: Head, advice: Advice, target: str, cure: frozenset[Advice]) -> None:
    n6, now = NodeName("n6"), head.world.now
    head.world.machines.fail_check(n6, Severity.DEGRADED, advice, now, "light", hardware=target, cured_by=cure)


def _slurms_own(head: Head) -> None:
    head.world.slurm.take_out(NodeName("n6"), "Prolog error", head.world.now)


def _command(head: Head) -> None:
    head.world.slurm.admin(NodeName("n6"), "FAIL", "Action:Replace", head.world.now)


def _refused_launch(head: Head) -> None:
    head.world.machines.refusals.extend(["capacity: none", "broken"])
    head.world.machines.kill(N3)


FAULTS = [_kill_inside, _kill_batch_host, _xid, _xid_reboot, _service, _reset, _slurms_own, _command, _refused_launch]


def _tell(fault: Callable[[Head], None], dies: Callable[[], bool]) -> tuple[End, int]:
    """The end, and how often one machine was launched at most."""
    head = a_head(works_s=8.0)
    opted_in(head, head.world.submit(2, works_s=10.0, spare=True))
    dies_at(head, dies)
    fault(head)
    head.run(5.0)
    while not _is_at_rest(head) and head.world.now < LATEST:
        head.run(1.0)
    return _end(head), max(head.world.machines.launched.values(), default=0)


def _is_at_rest(head: Head) -> bool:
    jobs_done = all(job.state is JobState.COMPLETED for job in head.world.slurm.jobs.values())
    cases_done = head.memory is not None and not any(case.is_open for case in head.memory.cases.values())
    return jobs_done and cases_done


def _end(head: Head) -> End:
    assert head.memory is not None
    shown = head.world.slurm.shown_nodes(head.world.now)
    return End(
        in_service=tuple(sorted(name for name, node in shown.items() if node.is_schedulable)),
        machines=head.world.machines.made,
        done=tuple(job.state for _, job in sorted(head.world.slurm.jobs.items())),
        cases=sum(1 for case in head.memory.cases.values() if case.step is CaseStep.CLOSED),
    )


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_a_head_killed_at_any_journal_point_comes_to_the_same_end(fault: Callable[[Head], None]) -> None:
    (end, _), killed = at_each(lambda dies: _tell(fault, dies))
    assert len(end.in_service) == 6
    assert set(end.done) == {JobState.COMPLETED}
    assert killed
    different = {at: other for at, (other, launches) in enumerate(killed, 1) if other != end or launches > 1}
    assert different == {}
