"""Whose a drained node is: only a dynamic node that registered itself drained, with no reason at all, is nobody's."""

from dataclasses import replace

import pytest

from steward.adapters.slurm import rules
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase, Reason
from steward.ports import Stale

N = NodeName("w-1")


def a_node(*flags: str, reason: str = "", base: NodeBase = NodeBase.IDLE) -> Node:
    return Node(name=N, base=base, flags=frozenset(flags), reason=Reason(text=reason) if reason else None)


def test_a_dynamic_node_that_came_drained_may_be_marked() -> None:
    rules.may_take_out({N: a_node("DRAIN", "DYNAMIC_NORM")}, [N])
    rules.may_take_out({N: a_node("DRAIN", "DYNAMIC_NORM", "NOT_RESPONDING", base=NodeBase.DOWN)}, [N])


@pytest.mark.parametrize(
    "node",
    [
        a_node("DRAIN"),
        a_node("FAIL", "DYNAMIC_NORM"),
        a_node("DRAIN", "DYNAMIC_NORM", reason="disk swap"),
        a_node("DRAIN", "DYNAMIC_FUTURE"),
    ],
    ids=["in slurm.conf", "failing", "with a reason", "of slurm.conf after all"],
)
def test_every_other_drain_is_somebodys(node: Node) -> None:
    with pytest.raises(Stale):
        rules.may_take_out({N: node}, [N])


def test_a_drain_that_lost_its_reason_is_ours_on_a_node_that_bore_our_mark() -> None:
    rules.may_take_out({N: a_node("DRAIN")}, [N], [N])
    for node in (a_node("DRAIN", reason="disk swap"), a_node("FAIL")):
        with pytest.raises(Stale):
            rules.may_take_out({N: node}, [N], [N])


@pytest.mark.parametrize("node", [a_node(), a_node("DYNAMIC_FUTURE"), a_node("DRAIN")])
def test_a_node_of_slurm_conf_is_never_forgotten(node: Node) -> None:
    assert rules.may_forget({N: node}, [N, NodeName("n99")]) == ([], [])


def test_a_dynamic_node_is_forgotten_unless_jobs_are_on_it() -> None:
    assert rules.may_forget({N: a_node("DYNAMIC_NORM")}, [N]) == ([N], [])
    assert rules.may_forget({N: a_node("DYNAMIC_NORM", base=NodeBase.MIXED)}, [N]) == ([], [N])


def test_an_array_task_is_named_as_squeue_names_it() -> None:
    task = Job(id=JobId(315), name="x", state=JobState.RUNNING, user_id=7, array_job_id=JobId(313), array_task=1)
    with pytest.raises(Stale, match=r"^job 313_1 was restarted"):
        rules.is_the_run(task, 4)
    with pytest.raises(Stale, match=r"^job 313_1 is pending"):
        rules.may_requeue(replace(task, state=JobState.PENDING))
