"""Breakers of groups and checks: when they trip, what they let through, and how they close."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode
from steward.model.case import Case, CaseStep
from steward.model.health import Severity
from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.model.order import Refusal
from steward.model.witness import Witness
from steward.policy.controls import reset_breakers
from steward.policy.draft import Draft
from steward.views.breakers import now_line, withheld_repairs
from steward.views.explain import explain_node
from tests.builders.picture import Picture, a_cluster, changed, n

PATIENCE_S = 1800.0


def touched(picture: Picture) -> list[str]:
    return [a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)]


def kinds(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def failing_one_by_one(*names: str, every_s: float = 120.0, check: str = "disk") -> Picture:
    """Twenty nodes, of which these fail one check, one after the other; the group's own breaker is far away, and they
    are too few for an incident."""
    picture = a_cluster(20, breaker_min=100, correlated_min=100)
    for name in names:
        picture = drained_by(picture, name, check).then(every_s)
    return picture


def drained_by(picture: Picture, name: str, check: str = "disk") -> Picture:
    """The check fails there, and what we decide on it is done."""
    failing = picture.failing(name, Severity.DEGRADED, check=check, event=False).then()
    is_out = any(case.node == name for case in failing.memory.cases.values())
    return failing.marked(name) if is_out else failing


def three_tried() -> Picture:
    return failing_one_by_one("n1", "n2", "n3")


def test_the_third_node_that_one_check_takes_out_within_ten_minutes_trips_its_breaker() -> None:
    picture = three_tried()
    assert set(picture.memory.breakers) == {"check:disk"}
    assert {case.node for case in picture.memory.cases.values()} == {"n1", "n2"}
    assert "limit 2" in picture.memory.breakers["check:disk"].text


def two_lost() -> Picture:
    return a_cluster().lost("n1", "n2").then().marked("n1").marked("n2").then(60)


def told_while_looked_at(picture: Picture, name: str, seconds: int) -> list[str]:
    """The kinds of what is said of a node whose agent is gone, and at whose slurmd somebody looks every half minute."""
    told = []
    for at in range(0, seconds, 2):
        picture = picture.witnessed(name, Witness.REFUSED) if at % 30 == 0 else picture
        told += [event.kind for event in picture.plan().events if event.node == name]
        picture = picture.then(2.0)
    return told


def test_a_lost_node_that_a_tripped_breaker_holds_is_told_once_and_not_suspected_again_between_the_looks() -> None:
    picture = two_lost().lost("n3").then(1)
    assert set(picture.memory.breakers) == {"group:main"}
    assert told_while_looked_at(picture, "n3", 600).count("node.suspect") == 0
    late = picture.agent_lost("n4").then(1)
    assert told_while_looked_at(late, "n4", 600) == ["case.withheld"]


def test_an_agent_that_is_only_silent_trips_no_breaker() -> None:
    silent = two_lost().agent_lost("n3").then(1)
    assert [case.step for case in silent.memory.cases.values() if case.node == "n3"] == [CaseStep.SUSPECT]
    assert silent.memory.breakers == {}
    assert silent.witnessed("n3", Witness.ALIVE).then(1).memory.breakers == {}


def test_a_node_that_is_surely_gone_is_replaced_also_while_a_breaker_is_tripped() -> None:
    picture = two_lost().lost("n3").then(1).agent_lost("n4").then(1)
    stopped = changed(picture.seen.instances, InstanceId("i-n4"), lambda one: replace(one, state=InstanceState.STOPPED))
    assert touched(picture.see(instances=stopped)) == ["n4"]


def test_other_checks_go_on_while_the_breaker_of_one_is_tripped() -> None:
    assert touched(three_tried().failing("n9", check="gpu")) == ["n9"]


def test_the_same_check_slowly_trips_nothing() -> None:
    assert failing_one_by_one("n1", "n2", "n3", every_s=650.0).memory.breakers == {}


def test_a_node_that_was_repaired_meanwhile_still_counts_for_the_check() -> None:
    picture = failing_one_by_one("n1", "n2")
    closed = {id: replace(case, step=CaseStep.CLOSED, closed=picture.now) for id, case in picture.memory.cases.items()}
    well = picture.agent("n1", findings=()).agent("n2", findings=())
    mended = replace(well, memory=replace(picture.memory, cases=closed))
    assert touched(mended.failing("n3", Severity.DEGRADED, check="disk", event=False)) == []


def all_closed(picture: Picture) -> Picture:
    """Those that were taken out are mended and back."""
    closed = {
        id: replace(case, step=CaseStep.CLOSED, closed=picture.now, returned=picture.now)
        for id, case in picture.memory.cases.items()
    }
    well = picture.agent("n1", findings=()).agent("n2", findings=())
    for name in ("n1", "n2"):
        well = well.node(name, flags=frozenset(), reason=None)
    return replace(well, memory=replace(picture.memory, cases=closed))


def half_open() -> Picture:
    """Three nodes fail the check when the patience is over: n3, n4 and n5."""
    picture = all_closed(three_tried())
    for name in ("n4", "n5"):
        picture = picture.failing(name, Severity.DEGRADED, check="disk", event=False)
    return picture.then(PATIENCE_S)


def test_nothing_is_let_through_before_the_patience_is_over_and_the_head_wakes_then() -> None:
    picture = all_closed(three_tried())
    assert touched(picture.after(60)) == []
    due = picture.memory.breakers["check:disk"].tripped + PATIENCE_S
    wake = picture.plan().wake_at
    assert wake is not None
    assert wake <= due


def test_one_repair_is_let_through_when_the_patience_is_over() -> None:
    picture = half_open()
    assert touched(picture) == ["n3"]
    assert "breaker.half_open" in kinds(picture)
    assert touched(picture.then(60)) == ["n3"], "asked for again, and no other"


def trial_of(picture: Picture) -> Case:
    trial = picture.memory.breakers["check:disk"].trial
    assert trial is not None
    return picture.memory.cases[trial]


def ended(picture: Picture, **fields: object) -> Picture:
    case = trial_of(picture)
    changed = replace(case, **fields)  # type: ignore[arg-type]
    return replace(picture, memory=replace(picture.memory, cases={**picture.memory.cases, case.id: changed}))


def test_the_breaker_closes_when_that_repair_ends_well() -> None:
    picture = half_open().then(300)
    good = ended(picture, step=CaseStep.CLOSED, closed=picture.now, returned=picture.now).agent("n3", findings=())
    assert "breaker.closed" in kinds(good)
    assert touched(good) == ["n4"]
    assert good.plan().memory.breakers.keys() <= {"check:disk"}


def test_it_trips_again_with_twice_the_patience_when_that_repair_is_held() -> None:
    picture = half_open().then(300)
    held = ended(picture, step=CaseStep.HELD)
    breaker = held.plan().memory.breakers["check:disk"]
    assert (breaker.patience_s, breaker.trial, breaker.tripped) == (2 * PATIENCE_S, None, held.now)
    assert "breaker.tripped" in kinds(held)
    assert touched(held.then(PATIENCE_S + 1)) == []


def test_another_is_let_through_when_a_person_took_that_repair_over() -> None:
    picture = half_open().then(300)
    taken = ended(picture, step=CaseStep.CLOSED, closed=picture.now).agent("n3", findings=())
    assert touched(taken) == ["n4"]


def test_nothing_is_let_through_while_what_was_taken_out_is_still_out() -> None:
    """Else more nodes would be out than the limit says."""
    picture = a_cluster().lost("n1", "n2").then().marked("n1").marked("n2").then(60).lost("n3").then(1)
    assert set(picture.memory.breakers) == {"group:main"}
    held = {id: replace(case, step=CaseStep.HELD) for id, case in picture.memory.cases.items()}
    later = replace(picture, memory=replace(picture.memory, cases=held), now=picture.now + 2 * PATIENCE_S)
    assert touched(later.lost("n3")) == []


def test_a_person_resets_one_breaker_and_the_others_stay() -> None:
    picture = three_tried()
    other = replace(picture.memory.breakers["check:disk"], scope="group:other", text="breaker group:other")
    memory = replace(picture.memory, breakers={**picture.memory.breakers, "group:other": other})
    reset = reset_breakers(memory, "check:disk", picture.now)
    assert set(reset.breakers) == {"group:other"}
    assert touched(replace(picture, memory=reset, now=picture.now + 1)) == ["n3"]


def test_what_was_taken_out_before_a_reset_does_not_count() -> None:
    picture = three_tried()
    reset = reset_breakers(picture.memory, "", picture.now)
    again = drained_by(drained_by(replace(picture, memory=reset, now=picture.now + 1), "n3").then(10), "n4").then(10)
    assert again.memory.breakers == {}
    assert "check:disk" in again.failing("n5", Severity.DEGRADED, check="disk", event=False).then().memory.breakers


def test_when_a_person_resets_all_breakers_no_other_one_trips_for_what_was_taken_out_before() -> None:
    two_out = a_cluster().lost("n1", "n2").then().marked("n1").marked("n2").then(60).lost("n3").then(1)
    assert set(two_out.memory.breakers) == {"group:main"}
    reset = reset_breakers(two_out.memory, "", two_out.now)
    later = replace(two_out, memory=reset, now=two_out.now + 1).then(1)
    assert later.memory.breakers == {}
    assert "n3" in {case.node for case in later.memory.cases.values()}


@pytest.mark.parametrize("scope", ["", "check:memory"])
def test_a_breaker_that_is_not_tripped_cannot_be_reset(scope: str) -> None:
    with pytest.raises(Refusal, match=r"not tripped|no breaker"):
        reset_breakers(a_cluster().memory, scope, 0.0)


def test_an_admins_command_passes_a_tripped_breaker() -> None:
    commanded = three_tried().drained("n3", "Action:Replace", flag="FAIL")
    assert {case.node for case in commanded.plan().memory.cases.values()} == {"n1", "n2", "n3"}


def test_repairs_run_side_by_side_up_to_a_number_in_the_whole_cluster() -> None:
    picture = a_cluster(concurrent_min=5, concurrent_all_count=1, breaker_min=10).lost("n1", "n2").then(1)
    running = picture.marked("n1").marked("n2").then()
    assert sorted(case.step.value for case in running.memory.cases.values()) == ["launch", "release"]


def now_lines(picture: Picture) -> dict[str, str]:
    """What people are told of each tripped breaker."""
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    held = withheld_repairs(draft)
    return {scope: now_line(one, held[scope], picture.now) for scope, one in picture.memory.breakers.items()}


def test_a_tripped_breaker_says_what_it_withholds_now_and_not_what_it_did_when_it_tripped() -> None:
    three = three_tried()
    assert now_lines(three)["check:disk"].startswith("withholds the repair of n3 now: a first repair is let through in")
    mended = three.agent("n3", findings=())
    assert now_lines(mended)["check:disk"].startswith("withholds nothing now: a first repair is let through in")


def test_what_goes_on_while_a_breaker_is_tripped_is_not_said_to_be_withheld() -> None:
    """A machine that is surely gone, the fault of another check, and a repair that had begun before."""
    picture = two_lost().lost("n3").then(1).agent_lost("n4").then(1)
    stopped = changed(picture.seen.instances, InstanceId("i-n4"), lambda one: replace(one, state=InstanceState.STOPPED))
    lost = picture.see(instances=stopped)
    assert now_lines(lost)["group:main"].startswith("withholds the repair of n3 now")
    explained = "".join(explain_node(n("n4"), lost.seen, lost.want, lost.memory, lost.now))
    assert "Nothing is done" not in explained
    other = three_tried().failing("n9", check="gpu")
    assert now_lines(other)["check:disk"].startswith("withholds the repair of n3 now")


def test_the_trial_of_a_half_open_breaker_is_not_said_to_be_withheld() -> None:
    picture = half_open().then()
    (trial,) = [one.trial for one in picture.memory.breakers.values() if one.trial is not None]
    case = picture.memory.cases[trial]
    line = now_lines(picture)["check:disk"]
    assert f"it closes when repair {trial} ends well" in line
    assert line.startswith("withholds the repair of n[4-5] now" if case.node == "n3" else "withholds the repair of n")
