"""BatchReboot and BatchReplace: a node in service is repaired as on an admin's command, another one is made anew."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import DrainNode, LaunchInstance, RebootInstance, ReturnNode, TerminateInstance
from steward.model.case import Case, CaseStep, Trigger
from steward.model.group import ClusterStatus, Role
from steward.model.health import Advice, Incarnation
from steward.model.ids import BootId, CaseId, InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.node import NodeBase, Reason
from steward.model.order import NodeOutcome, NodeRefusal, NodeWish, RefusalKind
from steward.model.plan import Plan
from steward.model.setting_types import RepairMode
from steward.model.slot import Purpose, SlotStep
from steward.policy.plan import plan
from tests.builders.api_cluster import ApiPicture, a_group, a_slot, an_api_cluster
from tests.builders.orders import after, carried, refused, touching, with_pool
from tests.builders.picture import T0, n
from tests.builders.want import but

NODE = n("workers-2")


def reboot(picture: ApiPicture, node: str = NODE) -> ApiPicture:
    return after(touching(NodeWish.REBOOT, node), picture)


def replacement(picture: ApiPicture, node: str = NODE) -> ApiPicture:
    return after(touching(NodeWish.REPLACE, node), picture)


def line(wish: NodeWish, picture: ApiPicture, node: str = NODE) -> NodeOutcome:
    [only] = carried(touching(wish, node), picture).answer.nodes
    return only


def case_of(picture: ApiPicture) -> Case:
    [case] = [case for case in picture.memory.cases.values() if case.node == NODE and case.is_open]
    return case


def planned(picture: ApiPicture) -> Plan:
    return plan(picture.seen, picture.want, picture.memory, picture.seen.at)


def then(picture: ApiPicture, after_s: float = 1.0) -> ApiPicture:
    """A moment later, with the memory of what was decided."""
    return picture.remember(**_fields(planned(picture))).see(at=picture.seen.at + after_s)


def _fields(made: Plan) -> dict[str, Any]:
    return {name: getattr(made.memory, name) for name in type(made.memory).__slots__}


def asked(picture: ApiPicture, kind: type) -> list[Any]:
    return [action for action in planned(picture).actions if isinstance(action, kind)]


def drained(picture: ApiPicture) -> ApiPicture:
    [drain] = asked(picture, DrainNode)
    reason = Reason(text=str(drain.mark), user="slurm", at=picture.seen.at)
    return then(picture).node(NODE, flags=frozenset({"DRAIN"}), reason=reason)


def checked(picture: ApiPicture) -> ApiPicture:
    return picture.agent(NODE, checked_at=picture.seen.at)


@pytest.mark.parametrize(("wish", "rung"), [(NodeWish.REBOOT, Advice.REBOOT), (NodeWish.REPLACE, Advice.REPLACE)])
def test_a_node_in_service_gets_a_case_on_a_persons_command(wish: NodeWish, rung: Advice) -> None:
    case = case_of(after(touching(wish, NODE), an_api_cluster()))
    assert (case.trigger, case.rung, case.step) == (Trigger.ADMIN, rung, CaseStep.SUSPECT)
    assert case.old_instance == "box/workers-2"
    assert "ann ordered" in case.why.text


def test_a_reboot_goes_from_the_order_to_the_return() -> None:
    ordered = drained(reboot(an_api_cluster()))
    [action] = asked(ordered, RebootInstance)
    assert (action.node, action.instance) == (NODE, "box/workers-2")
    booted = Incarnation(instance=InstanceId("box/workers-2"), boot=BootId("boot-2"))
    back = then(ordered).node(NODE, slurmd_started=T0 + 60).agent(NODE, incarnation=booted)
    verified = checked(then(back))
    [give_back] = asked(verified, ReturnNode)
    assert give_back.node == NODE
    served = then(verified).node(NODE, flags=frozenset(), reason=None)
    [case] = then(served).memory.cases.values()
    assert case.step is CaseStep.CLOSED
    assert case.returned is not None


def test_a_replacement_ends_the_old_instance_and_launches_another() -> None:
    ordered = drained(replacement(an_api_cluster()))
    [end] = asked(ordered, TerminateInstance)
    assert end.instance == "box/workers-2"
    left = {id: instance for id, instance in ordered.seen.instances.items() if id != "box/workers-2"}
    gone = then(ordered).see(instances=left).agent(NODE, connected=False, lost_at=T0 + 2)
    launches = [action for action in asked(gone, LaunchInstance) if action.slot.node == NODE]
    assert [action.token for action in launches] == [f"{case_of(ordered).id}-0"]
    new = Instance(
        id=InstanceId("box/new"), node=NODE, state=InstanceState.RUNNING, token=launches[0].token, launched=T0 + 5
    )
    made = then(gone).see(instances={**left, new.id: new})
    fresh = Incarnation(instance=new.id, boot=BootId("boot-9"))
    back = then(made).node(NODE, slurmd_started=T0 + 60).agent(NODE, connected=True, incarnation=fresh, lost_at=None)
    verified = checked(then(back))
    [give_back] = asked(verified, ReturnNode)
    assert give_back.node == NODE


def test_jobs_on_the_node_are_waited_for() -> None:
    busy = drained(replacement(an_api_cluster())).node(NODE, base=NodeBase.ALLOCATED)
    assert asked(busy, TerminateInstance) == []
    assert asked(busy.node(NODE, base=NodeBase.IDLE), TerminateInstance) != []


def test_a_node_on_its_way_in_is_made_anew_when_it_is_replaced() -> None:
    picture = an_api_cluster().slot(NODE, step=SlotStep.SETUP)
    slot = replacement(picture).memory.slots[NODE]
    assert slot.purpose is Purpose.RENEW
    assert replacement(picture).memory.cases == {}


def test_a_slot_without_an_instance_is_tried_at_once_when_it_is_replaced() -> None:
    picture = an_api_cluster().slot(NODE, step=SlotStep.WAITING, instance=None, next_try=T0 + 900)
    [logical] = [picture.memory.slots[NODE].logical]
    order = replace(touching(NodeWish.REPLACE), logical_ids=(logical,))
    assert after(order, picture).memory.slots[NODE].next_try == T0


def test_a_login_machine_is_made_anew_but_not_rebooted() -> None:
    slot = a_slot("login-1", "login", 7)
    picture = an_api_cluster().group(a_group("login", role=Role.LOGIN, count=1))
    picture = picture.remember(slots={**picture.memory.slots, slot.node: slot})
    assert replacement(picture, "login-1").memory.slots[n("login-1")].purpose is Purpose.RENEW
    assert line(NodeWish.REBOOT, picture, "login-1").refused is NodeRefusal.BAD_STATUS


@pytest.mark.parametrize("wish", [NodeWish.REBOOT, NodeWish.REPLACE])
def test_the_controllers_machine_is_in_use(wish: NodeWish) -> None:
    assert line(wish, an_api_cluster(), "controller-1").refused is NodeRefusal.IN_USE


def test_a_fixed_machine_is_rebooted_but_never_replaced() -> None:
    picture = with_pool(an_api_cluster(), "workers", "workers-1", NODE, "workers-3", fixed=True)
    assert line(NodeWish.REPLACE, picture).refused is NodeRefusal.BAD_STATUS
    assert line(NodeWish.REBOOT, picture).refused is None


def test_a_node_under_repair_is_left_to_it() -> None:
    refusal = line(NodeWish.REPLACE, an_api_cluster().repaired(NODE))
    assert refusal.refused is NodeRefusal.BAD_STATUS
    assert "c-1" in refusal.text


def test_a_node_that_waits_for_a_person_has_its_case_closed_by_the_command() -> None:
    cases = replacement(an_api_cluster().repaired(NODE, CaseStep.HELD)).memory.cases
    assert cases[CaseId("c-1")].step is CaseStep.CLOSED
    assert [case.trigger for case in cases.values() if case.is_open] == [Trigger.ADMIN]


def out_by(reason: Reason, picture: ApiPicture) -> ApiPicture:
    """Somebody took the node out of service, and what was in service a moment ago is known."""
    out = then(then(picture).node(NODE, flags=frozenset({"DRAIN"}), reason=reason), 10.1)
    return then(out)  # others with the same reason could have followed


KILLED = Reason(text="Kill task failed (JobId=7 StepId=0)", user="slurm", at=T0)
COMMAND = Reason(text="Action:Replace", user="root", at=T0)
FEWER = Reason(text="gres/gpu count too low (7 < 8)", user="slurm", at=T0)


def held(picture: ApiPicture) -> ApiPicture:
    """Its repair has come to an end, and waits for a person."""
    case = replace(case_of(picture), step=CaseStep.HELD, rung=Advice.REPLACE, marked=T0)
    return then(picture.remember(cases={case.id: case}))


@pytest.mark.parametrize(("wish", "kind"), [(NodeWish.REBOOT, RebootInstance), (NodeWish.REPLACE, TerminateInstance)])
@pytest.mark.parametrize("reason", [KILLED, COMMAND], ids=["slurm", "admin"])
def test_an_order_is_carried_out_also_where_a_reason_stands_in_place_of_our_mark(
    reason: Reason, wish: NodeWish, kind: type
) -> None:
    picture = held(out_by(reason, an_api_cluster()))
    assert (case_of(picture).step, case_of(picture).command) == (CaseStep.HELD, reason.text)
    assert line(wish, picture).refused is None

    ordered = after(touching(wish, NODE), picture)
    assert [action.node for action in asked(ordered, kind)] == [NODE]
    assert asked(ordered, DrainNode) == [], "the reason stays"
    assert (case_of(then(ordered)).trigger, case_of(then(ordered)).rung.value) == (Trigger.ADMIN, wish.value)


def test_an_order_is_a_yes_also_for_a_node_that_slurm_itself_took_out() -> None:
    picture = an_api_cluster()
    picture = replace(picture, want=replace(picture.want, repair=but(picture.want.repair, mode=RepairMode.ASK)))
    picture = then(out_by(FEWER, picture))
    assert case_of(picture).waits_for_yes

    ordered = reboot(picture)
    assert [action.node for action in asked(ordered, RebootInstance)] == [NODE]
    booted = Incarnation(instance=InstanceId("box/workers-2"), boot=BootId("boot-2"))
    back = then(then(ordered).node(NODE, slurmd_started=T0 + 60).agent(NODE, incarnation=booted))
    [give_back] = asked(checked(back), ReturnNode)
    assert (give_back.node, give_back.command) == (NODE, FEWER.text)


def test_an_order_is_forgotten_when_somebody_else_takes_the_node_before_it_begins() -> None:
    picture = reboot(held(out_by(KILLED, an_api_cluster())))
    mine = then(picture.node(NODE, reason=Reason(text="mine", user="bob", at=T0)))
    assert [case for case in mine.memory.cases.values() if case.is_open] == []


def test_a_suspicion_is_ended_by_a_command() -> None:
    assert case_of(replacement(an_api_cluster().repaired(NODE, CaseStep.SUSPECT))).trigger is Trigger.ADMIN


def test_a_node_that_somebody_else_took_out_is_left_alone() -> None:
    picture = an_api_cluster().node(NODE, flags=frozenset({"DRAIN"}), reason=Reason(text="mine", user="bob", at=T0))
    refusal = line(NodeWish.REBOOT, picture)
    assert refusal.refused is NodeRefusal.BAD_STATUS
    assert "mine" in refusal.text


def test_a_node_that_is_not_in_service_is_not_rebooted() -> None:
    assert line(NodeWish.REBOOT, an_api_cluster().slot(NODE, step=SlotStep.SETUP)).refused is NodeRefusal.BAD_STATUS


def test_when_all_are_refused_the_answer_still_has_a_line_for_each() -> None:
    lines = carried(touching(NodeWish.REBOOT, "a", "b"), an_api_cluster()).answer.nodes
    assert [one.refused for one in lines] == [NodeRefusal.NOT_FOUND, NodeRefusal.NOT_FOUND]


def test_more_than_25_ids_are_refused() -> None:
    nodes = [f"x{i}" for i in range(26)]
    assert refused(touching(NodeWish.REBOOT, *nodes), an_api_cluster())[0] is RefusalKind.VALIDATION
    assert len(carried(touching(NodeWish.REBOOT, *nodes[:25]), an_api_cluster()).answer.nodes) == 25


def test_a_site_that_wants_reports_only_and_a_cluster_that_goes_refuse() -> None:
    picture = an_api_cluster()
    report = replace(picture, want=replace(picture.want, repair=but(picture.want.repair, mode=RepairMode.REPORT)))
    assert refused(touching(NodeWish.REBOOT, NODE), report)[0] is RefusalKind.CONFLICT
    going = picture.cluster(status=ClusterStatus.DELETING)
    assert refused(touching(NodeWish.REBOOT, NODE), going)[0] is RefusalKind.CONFLICT
