"""A run is requeued only when Slurm has its dead nodes DOWN: else old Slurms never tidy up the requeued job."""

from dataclasses import replace

import pytest

from steward.model.action import AllowRequeue, DownNode, RequeueJob
from steward.model.agent_action import Action
from steward.model.ask import AskKind
from steward.model.ids import JobId
from steward.policy.controls import pause
from steward.policy.facts.dying import DYING_S, LEAVING_S
from tests.builders.picture import Picture, a_cluster, names
from tests.unit.policy.job.test_late_evidence import reclaimed

J = JobId(7)


def acts(picture: Picture) -> list[type[Action]]:
    return [type(a) for a in picture.plan().actions if isinstance(a, DownNode | RequeueJob | AllowRequeue)]


def with_gpus(picture: Picture, gres: str = "gpu:8") -> Picture:
    for name in picture.seen.nodes:
        picture = picture.node(name, gres=gres)
    return picture


def stopped() -> Picture:
    """n2's host was shut down in good order: its agent said so, and the script ended by that at once."""
    picture = with_gpus(a_cluster()).job().opted_in().then().agent_lost("n2", ago_s=0.1)
    return picture.agent("n2", host_ends=True).ask(AskKind.BATCH)


def test_a_script_that_its_host_ended_is_requeued_by_the_down_of_that_host() -> None:
    ended = stopped()
    assert acts(ended) == []
    assert ended.plan().memory.jobs[J].promised is not None, "the ruling does not wait"
    found = ended.then(0.3).lost("n2").agent("n2", host_ends=True)
    assert acts(found) == [DownNode]
    back = found.then().marked("n2").requeued().then(1.1)
    assert acts(back) == []
    mem = back.plan().memory.jobs[J]
    assert (mem.resumes, [a.why.rule for a in mem.attempts]) == (1, ["resume.requeue"])


def test_a_job_that_goes_on_without_its_dead_node_is_requeued_once_slurm_has_it_down() -> None:
    """`--no-kill`: DOWN requeues nothing."""
    found = stopped().then(0.3).lost("n2").agent("n2", host_ends=True).then().marked("n2")
    without = found.change_job(nodes=names("n1", "n3"))
    assert acts(without) == [RequeueJob]


@pytest.mark.parametrize("again", ["heard", "slow"])
def test_a_node_that_is_heard_again_or_silent_for_long_is_not_waited_for(again: str) -> None:
    ended = stopped().then(0.3)
    assert acts(ended) == []
    later = ended.heard("n2").agent("n2", host_ends=False) if again == "heard" else ended.after(DYING_S)
    assert acts(later) == [RequeueJob]


def test_a_paused_head_waits_for_slurms_own_down() -> None:
    ended = stopped()
    paused = replace(ended, memory=pause(ended.memory)).lost("n2").then(1)
    assert acts(paused) == []
    assert acts(paused.down("n2", "Not responding")) == [RequeueJob]


def test_a_head_that_has_just_started_waits_for_the_agents_of_the_run() -> None:
    """The one before it had decided, and waited for DOWN."""
    ended = stopped().then(0.3)
    views = {name: view for name, view in ended.seen.agents.items() if name != "n2"}
    new = ended.see(agents=views, agents_since=ended.now).ask(AskKind.BATCH)
    assert acts(new) == []
    assert acts(new.then(new.want.repair.agents_grace_s / 2)) == []


def test_a_part_on_a_dying_node_is_waited_for_too() -> None:
    leader = JobId(7)
    both = with_gpus(a_cluster()).job(7, on=("n1",), het_job_id=leader).job(8, on=("n3",), het_job_id=leader)
    hurt = both.opted_in(7).then().lost("n1").then().marked("n1").requeued(7)
    assert RequeueJob in acts(hurt)
    dying = hurt.agent_lost("n3", ago_s=0.1)
    assert acts(dying) == []
    assert acts(dying.after(DYING_S)) == [RequeueJob]


def test_a_job_on_nodes_without_gres_waits_as_well() -> None:
    """Of an exclusive one Slurm 22.05 keeps the GRES of its last run's node, and no node without has those."""
    assert acts(with_gpus(stopped(), gres="")) == []


def test_a_script_that_ends_because_its_machine_is_taken_away_is_given_a_moment_to_be_requeued_by_down() -> None:
    """The provider's warning comes minutes before, and a machine that ends its jobs is gone within a second."""
    ended = reclaimed(a_cluster().job().opted_in().then(), "n2").then(30).ask(AskKind.BATCH).then(0.1)
    assert acts(ended) == []
    assert acts(ended.lost("n2")) == [DownNode]
    assert acts(ended.after(LEAVING_S)) == [RequeueJob]


def test_a_job_without_requeue_is_allowed_one_before_down() -> None:
    ended = stopped()
    unallowed = ended.change_job(requeue=False)
    assert acts(unallowed) == [AllowRequeue]
