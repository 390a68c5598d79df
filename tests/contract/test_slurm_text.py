"""Real Slurm's text is read as what its library tells, and what did not change is the same object from look to look."""

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from steward.adapters.slurm import records, text_jobs, text_nodes
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.text_nodes import Odd
from steward.model.fit import Question
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.mark import Mark
from steward.model.node import Node
from tests.contract.cluster import running
from tests.contract.conftest import Clusters, beside, library_of, wrappers
from tests.contract.installed import version
from tests.contract.slurm_worlds import RealWorld

MARK = Mark(check="xid", action="drain", id="c1")
N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")


@pytest.fixture
def world(slurm_root: Path, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealWorld:
    cluster = clusters.of(slurm_root)
    if slurm_root != Path("/"):
        monkeypatch.setenv("PATH", f"{wrappers(tmp_path, slurm_root)}:/usr/sbin:/usr/bin:/sbin:/bin")
    return RealWorld(cluster=cluster, port=CommandLineSlurm(conf=cluster.env["SLURM_CONF"]))


def told_by_library(world: RealWorld) -> tuple[dict[NodeName, Node], dict[JobId, Job]]:
    """What the library alone tells, by a reader that never saw them before."""
    with closing(library_of(world.cluster)) as library:
        nodes, jobs = library.nodes(), library.jobs()
        assert nodes is not None
        assert jobs is not None
        return (
            {each.name: each for each in map(records.node_of, nodes.lines or ())},
            {each.id: each for each in map(records.job_of, jobs.lines or ())},
        )


def different(one: Job | Node, other: Job | Node) -> list[str]:
    return [f"{each.name}: {getattr(one, each.name)!r} {getattr(other, each.name)!r}" for each in fields(one)
            if getattr(one, each.name) != getattr(other, each.name)]  # fmt: skip


def test_nodes_are_the_same_as_text_and_through_the_library(world: RealWorld) -> None:
    world.port.drain(dict.fromkeys([N1], MARK))
    world.port.down(dict.fromkeys([N2], MARK))
    world.running(world.submit(on="n3"))
    wanted, found = told_by_library(world)[0], world.port.nodes()

    assert found.keys() == wanted.keys()
    assert {name: different(found[name], wanted[name]) for name in wanted if found[name] != wanted[name]} == {}


def test_of_a_job_that_waits_for_another_run_it_is_told_how_many_nodes_it_asks_for(world: RealWorld) -> None:
    """Slurm shows as many as its last run had, and no range."""
    job = JobId(world.cluster.sbatch("-N1-3", "--exclusive", script="sleep 300"))
    assert super(RealWorld, world).running(job).nodes == {N1, N2, N3}
    world.hold_after_requeue(job)
    world.wait("it waits", lambda: world.job(job).is_pending and not world.job(job).is_completing)
    world.running(world.submit(on="n1"))

    for each in (world.job(job), told_by_library(world)[1][job]):
        assert (each.node_count, each.most_nodes) == (1, 3)
    with closing(FitAsker(conf=world.cluster.env["SLURM_CONF"], argv=beside(world.cluster))) as asker:
        assert asker.ask(Question(job=job)).starts


def test_jobs_are_the_same_as_text_and_through_the_library(world: RealWorld) -> None:
    """Of each kind one. What one that runs had asked for is known from when it waited."""
    run, submit = world.cluster.run, world.cluster.sbatch
    submit("-H", "--array=0-5,9", "--nice=-5", "-N1-2", "--time=1-02:03:00")
    submit("-H", "-x", "n1,n3", "--comment", "a\nb", "--no-requeue", "-J", "x |\n7|7")
    world.cluster.run("sbatch", "-H", "-n1", ":", "-n2", "--wrap", "true")
    array = submit("-H", "--array=1-3", script="sleep 100")
    held, never = world.submit(name="held", on="n1"), world.submit(hold=True)
    world.cancel(never)
    world.wait("it is over, and never ran", lambda: world.job(never).is_over)
    commented, ended = world.submit(on="n2"), world.submit(on="n3")
    waits = world.submit(on="n3")
    world.port.jobs()
    world.running(commented)
    run("scontrol", "update", f"jobid={commented}", "admincomment=said\nJobId=3|")
    world.running(held)
    run("scontrol", "requeuehold", str(held))
    world.pending(held)
    world.running(ended)
    world.finish(ended, 3 << 8)
    world.wait("the next one runs", lambda: world.job(waits).is_active)
    world.cancel(waits)
    world.wait("it is gone", lambda: world.job(waits).is_over)
    run("scontrol", "release", f"{array}_2")
    world.wait(
        "its task runs",
        lambda: (array, 2) in {(j.array_job_id, j.array_task) for j in world.port.jobs().values() if j.is_active},
    )
    world.wait("none is on its way out", lambda: not any(j.is_completing for j in world.port.jobs().values()))
    wanted, found = told_by_library(world)[1], dict(world.port.jobs())
    is_told = version(world.cluster.root) < "22.06"  # and then of a job that waits, or that was seen to wait
    for id, job in wanted.items():
        if not is_told or not job.is_pending:
            found[id] = replace(found[id], requested=job.requested)
        if (
            job.is_total and not job.most_nodes
        ):  # squeue shows the nodes that it has, or asks for, where it may have any
            found[id] = replace(found[id], most_nodes=0)

    assert found.keys() == wanted.keys()
    assert {id: different(found[id], wanted[id]) for id in wanted if found[id] != wanted[id]} == {}


def test_tasks_that_wait_again_are_told_of_one_by_one(world: RealWorld) -> None:
    """squeue shows them as one line."""
    tasks = world.submit_array(2)
    world.hold_after_requeue(world.job(tasks[1]).array_job_id or tasks[1])
    for job in tasks.values():
        world.pending(job)

    found = world.port.jobs()
    assert {found[job].array_task: job for job in tasks.values()} == tasks
    wanted = told_by_library(world)[1]
    assert [different(found[job], wanted[job]) for job in tasks.values()] == [[], []]


def test_an_array_whose_tasks_were_cancelled_one_by_one_is_the_same_as_text_and_through_the_library(
    world: RealWorld,
) -> None:
    """Slurm keeps its record, which stands for no task any more."""
    array = world.cluster.sbatch("-H", "--array=1-2")
    for task in (1, 2):
        world.cluster.run("scancel", f"{array}_{task}")
    world.wait("it is over", lambda: world.job(JobId(array)).is_over)

    found, wanted = world.port.jobs()[JobId(array)], told_by_library(world)[1][JobId(array)]
    assert different(found, wanted) == []
    assert (wanted.array_job_id, wanted.array_task, wanted.waiting_tasks) == (None, None, 1)


def test_what_did_not_change_is_the_same_object(world: RealWorld) -> None:
    job, other = world.running(world.submit(on="n1")).id, world.submit(hold=True)
    nodes, jobs = world.port.nodes(), world.port.jobs()
    world.comment_by_admin(other, "seen")

    again = world.port.jobs()
    assert again[job] is jobs[job]
    assert again[other] is not jobs[other]
    assert world.port.jobs([job])[job] is jobs[job]
    assert all(world.port.nodes()[name] is nodes[name] for name in nodes)
    assert world.port.nodes([N2])[N2] is nodes[N2]


def test_a_reason_and_a_comment_may_be_anything(world: RealWorld) -> None:
    world.admin("n1", "drain", "x State=IDLE [root@2020-01-01] NodeName=n9")
    world.cluster.run("scontrol", "update", "nodename=n1", "comment=a\nNodeName=n8")
    before = world.port.nodes()
    try:
        assert set(before) == {N1, N2, N3}
        reason = before[N1].reason
        assert reason is not None
        assert reason.text == "x State=IDLE [root@2020-01-01] NodeName=n9"
        assert world.port.nodes([N1]) == {N1: before[N1]}
        assert told_by_library(world)[0] == before
    finally:
        world.cluster.run("scontrol", "update", "nodename=n1", "comment=")


def test_an_odd_line_is_odd(world: RealWorld) -> None:
    with pytest.raises(Odd):
        text_nodes.key("NodeName=n1 State=IDLE", "1")
    assert text_jobs.Format().cut("") == []


_MORE = """
NodeName=x1 NodeAddr=127.0.0.1 Port=9 State=DOWN Reason=off
NodeName=x2 NodeAddr=127.0.0.1 State=DOWN
NodeName=f1 State=FUTURE CPUs=2
NodeName=c1 State=CLOUD CPUs=2
"""


def test_nodes_that_never_were_and_the_usual_port_are_told_of(
    slurm_root: Path, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters.of(slurm_root)
    if slurm_root != Path("/"):
        monkeypatch.setenv("PATH", f"{wrappers(tmp_path, slurm_root)}:/usr/sbin:/usr/bin:/sbin:/bin")
    with running(("n1",), slurm_root, _MORE) as made:
        port = CommandLineSlurm(conf=made.env["SLURM_CONF"])
        wanted = told_by_library(RealWorld(cluster=made, port=port))[0]

        assert port.nodes() == wanted
        assert port.nodes([NodeName("x1"), NodeName("x2")]) == {
            name: wanted[name] for name in (NodeName("x1"), NodeName("x2"))
        }
        assert wanted[NodeName("x2")].port == made.dynamic_port
        assert port.nodes()[NodeName("x2")].port == made.dynamic_port
