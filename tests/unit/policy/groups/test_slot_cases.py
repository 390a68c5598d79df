"""Slots beside repairs, and instances beside slots."""

from dataclasses import replace
from typing import Any

from steward.model.action import CheckNow, ForgetNode, LaunchInstance, TerminateInstance
from steward.model.agent_action import SetUpNode
from steward.model.case import Case, CaseStep, Trigger
from steward.model.group import ClusterStatus, Goal, GroupStatus
from steward.model.health import Advice, Incarnation
from steward.model.ids import BootId, CaseId, InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.node import Node, NodeBase, Reason
from steward.model.setup import SetupState
from steward.model.slot import Purpose, SlotStep
from steward.model.why import Why
from tests.builders.capacity import (
    LOGICAL,
    NODE,
    SCRIPTS,
    a_slot_at,
    asked,
    nothing_there,
    reported,
    slot,
    with_group,
    with_slot,
)
from tests.builders.picture import T0, Picture, action_types, n

ORPHAN = Instance(id=InstanceId("i-9"), node=n("workers-9"), state=InstanceState.RUNNING, token="abcdef012345-9-0")


def repaired(picture: Picture, step: CaseStep, *, rung: Advice = Advice.REPLACE) -> Picture:
    case = Case(
        id=CaseId("c1-0"),
        node=n(NODE),
        trigger=Trigger.FATAL,
        check="gpu",
        step=step,
        entered=T0 - 5,
        opened=T0 - 50,
        why=Why(rule="node.fatal", text="check gpu failed"),
        rung=rung,
        old=Incarnation(instance=InstanceId("i-0"), boot=BootId("b-0")),
        old_slurmd=T0 - 900,
        new_instance=InstanceId("i-1"),
        marked=T0 - 40,
    )
    held = picture.down(NODE, "steward:gpu:replace:c1-0")
    machines = {InstanceId("i-1"): replace(picture.seen.instances[InstanceId("i-1")], token=case.token)}
    return replace(held, memory=replace(held.memory, cases={case.id: case})).see(instances=machines)


def cases(picture: Picture) -> list[CaseStep]:
    return [case.step for case in picture.plan().memory.cases.values()]


def kinds(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def test_a_node_that_serves_is_repaired() -> None:
    assert cases(a_slot_at(SlotStep.SERVING).failing(NODE)) == [CaseStep.DRAIN]


def test_a_node_on_its_way_in_or_out_is_no_repairs_business() -> None:
    for step in (SlotStep.PROVISION, SlotStep.SETUP, SlotStep.VERIFY, SlotStep.DRAIN, SlotStep.END):
        assert cases(with_slot(a_slot_at(step).failing(NODE), purpose=Purpose.LEAVE)) == []


def test_without_recovery_a_fault_is_only_told() -> None:
    picture = a_slot_at(SlotStep.SERVING).failing(NODE)
    assert picture.memory.cluster is not None
    off = replace(picture, memory=replace(picture.memory, cluster=replace(picture.memory.cluster, recovery=False)))
    assert cases(off) == []
    assert "case.withheld" in kinds(off)


def test_without_recovery_a_persons_command_is_still_carried_out() -> None:
    picture = a_slot_at(SlotStep.SERVING).drained(NODE, "Action:Replace", flag="FAIL")
    assert picture.memory.cluster is not None
    off = replace(picture, memory=replace(picture.memory, cluster=replace(picture.memory.cluster, recovery=False)))
    assert cases(off) != []


def test_a_repair_launches_what_the_group_is_made_of() -> None:
    picture = repaired(a_slot_at(SlotStep.SERVING), CaseStep.LAUNCH).see(instances={}, agents={})
    launch = next(a for a in picture.plan().actions if isinstance(a, LaunchInstance))
    assert launch.case == "c1-0"
    assert launch.slot.types == ("ml.g5.xlarge",)
    assert launch.slot.features == {"workers"}


def test_a_repair_runs_the_scripts_before_it_asks_for_checks() -> None:
    picture = with_group(repaired(a_slot_at(SlotStep.SERVING), CaseStep.VERIFY), lifecycle=SCRIPTS)
    assert action_types(picture.plan()) == [SetUpNode]
    done = reported(picture, "c1-0-0-0", SetupState.SUCCEEDED)
    assert action_types(done.plan()) == [CheckNow]
    assert cases(reported(picture, "c1-0-0-0", SetupState.FAILED)) == [CaseStep.LAUNCH]


def test_a_reboot_runs_no_scripts() -> None:
    picture = with_group(repaired(a_slot_at(SlotStep.SERVING), CaseStep.VERIFY, rung=Advice.REBOOT), lifecycle=SCRIPTS)
    assert SetUpNode not in action_types(picture.plan())


def test_a_slot_keeps_the_machine_that_a_repair_made() -> None:
    picture = with_slot(repaired(a_slot_at(SlotStep.SERVING), CaseStep.RETURN), instance=InstanceId("i-0"))
    assert slot(picture.then(), NODE).instance == "i-1"
    assert slot(picture.then(), NODE).step is SlotStep.SERVING


def test_a_slot_that_leaves_ends_its_nodes_repair_and_the_machine_that_was_made_for_it() -> None:
    picture = with_slot(repaired(a_slot_at(SlotStep.SERVING), CaseStep.VERIFY), purpose=Purpose.LEAVE)
    left = with_group(picture, goal=Goal(target=0), good=Goal(target=0)).then(1)
    assert cases(left) == [CaseStep.CLOSED]
    ended = left.down(NODE, "steward:scale:leave:abcdef012345").then()
    assert slot(ended, NODE).step is SlotStep.END
    assert TerminateInstance in action_types(left.down(NODE, "steward:scale:leave:abcdef012345").plan())


def test_a_list_that_misses_a_machine_whose_agent_speaks_takes_nothing_from_a_group() -> None:
    picture = a_slot_at(SlotStep.SERVING).see(instances={})
    assert slot(picture.then(60).then(60).then(), NODE).step is SlotStep.SERVING


def test_a_machine_is_missed_after_two_lists_without_it() -> None:
    picture = a_slot_at(SlotStep.SERVING).see(instances={}, agents={}).then(0.5)
    assert slot(picture, NODE).step is SlotStep.SERVING
    assert slot(picture.then(0.5).then(), NODE).step is not SlotStep.SERVING


def test_a_machine_of_ours_without_a_slot_is_ended_after_a_minute() -> None:
    picture = a_slot_at(SlotStep.SERVING)
    with_orphan = picture.see(instances={**picture.seen.instances, ORPHAN.id: ORPHAN})
    assert with_orphan.plan().actions == ()
    assert with_orphan.then(59).plan().actions == ()
    ends = with_orphan.then(60).plan().actions
    assert [a.instance for a in ends if isinstance(a, TerminateInstance)] == ["i-9"]


def ended_cluster() -> Picture:
    """The last slot's launch is under way, and has been for a while, when its cluster is deleted."""
    launched = T0 - 100
    picture = with_slot(nothing_there(a_slot_at(SlotStep.LAUNCH)), instance=None, launched=launched)
    picture = asked(picture, f"launch:{LOGICAL}-0:{launched:.3f}", ago_s=50)
    picture = with_group(picture, status=GroupStatus.DELETING, goal=Goal(target=0))
    assert picture.memory.cluster is not None
    cluster = replace(picture.memory.cluster, status=ClusterStatus.DELETING)
    picture = replace(picture, memory=replace(picture.memory, cluster=cluster)).then(5).then(15).then(5)
    assert picture.memory.cluster is None
    return picture


def late(picture: Picture, node: str = NODE) -> Picture:
    """The machine that was asked for is there after all."""
    made = Instance(id=InstanceId("i-7"), node=n(node), state=InstanceState.RUNNING, token=f"{LOGICAL}-0")
    return picture.see(instances={made.id: made})


def terminated(picture: Picture) -> list[str]:
    return [action.instance for action in picture.plan().actions if isinstance(action, TerminateInstance)]


def test_a_machine_that_comes_after_its_cluster_ended_is_ended_after_a_minute_and_told() -> None:
    came = late(ended_cluster().then(1800)).then(59)
    assert terminated(came) == []
    assert terminated(came.then(1)) == ["i-7"]
    assert "instance.orphan" in kinds(came.then(1))


def forgotten(picture: Picture) -> list[str]:
    return [action.node for action in picture.plan().actions if isinstance(action, ForgetNode)]


def left_in_slurm(**shown: Any) -> Picture:
    """The late machine registered itself before it was ended, a minute ago."""
    came = late(ended_cluster().then(1800)).then(60)
    fields = {"base": NodeBase.IDLE, "flags": frozenset({"DYNAMIC_NORM"}), "slurmd_started": came.now - 30, **shown}
    there = came.see(nodes={n(NODE): Node(name=n(NODE), **fields)})
    assert terminated(there) == ["i-7"]
    ends = there.then(1)
    assert forgotten(ends) == []
    gone = ends.see(instances={}).then(58)
    assert forgotten(gone) == []
    return gone.then(1)


def test_slurm_forgets_the_dynamic_node_of_a_machine_that_came_late_and_was_ended() -> None:
    left = left_in_slurm()
    assert forgotten(left) == [NODE]
    assert left.memory.nodes[n(NODE)].left_at is not None
    done = left.then(1).see(nodes={}).then(60)
    assert done.then(1).memory.nodes == {}


def test_not_so_a_node_of_slurm_conf_or_one_that_is_used_or_that_came_since() -> None:
    assert forgotten(left_in_slurm(flags=frozenset())) == []
    left = left_in_slurm()
    assert forgotten(left.node(NODE, base=NodeBase.ALLOCATED)) == []
    assert forgotten(left.node(NODE, slurmd_started=left.now)) == []
    drained = frozenset({"DYNAMIC_NORM", "DRAIN"})
    assert forgotten(left.node(NODE, reason=Reason(text="mine"), flags=drained)) == []
    assert forgotten(left.see(instances=late(left).seen.instances)) == []
    paused = replace(left, memory=replace(left.memory, paused=True))
    assert forgotten(paused) == []


def test_such_a_machine_is_let_be_once_another_clusters_slot_or_a_job_has_it() -> None:
    came = late(ended_cluster())
    busy = came.see(nodes={n(NODE): Node(name=n(NODE), base=NodeBase.ALLOCATED)})
    assert terminated(busy.then(60).then(60)) == []
    taken = a_slot_at(SlotStep.SERVING, slot={"instance": InstanceId("i-7")})
    assert taken.memory.cluster is not None
    other = replace(taken.memory.cluster, id="another00000")
    later = replace(taken, memory=replace(taken.memory, cluster=other, ended=came.memory.ended))
    assert terminated(late(later).then(60).then(60)) == []


def test_a_machine_of_an_ended_cluster_whose_name_another_slots_machine_has_is_ended() -> None:
    taken = a_slot_at(SlotStep.SERVING)
    assert taken.memory.cluster is not None
    other = replace(taken.memory.cluster, id="another00000")
    ended = ended_cluster().memory.ended
    later = replace(taken, memory=replace(taken.memory, cluster=other, ended=ended))
    made = Instance(id=InstanceId("i-7"), node=n(NODE), state=InstanceState.RUNNING, token=f"{LOGICAL}-7")
    seen = later.see(instances={**later.seen.instances, made.id: made})
    assert terminated(seen.then(60)) == ["i-7"]


def test_so_is_one_that_a_repair_asked_for_whose_slot_is_gone() -> None:
    repair = repaired(a_slot_at(SlotStep.END), CaseStep.CLOSED).memory.cases
    leaving = with_slot(nothing_there(a_slot_at(SlotStep.END)), purpose=Purpose.LEAVE)
    small = with_group(leaving, goal=Goal(target=0), good=Goal(target=0))
    gone = replace(small, memory=replace(small.memory, cases=repair)).then(60).then(60)
    assert not gone.memory.slots
    made = Instance(id=InstanceId("i-7"), node=n(NODE), state=InstanceState.RUNNING, token="c1-0-1")
    came = gone.see(instances={made.id: made}).then(59)
    assert terminated(came) == []
    assert terminated(came.then(1)) == ["i-7"]


def test_a_machine_of_somebody_else_is_never_ended() -> None:
    picture = a_slot_at(SlotStep.SERVING)
    for token in ("", "other-1-0", "abcdef01234-1-0"):
        foreign = replace(ORPHAN, token=token)
        seen = picture.see(instances={**picture.seen.instances, foreign.id: foreign})
        assert seen.then(100).plan().actions == ()
