"""What a record of Slurm means, whatever stands in it."""

import pytest

from steward.adapters.slurm import records
from steward.model.job import JobState
from steward.model.node import NodeBase
from tests.fakes.reader_lines import job_line, node_line


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1,", {"n1"}),
        ("n1,,n2", {"n1", "n2"}),
        ("n1 n2", {"n1", "n2"}),
        ("n1\nn2,\tn3", {"n1", "n2", "n3"}),
        ("n[1-]", {"n1"}),
        (",", set()),
        (" ", set()),
        ("n[", set()),
        ("n1;n2", set()),
        ("n[1-99999999]", set()),
        ("\udcff", set()),
    ],
)
def test_a_list_that_a_user_typed_costs_that_field_at_most(text: str, names: set[str]) -> None:
    job = records.job_of(job_line(excluded=text, required=text))
    assert job.excluded == job.required == names


@pytest.mark.parametrize(
    ("described", "names"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2],n9", {"n1", "n2", "n9"}),
        ("ReqNodeNotAvail,_UnavailableNodes:n_1", {"n_1"}),
        ("ReqNodeNotAvail, Reserved for maintenance", set()),
        ("ReqNodeNotAvail, UnavailableNodes:n[", set()),
        ("", set()),
    ],
)
def test_the_nodes_that_slurm_calls_not_available(described: str, names: set[str]) -> None:
    assert records.job_of(job_line(reason="ReqNodeNotAvail", described=described)).unavailable == names


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ("ReqNodeNotAvail, May be reserved for other job", "Resources"),
        ("ReqNodeNotAvail,_May_be_reserved_for_other_job", "Resources"),
        ("ReqNodeNotAvail, UnavailableNodes:n2", "ReqNodeNotAvail"),
        ("ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail"),
        ("", "ReqNodeNotAvail"),
    ],
)
def test_a_job_whose_required_nodes_are_in_use_waits_for_resources(described: str, reason: str) -> None:
    """None of them is out: others have them, or Slurm keeps them for a job that comes first."""
    assert records.job_of(job_line(reason="ReqNodeNotAvail", described=described)).reason == reason


@pytest.mark.parametrize(("limit", "seconds"), [("90", 5400.0), ("", None)])
def test_a_time_limit_is_seconds_or_none(limit: str, seconds: float | None) -> None:
    assert records.job_of(job_line(limit_minutes=limit)).time_limit_s == seconds


def test_a_state_that_is_not_known_is_kept_and_called_unknown() -> None:
    node = records.node_of(node_line(state="MELTED+DRAIN+BIT_30"))
    job = records.job_of(job_line(state="DREAMING"))

    assert (node.base, node.flags) == (NodeBase.UNKNOWN, frozenset({"MELTED", "DRAIN", "BIT_30"}))
    assert (job.state, job.flags) == (JobState.UNKNOWN, frozenset({"DREAMING"}))
    assert not node.is_schedulable


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["COMPLETING"], JobState.UNKNOWN),
        (["CONFIGURING"], JobState.RUNNING),
        (["REQUEUE_HOLD"], JobState.PENDING),
        (["FAILED", "COMPLETING"], JobState.FAILED),
        (["PENDING", "REQUEUED"], JobState.PENDING),
        (["PENDING", "EXPEDITING"], JobState.PENDING),
    ],
)
def test_a_flag_does_not_become_a_state(words: list[str], state: JobState) -> None:
    found, flags = records.job_state(*words)

    assert found is state
    assert flags == set(words) - {state.value}


@pytest.mark.parametrize(("status", "kept"), [(0, 0), (768, 768), (11, 11), (139, 11), ("", 0)])
def test_an_exit_status_is_a_wait_status_without_its_core_dump(status: object, kept: int) -> None:
    assert records.job_of(job_line(exit_status=status)).exit_status == kept


def test_what_a_job_asks_for_and_has_is_read_as_slurm_writes_it() -> None:
    job = records.job_of(
        job_line(
            requested="cpu=2,gres/gpu=8",
            allocated="cpu=4,gres/gpu=8",
            most_nodes=4,
            node_sizes="1,2,4",
            comment="priority-class=high",
            expedited=1,
        )
    )
    assert (job.requested, job.allocated) == ("cpu=2,gres/gpu=8", "cpu=4,gres/gpu=8")
    assert (job.most_nodes, job.node_sizes, job.comment) == (4, "1,2,4", "priority-class=high")
    assert job.expedited


@pytest.mark.parametrize(("asked", "most"), [({"tres_per_job": "gres:gpu:2"}, 1), ({"tasks": 1}, 0)])
def test_on_how_many_nodes_a_total_may_be_is_kept(asked: dict[str, str | int], most: int) -> None:
    assert records.job_of(job_line(node_count=1, most_nodes=1, **asked)).most_nodes == most


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        ({"requested": "cpu=1,mem=1G,node=1,billing=1"}, (1, 6)),  # -N1-6
        ({"requested": "cpu=8,mem=1G,node=8,billing=8"}, (8, 0)),  # it lost two under --no-kill
        ({"requested": "cpu=6,mem=1G,node=6,billing=6"}, (6, 0)),
        ({"requested": "cpu=48,node=1,billing=48", "tasks": 48}, (6, 0)),  # -n48
        ({"requested": "cpu=8,node=1,billing=8", "tasks": 8, "tasks_per_node": 2}, (4, 6)),
        ({"requested": "cpu=8,billing=8,node=1,gres/gpu=8", "tres_per_job": "gres:gpu:8"}, (1, 6)),
        ({"requested": ""}, (6, 0)),
    ],
)
def test_of_a_job_that_waits_for_another_run_it_counts_what_it_asks_for(
    asked: dict[str, str | int], nodes: tuple[int, int]
) -> None:
    """Slurm shows the nodes of the last run: 6."""
    again = records.job_of(job_line(state="PENDING", nodes="", restarts=1, node_count=6, **asked))
    assert (again.node_count, again.most_nodes) == nodes
    first = records.job_of(job_line(state="PENDING", nodes="", restarts=0, node_count=6, **asked))
    assert first.node_count == 6


@pytest.mark.parametrize(
    ("told", "total"),
    [
        ({}, False),
        ({"tres_per_job": "gres/gpu:8"}, True),
        ({"tres_per_job": "gres:gpu:8", "tres_per_node": "gres:gpu:4"}, True),
        ({"tasks": 64}, True),
        ({"tasks": 64, "tasks_per_node": 32}, False),
        ({"tasks": 64, "tres_per_node": "gres/gpu:4"}, False),
        ({"tasks": 2, "node_count": 2}, False),
    ],
)
def test_a_job_asks_for_so_much_in_all_or_on_each_node(told: dict[str, object], total: bool) -> None:
    assert records.job_of(job_line(**told)).is_total == total


@pytest.mark.parametrize(("state", "nodes"), [("PENDING", ""), ("PENDING", "n1"), ("CANCELLED", "")])
def test_a_job_that_has_no_nodes_has_nothing_allocated_whatever_slurmctld_keeps_of_its_last_run(
    state: str, nodes: str
) -> None:
    assert records.job_of(job_line(state=state, nodes=nodes, allocated="cpu=4,billing=4")).allocated == ""


@pytest.mark.parametrize(
    ("text", "tasks", "most"),
    [
        ("", 1, 0),
        ("7", 1, 0),
        ("0-9%2", 10, 2),
        ("1,3-5,20-30:5", 7, 0),
        ("1-3,...", 3, 0),
        ("1-3,...%8", 3, 8),
        ("x-y%z", 1, 0),
    ],
)
def test_a_record_stands_for_the_tasks_of_an_array_that_wait(text: str, tasks: int, most: int) -> None:
    job = records.job_of(job_line(array_tasks=text))
    assert (job.array_tasks, job.waiting_tasks, job.most_tasks) == (text, tasks, most)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({}, "12"),
        ({"array_job_id": 7, "array_task": 2}, "7_2"),
        ({"id": 7, "array_job_id": 7, "array_tasks": "5-9%2", "state": "PENDING"}, "7_[5-9%2]"),
        ({"id": 7, "array_job_id": 7, "array_tasks": "5", "state": "PENDING"}, "7_[5]"),
        ({"id": 7, "array_job_id": 7, "array_task": 9}, "7_9"),
        ({"id": 12, "het_job_id": 12}, "12"),
        ({"id": 14, "het_job_id": 12}, "12+2"),
    ],
)
def test_a_job_is_named_as_squeue_names_it(told: dict[str, object], shown: str) -> None:
    """The last task of an array has the array's own id; the leader of a heterogeneous job stands for all of it."""
    assert records.job_of(job_line(**({"id": 12} | told))).shown_id == shown
