"""`repair.mode = "ask"`: broken nodes are drained, and no machine is touched before a person says yes."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode, LaunchInstance, NudgeJob, RebootInstance
from steward.model.action import TerminateInstance as Terminate
from steward.model.agent_action import MendNode
from steward.model.case import Case, CaseStep, Trigger
from steward.model.events import Level
from steward.model.health import Advice, Severity
from steward.model.node import NodeBase
from steward.model.order import Approve, Refusal
from steward.model.setting_types import RepairMode
from steward.policy.orders import carry_out
from tests.builders.picture import Picture, a_cluster

REPAIRS = (LaunchInstance, Terminate, RebootInstance, MendNode)
DAY_S = 86400.0


def case_of(picture: Picture) -> Case:
    [case] = [case for case in picture.memory.cases.values() if case.is_open]
    return case


def repairs(picture: Picture) -> list[str]:
    return [type(action).__name__ for action in picture.plan().actions if isinstance(action, REPAIRS)]


def asking() -> Picture:
    """n2 died under an asking head, and is out of service by our mark."""
    return a_cluster(mode=RepairMode.ASK).lost("n2").then().marked("n2").then(1)


def approved(picture: Picture, *words: str) -> Picture:
    order = Approve(who="ann", words=words or ("n2",))
    carried = carry_out(order, picture.memory, picture.see(at=picture.now).seen, picture.want)
    return replace(picture, memory=carried.memory)


def refused(picture: Picture, *words: str) -> str:
    with pytest.raises(Refusal) as told:
        approved(picture, *words)
    return str(told.value)


def test_a_lost_node_is_taken_out_at_once_and_its_machine_is_left_alone_for_days() -> None:
    dead = a_cluster(mode=RepairMode.ASK).lost("n2")
    assert [type(action) for action in dead.plan().actions if isinstance(action, DownNode | DrainNode)] == [DownNode]
    picture = asking()
    for _ in range(4):
        assert repairs(picture) == []
        picture = picture.then(DAY_S)
    assert case_of(picture).step is CaseStep.RELEASE


def test_a_degraded_node_is_drained_and_asked_for() -> None:
    ill = a_cluster(mode=RepairMode.ASK).failing("n2", Severity.DEGRADED)
    assert [type(action) for action in ill.plan().actions if isinstance(action, DownNode | DrainNode)] == [DrainNode]
    picture = ill.then().marked("n2")
    [event] = [event for event in picture.plan().events if event.kind == "case.asked"]
    assert (event.node, event.level) == ("n2", Level.WARNING)
    assert "replace its machine" in event.text
    assert "`steward approve c" in event.text


def test_people_are_asked_once_a_remedy_with_a_link_where_the_page_is_known() -> None:
    picture = a_cluster(mode=RepairMode.ASK).lost("n2").then().marked("n2")
    picture = replace(picture, want=replace(picture.want, page_url="https://steward.example.org/"))
    [event] = [event for event in picture.plan().events if event.kind == "case.asked"]
    assert event.text.endswith("https://steward.example.org/case/c1")
    assert [event.kind for event in picture.then(60).plan().events if event.kind == "case.asked"] == []


def test_a_yes_begins_the_repair_in_the_same_turn_and_stays_with_the_case() -> None:
    picture = approved(asking())
    assert repairs(picture) == ["TerminateInstance"]
    begun = case_of(picture.then(1))
    assert (begun.step, begun.approved_by) == (CaseStep.LAUNCH, "ann")


def test_a_yes_before_the_node_is_drained_counts() -> None:
    picture = approved(a_cluster(mode=RepairMode.ASK).lost("n2").then())
    assert repairs(picture.marked("n2")) == ["TerminateInstance"]


def test_a_case_is_named_by_its_id_its_number_or_its_node() -> None:
    case = case_of(asking())
    for word in (case.id, case.number, case.number.removeprefix("c"), "n2"):
        assert case_of(approved(asking(), word)).approved_by == "ann"


def test_the_time_to_begin_counts_from_the_yes() -> None:
    """A job still runs on the degraded node."""
    busy = a_cluster(mode=RepairMode.ASK).failing("n2", Severity.DEGRADED).then().marked("n2").job(9, on=("n2",))
    busy = busy.node("n2", base=NodeBase.ALLOCATED).then(3 * DAY_S)
    assert case_of(approved(busy).then(1)).step is CaseStep.RELEASE


def test_what_waits_for_no_yes_is_refused_and_what_does_is_named() -> None:
    assert refused(asking(), "n9") == "n9 is neither a case nor a node with a case. These wait for approval: c1 (n2)."
    assert refused(approved(asking()), "n2").endswith("does not wait for approval (step release, approved by ann).")
    assert "does not wait for approval" in refused(a_cluster().lost("n2").then().marked("n2").then(1), "n2")
    assert refused(asking(), "n2", "n9").startswith("n9 is neither a case")
    assert "No repair waits for approval." in refused(a_cluster(mode=RepairMode.ASK), "n1")


def test_an_admins_own_command_is_a_yes() -> None:
    """Given through Slurm while the case waits."""
    ordered = asking().down("n2", "Action:Replace")
    assert repairs(ordered) == ["TerminateInstance"]
    assert case_of(ordered.then(1)).trigger is Trigger.ADMIN


def test_a_machine_that_answers_again_while_it_waits_is_only_checked() -> None:
    back = asking().heard("n2")
    case = case_of(back.then(1))
    assert (case.rung, case.step) == (Advice.NONE, CaseStep.VERIFY)
    assert [event.kind for event in back.plan().events if event.kind == "case.asked"] == []


def test_a_person_who_says_no_gives_the_node_back() -> None:
    given = asking().node("n2", base=NodeBase.IDLE, flags=frozenset(), reason=None).heard("n2").then(1)
    assert [case.step for case in given.memory.cases.values()] == [CaseStep.CLOSED]


def test_a_site_that_acts_again_repairs_what_waited() -> None:
    assert repairs(asking().repair(mode=RepairMode.ACT)) == ["TerminateInstance"]


def test_a_case_that_waits_takes_no_turn_from_one_that_may_go_on() -> None:
    """One repair at a time runs; the first waits for its yes, the second has it."""
    picture = asking().failing("n4").then().marked("n4").then(1)
    assert repairs(approved(picture, "n4")) == ["TerminateInstance"]


def test_nothing_is_kept_for_a_job_whose_lost_node_waits_for_a_yes() -> None:
    """It runs elsewhere, or waits; nobody knows when a yes comes."""
    picture = a_cluster(4, mode=RepairMode.ASK).job().opted_in().then().lost("n2").then().marked("n2")
    picture = picture.requeued(node_count=3).then(1.2)
    assert case_of(picture).waits_for_yes
    assert any(isinstance(action, NudgeJob) for action in picture.plan().actions)
