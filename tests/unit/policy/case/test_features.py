"""The feature by which users choose nodes whose checks passed."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from steward.model.action import SetFeature
from steward.model.agent_tables import HealthPolicy
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, DeepState
from steward.model.health import Severity
from steward.model.node import NodeBase
from steward.model.setting_types import RepairMode
from steward.policy.controls import pause
from tests.builders.picture import T0, Picture, a_cluster, names

ON = HealthPolicy(features=True)


def a_checked_cluster(count: int = 3) -> Picture:
    """Every node's checks passed, and Slurm shows nothing of it yet."""
    picture = a_cluster(count)
    for name in picture.seen.nodes:
        picture = picture.agent(name, passed=frozenset({"disk"}))
    return replace(picture, want=replace(picture.want, health=ON))


def words(picture: Picture) -> dict[str, set[str]]:
    """What is asked for: word -> nodes."""
    return {a.word: set(a.nodes) for a in picture.plan().actions if isinstance(a, SetFeature)}


def shown(picture: Picture, name: str, *features: str) -> Picture:
    return picture.node(name, features=frozenset(features), active_features=frozenset(features))


def all_shown() -> Picture:
    picture = a_checked_cluster()
    for name in picture.seen.nodes:
        picture = shown(picture, name, "HealthCheck:Passed", "rack1")
    return picture


def test_nodes_whose_checks_passed_say_so_with_one_command() -> None:
    assert words(a_checked_cluster()) == {"Passed": {"n1", "n2", "n3"}}


def test_what_slurm_shows_already_is_not_written_again() -> None:
    assert words(all_shown()) == {}


def test_a_node_that_a_finding_takes_out_has_failed() -> None:
    failing = all_shown().failing("n2", Severity.DEGRADED, check="disk", event=False)
    assert words(failing) == {"Failed": {"n2"}}


def test_a_finding_that_is_only_told_changes_nothing() -> None:
    assert words(all_shown().failing("n2", Severity.INFO, check="clock")) == {}


def test_where_every_check_was_skipped_nothing_was_looked_at() -> None:
    assert words(all_shown().agent("n2", passed=frozenset())) == {"Skipped": {"n2"}}


def test_a_node_that_never_had_an_agent_is_skipped_once_agents_had_time_to_connect() -> None:
    seen = all_shown().seen
    picture = all_shown().see(agents={k: v for k, v in seen.agents.items() if k != "n3"})
    assert words(picture) == {"Skipped": {"n3"}}
    assert words(picture.see(agents_since=picture.now)) == {}


def test_a_node_whose_agent_is_away_keeps_what_it_shows() -> None:
    assert words(all_shown().agent_lost("n2")) == {}


def test_the_last_deep_check_counts_too() -> None:
    run = DeepRun(
        id="d1",
        cause=DeepCause.SWEEP,
        who="steward",
        kinds=frozenset({DeepKind.STRESS}),
        nodes=names("n2"),
        asked=T0 - 300,
        state=DeepState.DONE,
        ended=T0 - 200,
        results=MappingProxyType(dict.fromkeys(names("n2"), DeepResult.FAILED)),
    )
    picture = all_shown()
    failed = replace(picture, memory=replace(picture.memory, deeps={"d1": run}))
    assert words(failed) == {"Failed": {"n2"}}
    passed = MappingProxyType(dict.fromkeys(run.results, DeepResult.PASSED))
    again = replace(run, id="d2", ended=T0 - 100, results=passed)
    assert words(replace(picture, memory=replace(picture.memory, deeps={"d1": run, "d2": again}))) == {}


def test_two_of_our_words_on_one_node_are_put_right() -> None:
    both = shown(all_shown(), "n1", "HealthCheck:Passed", "HealthCheck:Failed", "rack1")
    assert words(both) == {"Passed": {"n1"}}


def test_a_feature_that_is_not_active_is_put_right() -> None:
    assert words(all_shown().node("n1", active_features=frozenset({"rack1"}))) == {"Passed": {"n1"}}


def test_changes_are_collected_and_not_written_every_cycle() -> None:
    picture = a_checked_cluster().then(1)
    assert words(picture) == {}
    assert words(picture.after(10)) == {"Passed": {"n1", "n2", "n3"}}


def test_a_powered_down_node_is_left_alone() -> None:
    assert (
        words(all_shown().node("n1", base=NodeBase.IDLE, flags=frozenset({"POWERED_DOWN"}), features=frozenset())) == {}
    )


@pytest.mark.parametrize("why", ["off", "report only", "paused"])
def test_nothing_is_written_where_no_node_may_be_touched(why: str) -> None:
    picture = a_checked_cluster()
    if why == "off":
        picture = replace(picture, want=replace(picture.want, health=HealthPolicy(features=False)))
    elif why == "paused":
        picture = replace(picture, memory=pause(picture.memory))
    else:
        picture = picture.repair(mode=RepairMode.REPORT)
    assert words(picture) == {}


def undone_by_another(picture: Picture, word: str = "HealthCheck:Skipped", seconds: int = 120) -> tuple[Picture, int]:
    """What we write is in Slurm at once, and another head writes its own word over it; how often we wrote."""
    wrote = 0
    for _ in range(0, seconds, 5):
        wrote += bool(words(picture))
        picture = picture.then(5.0)
        for name in picture.seen.nodes:
            picture = shown(picture, name, word)
    return picture, wrote


def told(picture: Picture) -> list[str]:
    return [event.text for event in picture.plan().events if event.kind == "head.second"]


def test_a_second_head_on_the_same_slurm_is_noticed_told_once_and_not_fought() -> None:
    picture, wrote = undone_by_another(a_checked_cluster())
    assert wrote == 4, "then it is left to the other head for a while"
    assert "head.second" in picture.memory.noted
    assert not picture.memory.paused, "this one hears the agents"
    assert told(undone_by_another(picture, seconds=900)[0]) == []


def test_a_second_head_that_hears_no_agent_pauses() -> None:
    """As one with another state folder: for it no node ever had an agent."""
    unheard = a_checked_cluster().see(agents={}, agents_since=T0 - 3600.0)
    picture, _ = undone_by_another(unheard, "HealthCheck:Passed")
    assert picture.memory.paused
    assert "head.second" in picture.memory.noted


def test_slurm_that_forgets_features_or_refuses_them_and_a_check_that_flaps_are_no_second_head() -> None:
    forgets = a_checked_cluster()
    for _ in range(30):
        forgets = forgets.then(5.0)
        for name in forgets.seen.nodes:
            forgets = shown(forgets, name, "rack1")
    refused, _ = undone_by_another(a_checked_cluster().see(failures={"feature:Passed": "no such feature"}))
    flaps = all_shown()
    for turn in range(30):
        if turn % 4 < 2:
            flaps = flaps.failing("n2", Severity.DEGRADED, check="disk", event=False)
        else:
            flaps = flaps.agent("n2", findings=())
        for word, nodes in words(flaps).items():
            flaps = flaps.then(5.0)
            for node in nodes:
                flaps = shown(flaps, node, f"HealthCheck:{word}")
        flaps = flaps.then(5.0)
    for picture in (forgets, refused, flaps):
        assert "head.second" not in picture.memory.noted


def test_a_node_that_was_taken_out_because_it_is_gone_has_failed_and_a_silent_one_keeps_its_word() -> None:
    assert words(all_shown().agent_lost("n2")) == {}
    picture = all_shown().lost("n2").then().marked("n2").then(1.0)
    assert words(picture.after(11.0)) == {"Failed": {"n2"}}
