"""A new or changed site check first shows on some nodes that it is sane; until then it only reports."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from steward.model.action import DownNode, DrainNode
from steward.model.agent_tables import HealthPolicy
from steward.model.health import Severity, TrialState
from steward.policy.controls import arm_check
from tests.builders.picture import Picture, a_cluster
from tests.builders.want import but

HOUR_S = 3600.0
RULES = HealthPolicy(canary_node_count=5)
CHECK = "site.fabric"


def versions(picture: Picture, version: str, *given: str, check: str = CHECK) -> Picture:
    """These nodes (or all) run this version, and it passes there."""
    for name in given or picture.seen.nodes:
        picture = picture.agent(
            name, versions=MappingProxyType({check: version}), passed=frozenset({check}), findings=()
        )
    return picture


def a_site(count: int = 20, rules: HealthPolicy = RULES) -> Picture:
    picture = a_cluster(count, correlated_min=100, breaker_min=100, check_breaker_min=100)
    return replace(picture, want=replace(picture.want, health=rules))


def failing(picture: Picture, *given: str) -> Picture:
    for name in given:
        bad = picture.failing(name, Severity.DEGRADED, check=CHECK, event=False)
        picture = bad.agent(name, passed=frozenset())
    return picture


def touched(picture: Picture) -> list[str]:
    return sorted(a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode))


def state(picture: Picture, version: str = "v1") -> TrialState:
    return picture.memory.trials[f"{CHECK}@{version}"].state


def armed(version: str = "v1") -> Picture:
    """That version passed its trial on all nodes."""
    return versions(a_site(), version).then(4 * HOUR_S).then()


def test_a_check_that_was_never_seen_touches_no_node_and_that_is_told() -> None:
    picture = failing(versions(a_site(), "v1"), "n1")
    assert touched(picture) == []
    assert [event.kind for event in picture.plan().events] == ["check.trial"]
    assert "5 nodes had results for 4 h" in picture.plan().events[0].text


def test_it_is_armed_with_its_arithmetic_when_enough_nodes_had_good_results_for_long_enough() -> None:
    running = versions(a_site(), "v1").then(4 * HOUR_S - 1)
    assert state(running.then()) is TrialState.RUNNING
    decided = running.after(1).plan()
    assert [event.kind for event in decided.events] == ["check.armed"]
    assert "0 of 20 nodes failed" in decided.events[0].text


def test_an_armed_check_takes_nodes_out() -> None:
    assert touched(failing(armed(), "n1")) == ["n1"]


def test_its_time_begins_with_the_fifth_node_that_had_a_result() -> None:
    few = versions(a_site(), "v1", "n1", "n2", "n3", "n4").then(100 * HOUR_S).then()
    assert state(few) is TrialState.RUNNING
    enough = versions(few, "v1", "n5").then(HOUR_S).then()
    assert state(enough) is TrialState.RUNNING
    assert state(enough.then(3 * HOUR_S).then()) is TrialState.ARMED


def test_a_node_where_it_was_skipped_says_nothing_of_it() -> None:
    picture = versions(a_site(), "v1")
    for name in list(picture.seen.nodes)[4:]:
        picture = picture.agent(name, passed=frozenset(), skipped=frozenset({CHECK}))
    assert picture.then().memory.trials[f"{CHECK}@v1"].nodes_tried == {"n1", "n2", "n3", "n4"}


def test_one_that_fails_too_often_goes_on_reporting_and_a_person_is_told() -> None:
    picture = failing(versions(a_site(), "v1"), "n1", "n2", "n3").then(4 * HOUR_S)
    event = picture.plan().events[0]
    assert event.kind == "check.refused"
    assert "3 of 20 nodes failed (15.0%; at most 5.0%" in event.text
    assert f"steward check arm {CHECK}" in event.text
    assert touched(picture.then()) == []


def test_a_failure_that_was_over_soon_counts_all_the_same() -> None:
    picture = failing(versions(a_site(), "v1"), "n1", "n2", "n3").then(60)
    assert state(versions(picture, "v1").then(4 * HOUR_S).then()) is TrialState.REFUSED


def test_a_changed_check_is_on_trial_again_where_it_was_changed_and_nowhere_else() -> None:
    changed = versions(armed(), "v2", "n1", "n2")
    assert touched(failing(changed, "n2", "n3")) == ["n3"]


def test_a_changed_check_is_compared_with_its_earlier_version() -> None:
    """One that always failed on a twentieth of the nodes may go on doing so."""
    before = failing(versions(a_site(), "v1"), "n1").then(4 * HOUR_S).then()
    assert state(before) is TrialState.ARMED
    after = failing(versions(before, "v2"), "n1", "n2").then(4 * HOUR_S).then()
    assert state(after, "v2") is TrialState.ARMED
    assert "5.0% with its previous version" in after.memory.trials[f"{CHECK}@v2"].text


def test_going_back_to_a_version_that_was_armed_needs_no_trial() -> None:
    back = versions(versions(armed(), "v2").then(60), "v1")
    assert touched(failing(back, "n1")) == ["n1"]


def test_a_person_arms_a_check_on_trial_and_disarms_one_that_acts() -> None:
    picture = failing(versions(a_site(), "v1"), "n1").then()
    by_hand = replace(picture, memory=arm_check(picture.memory, CHECK, "root", armed=True))
    assert touched(by_hand) == ["n1"]
    assert touched(replace(by_hand, memory=arm_check(by_hand.memory, CHECK, "root", armed=False))) == []


def test_a_small_cluster_needs_no_more_nodes_than_it_has() -> None:
    assert state(versions(a_site(2), "v1").then(4 * HOUR_S).then()) is TrialState.ARMED


def test_without_trials_a_new_check_acts_at_once_and_can_still_be_disarmed() -> None:
    picture = failing(versions(a_site(rules=but(RULES, canary_node_count=0)), "v1"), "n1")
    assert touched(picture) == ["n1"]
    disarmed = arm_check(picture.then().memory, CHECK, "root", armed=False)
    assert touched(replace(picture, memory=disarmed)) == []


@pytest.mark.parametrize("check", ["disk", "kernel_log"])
def test_our_own_checks_have_no_trial(check: str) -> None:
    picture = versions(a_site(), "v1").failing("n1", check=check)
    assert touched(picture) == ["n1"]


def test_old_versions_are_forgotten_beyond_the_eighth() -> None:
    picture = a_site()
    for number in range(12):
        picture = versions(picture, f"v{number}").then(4 * HOUR_S).then(1)
    assert len(picture.memory.trials) == 8
    assert f"{CHECK}@v11" in picture.memory.trials


def eight_edits_on(name: str, picture: Picture) -> Picture:
    for edit in range(1, 9):
        picture = versions(picture, f"edit{edit}", name).then(120)
    return picture.then(120)


def test_edits_on_one_node_do_not_disarm_the_version_of_all_others() -> None:
    assert touched(failing(eight_edits_on("n1", armed()), "n5")) == ["n5"]


def test_the_version_armed_last_is_kept_while_the_nodes_that_run_it_are_away() -> None:
    picture = armed()
    for name in list(picture.seen.nodes)[1:]:
        picture = picture.agent(name, connected=False)
    assert state(eight_edits_on("n1", picture)) is TrialState.ARMED


def test_a_version_that_a_person_disarmed_is_forgotten_after_all_on_trial() -> None:
    picture = versions(a_site(), "v1", "n1").then()
    picture = replace(picture, memory=arm_check(picture.memory, CHECK, "root", armed=False))
    picture = eight_edits_on("n1", picture)
    assert state(picture) is TrialState.REFUSED
    assert f"{CHECK}@edit1" not in picture.memory.trials


def on_each_its_own(picture: Picture) -> Picture:
    """A template with the node's name in it."""
    for name in picture.seen.nodes:
        picture = versions(picture, f"of-{name}", name)
    return picture


def test_of_more_versions_in_use_than_are_kept_the_others_only_report_and_that_is_told_once() -> None:
    picture, told = on_each_its_own(a_site()), []
    for _ in range(5):
        told += [event.text for event in picture.plan().events if event.kind == "check.trial"]
        picture = picture.then(60)
    assert len(picture.memory.trials) == 8
    assert len(told) == 9
    assert told[-1] == f"check {CHECK} has 8 versions in use: others only report, without a trial"
    assert touched(failing(picture, "n1", "n20")) == []


def test_nor_do_they_act_where_the_site_wants_no_trials_for_nobody_could_disarm_them() -> None:
    picture = on_each_its_own(a_site(rules=but(RULES, canary_node_count=0))).then(60)
    known = [name for name in picture.seen.nodes if f"{CHECK}@of-{name}" in picture.memory.trials]
    other = next(name for name in picture.seen.nodes if name not in known)
    assert touched(failing(picture, known[0], other)) == [known[0]]
    disarmed = replace(picture, memory=arm_check(picture.memory, CHECK, "root", armed=False))
    assert touched(failing(disarmed, known[0], other)) == []
    told = [event.text for event in on_each_its_own(a_site(rules=but(RULES, canary_node_count=0))).plan().events]
    assert told == [f"check {CHECK} has 8 versions in use: others only report"]


def test_without_trials_a_version_that_takes_the_place_of_an_old_one_acts_a_moment_later() -> None:
    picture = a_site(rules=but(RULES, canary_node_count=0))
    for number in range(9):
        picture = failing(versions(picture, f"v{number}"), "n1") if number == 8 else versions(picture, f"v{number}")
        wake_at = picture.plan().wake_at
        picture = picture.then(1)
    assert wake_at is not None
    assert touched(picture) == ["n1"]


def test_a_version_in_use_by_all_gets_its_trial_when_the_many_are_gone() -> None:
    picture = versions(on_each_its_own(a_site()).then(60), "v1").then(60)
    assert state(picture) is TrialState.RUNNING


def test_a_node_that_tells_of_ever_new_checks_does_not_fill_the_memory() -> None:
    picture = armed()
    for turn in range(5):
        many = {f"site.x{turn}.{number}": "v" for number in range(255)}
        picture = picture.agent("n1", versions=MappingProxyType({CHECK: "v1", **many})).then(10)
    assert len(picture.memory.trials) == 1000
    assert state(picture) is TrialState.ARMED


def test_a_node_that_tells_of_versions_of_our_own_checks_begins_no_trial() -> None:
    picture = versions(a_site(), "v1", check="disk").failing("n1", check="disk")
    assert picture.then().memory.trials == {}
    assert touched(picture) == ["n1"]
