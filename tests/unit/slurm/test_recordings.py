"""One story played on three Slurms reads the same from each one's recorded answers (tests/recordings/take.py)."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from steward.adapters.process import Completed, Failed
from steward.adapters.slurm import record_form, records, versions
from steward.adapters.slurm.commands import meaning
from steward.adapters.slurm.record_form import JOB, NODE, RecordForm
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.ports import Permanent, PortError, Stale

RECORDINGS = sorted(
    path for path in (Path(__file__).parents[2] / "recordings").iterdir() if (path / "jobs.stdout").exists()
)
HOSTILE = "x JobState=FAILED UserId=root(0)\nJobId=77 JobState=FAILED"


def answer(folder: Path, name: str) -> str:
    return (folder / f"{name}.stdout").read_bytes().decode("utf-8", "replace")


@pytest.fixture(params=RECORDINGS, ids=lambda folder: folder.name)
def recording(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


def lines(recording: Path, kind: str, form: RecordForm) -> Sequence[str]:
    told = record_form.split_answer((recording / f"{kind}.stdout").read_bytes(), kind, form)
    assert told is not None
    return told.lines or ()


@pytest.fixture
def jobs(recording: Path) -> dict[JobId, Job]:
    return {job.id: job for job in map(records.job_of, lines(recording, "jobs", JOB))}


@pytest.fixture
def nodes(recording: Path) -> dict[NodeName, Node]:
    return {node.name: node for node in map(records.node_of, lines(recording, "nodes", NODE))}


def test_there_are_recordings_of_three_slurms() -> None:
    assert [folder.name[:5] for folder in RECORDINGS] == ["22.05", "24.11", "26.05"]


def test_every_node_and_every_job_is_read_and_nothing_else(nodes: dict[NodeName, Node], jobs: dict[JobId, Job]) -> None:
    assert set(nodes) == {f"n{number}" for number in range(1, 9)}
    assert set(jobs) == set(range(1, 15))


def test_the_version_is_read(recording: Path) -> None:
    assert versions.parse(answer(recording, "version")).text == recording.name


def test_nodes_out_of_service_are_read_with_state_and_owner(nodes: dict[NodeName, Node]) -> None:
    def seen(name: str) -> tuple[NodeBase, bool, str]:
        node = nodes[NodeName(name)]
        return node.base, node.is_drain, node.reason.text if node.reason else ""

    assert seen("n1") == (NodeBase.MIXED, False, "")
    assert seen("n2") == (NodeBase.MIXED, True, "steward:xid:drain:c1")
    assert seen("n3") == (NodeBase.DOWN, True, "steward:lost:down:c2")
    assert seen("n4") == (NodeBase.IDLE, True, "Action:Replace")
    assert seen("n5") == (NodeBase.IDLE, True, "x State=IDLE [root@2020-01-01] NodeName=n9")
    assert seen("n6") == (NodeBase.DOWN, False, "Not responding")
    assert [name for name, node in nodes.items() if node.is_ours] == ["n2", "n3"]
    assert [name for name, node in nodes.items() if node.is_foreign] == ["n4", "n5"]


def test_a_node_that_was_resumed_has_no_reason_any_more(nodes: dict[NodeName, Node]) -> None:
    assert nodes[NodeName("n7")].is_schedulable
    assert nodes[NodeName("n7")].reason is None


def test_a_node_is_read_with_what_it_has(nodes: dict[NodeName, Node]) -> None:
    node = nodes[NodeName("n1")]

    assert (node.cpus, node.memory_mb, node.gres, node.features) == (4, 500, "gpu:8", frozenset({"a", "b"}))
    assert (node.address, node.partitions, node.responding) == ("127.0.0.1", frozenset({"main"}), True)
    assert node.port > 1024
    assert node.slurmd_started is not None


def test_hostile_names_are_names(jobs: dict[JobId, Job]) -> None:
    assert jobs[JobId(1)].name == HOSTILE
    assert jobs[JobId(9)].name == "bad \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} utf-8"
    assert (jobs[JobId(1)].state, jobs[JobId(9)].state) == (JobState.RUNNING, JobState.RUNNING)


def test_a_running_job_is_read_with_where_it_runs_and_where_not(jobs: dict[JobId, Job]) -> None:
    job = jobs[JobId(1)]

    assert (job.nodes, job.batch_host, job.excluded) == (frozenset({"n1"}), "n1", frozenset({"n3", "n4"}))
    assert (job.user_id, job.restarts, job.requeue, job.is_batch, job.ended) == (0, 0, True, True, None)
    assert not jobs[JobId(2)].requeue


def test_ended_jobs_are_read_with_their_wait_status(jobs: dict[JobId, Job]) -> None:
    ends = {number: (jobs[JobId(number)].state, jobs[JobId(number)].exit_status) for number in (3, 4, 5)}
    by_the_shell = ends[5][1] == (128 + 15) << 8  # its child was the first to end

    assert ends == {
        3: (JobState.FAILED, 3 << 8),
        4: (JobState.FAILED, 11),
        5: (JobState.CANCELLED, (128 + 15) << 8 if by_the_shell else 15),
    }
    assert all(jobs[JobId(number)].ended for number in ends)


def test_waiting_jobs_are_read_with_why_they_wait(jobs: dict[JobId, Job]) -> None:
    waits = {number: (jobs[JobId(number)].reason, jobs[JobId(number)].restarts) for number in (6, 7, 8)}

    assert waits == {6: ("JobHeldUser", 0), 7: ("job requeued in held state", 1), 8: ("BeginTime", 1)}
    assert all(jobs[JobId(number)].is_pending for number in waits)


def test_array_tasks_and_their_pending_rest_are_told_apart(jobs: dict[JobId, Job]) -> None:
    task, rest = jobs[JobId(11)], jobs[JobId(10)]

    assert (task.array_job_id, task.array_task, task.is_active) == (10, 0, True)
    assert (rest.array_job_id, rest.array_task, rest.is_pending) == (10, None, True)
    assert jobs[JobId(1)].array_job_id is None


def test_parts_of_a_heterogeneous_job_name_their_leader(jobs: dict[JobId, Job]) -> None:
    assert [job.id for job in jobs.values() if job.het_job_id == 12] == [12, 13]


def test_a_job_that_cleans_up_says_so_and_what_it_was(jobs: dict[JobId, Job]) -> None:
    assert jobs[JobId(14)].is_completing
    assert jobs[JobId(14)].state is JobState.CANCELLED


@pytest.mark.parametrize("kind", ["nodes", "jobs"])
def test_without_a_controller_nothing_is_told(recording: Path, kind: str) -> None:
    assert (recording / f"{kind}-no-controller.stdout").read_bytes().startswith(b"no ")


MEANING: dict[str, type[PortError]] = {
    "requeue 999999": Stale,
    "requeue 6": Stale,
    "requeue 2": Permanent,
    "update jobid=1 excnodelist=n2": Stale,
    "update jobid=999999 starttime=now": Stale,
    "update nodename=n1 state=resume": Stale,
    "update nodename=n1,n99 state=drain reason=x": Stale,
    "update nodename=n1 state=drain": Permanent,
    "update nodename=n1 state=dance reason=x": Permanent,
    "requeue 1 (as nobody)": Permanent,
}


@pytest.mark.parametrize("words", MEANING)
def test_a_refusal_is_understood(recording: Path, words: str) -> None:
    refusals = json.loads((recording / "refusals.json").read_text())
    told = next(told for told in refusals if " ".join(told["argv"][1:]) == words)
    done = Completed(
        argv=tuple(told["argv"]),
        returncode=told["returncode"],
        stdout=told["stdout"].encode(),
        stderr=told["stderr"].encode(),
        seconds=0.0,
    )

    assert meaning(Failed(done.line(), done)) is MEANING[words]
