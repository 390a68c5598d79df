"""What every SlurmPort promises about looks at just some nodes and jobs, on the fake and on real Slurm."""

import shutil
import time
from contextlib import closing
from pathlib import Path

import pytest

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import JobId, NodeName
from steward.model.mark import Mark
from steward.ports import Retryable
from tests.contract.conftest import Clusters, library_of
from tests.contract.slurm_worlds import RealWorld, SlurmWorld
from tests.fakes.until import FACT_S

MARK = Mark(check="xid", action="drain", id="c1")
N1, N2, N3, N9 = (NodeName(name) for name in ("n1", "n2", "n3", "n9"))
GONE = JobId(99999)


def test_just_the_named_nodes_are_told_of_as_the_whole_look_tells_of_them(slurm_world: SlurmWorld) -> None:
    slurm_world.port.drain(dict.fromkeys([N2], MARK))
    every = slurm_world.port.nodes()

    assert slurm_world.port.nodes([N3, N2, N2]) == {N2: every[N2], N3: every[N3]}
    assert slurm_world.port.nodes({N1}) == {N1: every[N1]}


def test_a_node_that_slurm_does_not_have_is_left_out(slurm_world: SlurmWorld) -> None:
    every = slurm_world.port.nodes()

    assert slurm_world.port.nodes([N1, N9]) == {N1: every[N1]}
    assert slurm_world.port.nodes([N9]) == {}


def test_what_nobody_asked_for_is_not_told(slurm_world: SlurmWorld) -> None:
    slurm_world.running(slurm_world.submit())

    assert slurm_world.port.nodes([]) == {}
    assert slurm_world.port.jobs([]) == {}


def test_just_the_named_jobs_are_told_of_as_the_whole_look_tells_of_them(slurm_world: SlurmWorld) -> None:
    one, other = slurm_world.submit(on="n1"), slurm_world.submit(hold=True)
    slurm_world.submit(on="n2")
    slurm_world.running(one)
    every = slurm_world.port.jobs()

    assert slurm_world.port.jobs([one]) == {one: every[one]}
    assert slurm_world.port.jobs([other, one, one]) == {one: every[one], other: every[other]}


def test_a_job_that_slurm_does_not_hold_is_left_out(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id

    assert set(slurm_world.port.jobs([job, GONE])) == {job}
    assert slurm_world.port.jobs([GONE]) == {}


@pytest.mark.parametrize("name", ["x JobState=FAILED", "a\nJobId=77 JobState=FAILED", "\x1f\x01|;'\"\\", "a\tb=c  "])
def test_a_hostile_name_is_only_a_name(slurm_world: SlurmWorld, name: str) -> None:
    job = slurm_world.running(slurm_world.submit(name=name, on="n1")).id

    assert slurm_world.port.jobs([job]) == slurm_world.port.jobs([], on=[N1]) == {job: slurm_world.port.jobs()[job]}
    assert slurm_world.port.jobs([job])[job].name == name


def test_the_jobs_that_have_one_of_the_nodes_are_told_of_besides(slurm_world: SlurmWorld) -> None:
    here, there = slurm_world.submit(on="n1"), slurm_world.submit(on="n2")
    waiting, ended = slurm_world.submit(hold=True), slurm_world.submit(on="n3")
    for job in (here, there, ended):
        slurm_world.running(job)
    slurm_world.finish(ended, 0)
    slurm_world.wait("it ended", lambda: slurm_world.job(ended).is_over)

    assert set(slurm_world.port.jobs([], on=[N1])) == {here}
    assert set(slurm_world.port.jobs([waiting], on=[N2])) == {waiting, there}
    assert set(slurm_world.port.jobs([ended], on=[N1, N2, N9])) == {here, there, ended}
    assert slurm_world.port.jobs([], on=[N3]) == slurm_world.port.jobs([], on=[N9]) == {}


def test_an_array_s_tasks_are_told_of_one_by_one(slurm_world: SlurmWorld) -> None:
    tasks = slurm_world.submit_array(2)
    every = slurm_world.port.jobs()

    assert slurm_world.port.jobs([tasks[1]]) == {tasks[1]: every[tasks[1]]}
    assert slurm_world.port.jobs([tasks[2]]) == {tasks[2]: every[tasks[2]]}
    assert set(slurm_world.port.jobs(list(tasks.values()))) == set(tasks.values())


def test_what_is_in_a_hidden_partition_is_told_of(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(on="n1")).id
    if isinstance(slurm_world, RealWorld):  # the fake has no hidden ones
        slurm_world.cluster.run("scontrol", "update", "partitionname=main", "hidden=yes")
    nodes, jobs = slurm_world.port.nodes(), slurm_world.port.jobs()

    assert set(nodes) == {N1, N2, N3}
    assert slurm_world.port.nodes([N1]) == {N1: nodes[N1]}
    assert slurm_world.port.jobs([job]) == slurm_world.port.jobs([], on=[N1]) == {job: jobs[job]}


def test_no_answer_is_not_an_answer_without_records(slurm_world: SlurmWorld) -> None:
    slurm_world.break_off()
    try:
        with pytest.raises(Retryable):
            slurm_world.port.jobs([GONE])
        with pytest.raises(Retryable):
            slurm_world.port.jobs([], on=[N1])
        with pytest.raises(Retryable):
            slurm_world.port.nodes([N1])
    finally:
        slurm_world.mend()


def test_a_node_that_was_seen_before_shows_what_is_done_to_it_and_its_partitions(slurm_world: SlurmWorld) -> None:
    slurm_world.port.nodes()
    slurm_world.port.drain(dict.fromkeys([N2], MARK))
    drained = slurm_world.port.nodes([N1, N2])
    if isinstance(slurm_world, RealWorld):  # the fake's partitions have every node
        slurm_world.cluster.run("scontrol", "update", "partitionname=main", "nodes=n1,n3")
    try:
        parted = slurm_world.port.nodes([N1, N2])

        assert (drained[N1].mark, drained[N2].mark) == (None, MARK)
        assert parted == {name: slurm_world.port.nodes()[name] for name in (N1, N2)}
        assert slurm_world.port.nodes([N1, N2]) == parted
    finally:
        if isinstance(slurm_world, RealWorld):
            slurm_world.cluster.run("scontrol", "update", "partitionname=main", "nodes=n1,n2,n3")


def test_changes_of_partitions_are_seen_through_the_library_alone(
    clusters: Clusters, slurm_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = clusters.of(slurm_root)
    (tmp_path / "chroot").symlink_to(shutil.which("chroot") or "chroot")
    monkeypatch.setenv("PATH", str(tmp_path))  # no command of Slurm
    with closing(library_of(cluster)) as library:
        port = CommandLineSlurm(conf=cluster.env["SLURM_CONF"], library=library)
        try:
            for nodes in ("n1,n2", "n1,n2,n3"):
                cluster.run("scontrol", "update", "partitionname=main", f"nodes={nodes}")
                assert port.nodes([N3])[N3].partitions == ({"main"} if "n3" in nodes else set())
                whole = port.nodes()
                assert port.nodes([N1, N3]) == {name: whole[name] for name in (N1, N3)}
                assert port.partitions()["main"].nodes == {NodeName(name) for name in nodes.split(",")}
        finally:
            cluster.run("scontrol", "update", "partitionname=main", "nodes=n1,n2,n3")


def test_a_job_that_was_seen_before_shows_what_became_of_it(slurm_world: SlurmWorld) -> None:
    job = slurm_world.submit(hold=True)
    for _ in range(3):
        assert slurm_world.port.jobs([job]) == {job: slurm_world.port.jobs()[job]}
    slurm_world.cancel(job)

    slurm_world.wait("it is over", lambda: slurm_world.port.jobs([job])[job].is_over)
    assert slurm_world.port.jobs([job]) == {job: slurm_world.port.jobs()[job]}


def test_what_a_job_excludes_is_told_also_when_it_changed(slurm_world: SlurmWorld) -> None:
    job, hostile = (
        slurm_world.submit(hold=True, exclude=["n2"]),
        slurm_world.submit(hold=True, name="x ExcNodeList=n9 "),
    )
    for _ in range(2):
        found = {**slurm_world.port.jobs([job]), **slurm_world.port.jobs([hostile])}
        assert (found[job].excluded, found[hostile].excluded) == (frozenset({N2}), frozenset())
        assert found == {id: slurm_world.port.jobs()[id] for id in (job, hostile)}


def test_a_job_that_runs_shows_that_it_was_requeued(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    for _ in range(3):
        assert slurm_world.port.jobs([job])[job].restarts == 0
    slurm_world.port.requeue(job, frozenset())

    slurm_world.wait("it was requeued", lambda: slurm_world.port.jobs([job])[job].restarts == 1)


def test_where_nothing_changed_the_library_says_so_and_the_whole_look_is_the_same_object(
    clusters: Clusters, slurm_root: Path
) -> None:
    cluster = clusters.of(slurm_root)
    job, held = JobId(cluster.sbatch()), JobId(cluster.sbatch("--hold"))
    cluster.wait_job(job, "RUNNING")
    with closing(library_of(cluster)) as library:
        port = CommandLineSlurm(conf=cluster.env["SLURM_CONF"], library=library)
        deadline = time.monotonic() + FACT_S
        while (nodes := port.nodes()) is not port.nodes() or (jobs := port.jobs()) is not port.jobs():
            assert time.monotonic() < deadline
            time.sleep(0.3)
        cluster.run("scontrol", "update", f"jobid={job}", "comment=y")
        cluster.run("scontrol", "update", "nodename=n1", "comment=x")
        assert port.jobs()[job].comment == "y"
        assert port.nodes()[N1] is nodes[N1]
        assert jobs[job].comment == ""
        assert port.jobs()[held].is_held
        cluster.run("scontrol", "release", str(held))
        assert not port.jobs()[held].is_held


def test_a_reason_that_the_scheduler_changed_is_seen_also_where_slurm_says_that_nothing_changed(
    clusters: Clusters, slurm_root: Path
) -> None:
    cluster = clusters.of(slurm_root)
    for job in [cluster.sbatch("--exclusive") for _ in cluster.nodes]:
        cluster.wait_job(job, "RUNNING")
    waits = JobId(cluster.sbatch("--exclusive", "--begin=now+6"))
    with closing(library_of(cluster)) as library:
        port = CommandLineSlurm(conf=cluster.env["SLURM_CONF"], library=library)
        told = set[str]()
        shown = ""
        deadline = time.monotonic() + FACT_S
        while shown not in ("Resources", "Priority"):
            assert time.monotonic() < deadline
            told.add(port.jobs()[waits].reason)
            time.sleep(1.0)
            shown = cluster.run("squeue", "-h", "-j", str(waits), "-o", "%r").strip()
        assert "BeginTime" in told
        assert port.jobs()[waits].reason == shown
