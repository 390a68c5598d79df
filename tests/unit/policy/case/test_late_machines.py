"""Machines that a repair had given up on and that come all the same: given back, or ended; never two under one name."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from steward.model.action import TerminateInstance
from steward.model.agent_action import Action
from steward.model.case import Case, CaseStep
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.setting_types import RepairMode
from steward.policy.groups.orphans import SEEN_FOR_S
from tests.builders.picture import Picture, a_cluster, an_agent, n

FIRST, SECOND = InstanceId("i-first"), InstanceId("i-second")


def case_of(picture: Picture) -> Case:
    return next(iter(picture.memory.cases.values()))


def launching(max_launches: int = 2) -> Picture:
    """n2 died, was taken out, and its old instance is gone."""
    picture = a_cluster().lost("n2").then().marked("n2").then(1).repair(max_launches=max_launches)
    return listed(picture, without=InstanceId("i-n2")).then(1)


def listed(picture: Picture, *came: Instance, without: InstanceId | None = None) -> Picture:
    kept = {id: instance for id, instance in picture.seen.instances.items() if id != without}
    return picture.see(instances={**kept, **{instance.id: instance for instance in came}})


def a_machine(id: InstanceId, token: str) -> Instance:
    return Instance(id=id, node=n("n2"), state=InstanceState.RUNNING, token=token)


def heard(picture: Picture, id: InstanceId) -> Picture:
    view = replace(an_agent(n("n2")), incarnation=Incarnation(instance=id, boot=BootId("b9")), last_heard=picture.now)
    return picture.see(agents={**picture.seen.agents, n("n2"): view})


def ended(actions: tuple[Action, ...]) -> list[InstanceId]:
    return [action.instance for action in actions if isinstance(action, TerminateInstance)]


def sound(picture: Picture) -> Picture:
    return picture.checked("n2").node("n2", slurmd_started=picture.now).then(1)


def held_at_launch() -> Picture:
    return launching().wait(5000)


def held_while_it_booted() -> Picture:
    picture = launching(max_launches=1)
    return listed(picture, a_machine(FIRST, case_of(picture).token)).then(1).wait(5000)


def held_by_the_provider() -> Picture:
    picture = a_cluster().lost("n2").then().marked("n2").then(1).repair(max_launches=1)
    picture = listed(picture, without=InstanceId("i-n2"))
    key = picture.plan().actions[0].key
    return picture.then(0.1).see(failures={key: "internal error, try again"}).then(5.1)


@pytest.mark.parametrize("held", [held_at_launch, held_while_it_booted, held_by_the_provider])
def test_a_machine_that_comes_after_its_case_was_left_to_a_person_is_checked_and_given_back(
    held: Callable[[], Picture],
) -> None:
    picture = held()
    case = case_of(picture)
    assert case.step is CaseStep.HELD
    here = heard(listed(picture.see(failures={}), a_machine(FIRST, case.token)), FIRST)
    (told,) = here.plan().events
    came = here.then(1)
    assert (case_of(came).step, case_of(came).new_instance) == (CaseStep.VERIFY, FIRST)
    assert told.text == ("n2: held -> verify: the new machine came after its deadline: its checks decide")
    assert case_of(sound(came.then(5))).step is CaseStep.RETURN


def test_one_that_is_no_good_either_stays_with_the_person() -> None:
    picture = held_while_it_booted()
    came = heard(picture, FIRST).then(1)
    assert case_of(came).step is CaseStep.VERIFY
    bad = came.failing("n2", event=False).wait(400)
    assert case_of(bad).step is CaseStep.HELD
    assert case_of(bad.wait(400)).step is CaseStep.HELD


def two_machines() -> tuple[Picture, str]:
    """The list lost the first new machine for a moment: another was asked for, and now both are there."""
    picture = launching()
    first = case_of(picture).token
    picture = listed(picture, a_machine(FIRST, first)).then(1)
    picture = listed(picture, without=FIRST).then(1)
    second = case_of(picture).token
    assert second != first
    picture = listed(picture, a_machine(SECOND, second)).then(1)
    return listed(picture, a_machine(FIRST, first)).then(1), second


def test_of_two_machines_of_one_node_the_one_that_was_given_up_is_ended_and_people_are_told_once() -> None:
    both, _ = two_machines()
    assert ended(both.plan().actions) == []
    later = both.after(SEEN_FOR_S)
    assert ended(later.plan().actions) == [FIRST]
    (told,) = later.plan().events
    assert told.text == "n2: instance i-first appeared after another machine took its place: it is ended"
    again = later.then(30)
    assert ended(again.plan().actions) == [FIRST]
    assert again.plan().events == ()
    assert case_of(again).step is CaseStep.PROVISION


def test_the_one_that_speaks_for_the_node_stays() -> None:
    both, _ = two_machines()
    later = heard(both, FIRST).then(1).after(SEEN_FOR_S)
    assert ended(heard(later, FIRST).plan().actions) == [SECOND]


def test_a_single_machine_is_never_ended_as_late_nor_is_any_while_repairs_are_only_reported() -> None:
    both, _ = two_machines()
    assert ended(listed(both, without=SECOND).after(SEEN_FOR_S).plan().actions) == []
    assert ended(both.repair(mode=RepairMode.REPORT).after(SEEN_FOR_S).plan().actions) == []


def test_one_of_an_ended_cluster_beside_them_is_ended_as_soon() -> None:
    both, _ = two_machines()
    of_old = Instance(id=InstanceId("i-old"), node=n("n2"), state=InstanceState.RUNNING, token="gone-1")
    three = listed(replace(both, memory=replace(both.memory, ended={"gone": both.now})), of_old).then(SEEN_FOR_S / 2)
    assert ended(three.then(SEEN_FOR_S / 2).plan().actions) == [of_old.id, FIRST]
