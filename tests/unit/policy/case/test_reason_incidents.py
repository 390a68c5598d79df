"""Many nodes that Slurm takes out for one reason are one incident: one of them after the other is looked into, nothing
is done to their machines, and when one serves again the others are given back."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from steward.model.action import LaunchInstance, RebootInstance, ReturnNode
from steward.model.case import Case, CaseStep
from steward.model.deep import DeepRun, slurm_name
from steward.model.health import Advice
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.policy.draft import Draft
from steward.policy.facts.incidents import SCOUT_EVERY_S, SCOUT_FIRST_S
from steward.views.explain import explain_node
from steward.views.node_verdict import Word, node_verdict
from tests.builders.deep import reserved
from tests.builders.picture import T0, Picture, a_cluster, n
from tests.builders.slurm_drains import slurm_drains

EPILOG = "Epilog error"
ALL = tuple(f"n{i}" for i in range(1, 7))
KIND = "check:slurm.epilog_error"
HARM = (RebootInstance, LaunchInstance)


def struck(*given: str, text: str = EPILOG) -> Picture:
    return slurm_drains(a_cluster(), text, *(given or ALL))


def open_cases(picture: Picture) -> list[Case]:
    return [case for case in picture.memory.cases.values() if case.is_open]


def a_turn(picture: Picture, broken: bool) -> Picture:
    """The agents answer, Slurm keeps and gives back what it is asked to, and each launch test ends as said."""
    for action in picture.plan().actions:
        assert not isinstance(action, HARM), action
    back = [a.node for a in picture.plan().actions if isinstance(a, ReturnNode)]
    after = picture.then(2.0).see(reservations_at=picture.now)
    for name in ALL:
        after = after.agent(name, checked_at=after.now)
    for name in back:
        after = after.node(name, flags=frozenset(), reason=None)
    for run in after.memory.deeps.values():
        after = the_test_goes_on(after, run, broken) if run.is_open and run.has_nodes else after
    return after


def the_test_goes_on(picture: Picture, run: DeepRun, broken: bool) -> Picture:
    name, (node,) = slurm_name(run.token), run.nodes
    picture = reserved(picture, run)
    if picture.seen.nodes[node].is_drain:
        return picture
    fields: dict[str, Any] = {"state": JobState.COMPLETED, "name": name, "user_id": 64030}
    fields |= {"partition": name, "reservation": name}
    ended = picture.job(900 + int(run.id[1:]), on=(node,), ended=picture.now, **fields)
    return slurm_drains(ended, EPILOG, node) if broken else ended


def go_on(picture: Picture, seconds: float, *, broken: bool) -> Picture:
    end = picture.now + seconds
    while picture.now < end:
        picture = a_turn(picture, broken)
    return picture


def is_out(picture: Picture) -> list[str]:
    return [name for name, node in picture.seen.nodes.items() if node.is_drain]


def test_it_is_one_incident_and_no_repair() -> None:
    picture = struck().then(1.0)
    assert list(picture.memory.incidents) == [KIND]
    assert open_cases(picture) == []
    assert sum(e.kind == "incident.opened" for e in struck().plan().events) == 1


def test_a_cluster_of_two_nodes_that_both_have_it_is_one_incident_too() -> None:
    picture = slurm_drains(a_cluster(2), EPILOG, "n1", "n2").then(1.0)
    assert list(picture.memory.incidents) == [KIND]


def test_nodes_that_follow_within_seconds_belong_to_it() -> None:
    picture = slurm_drains(a_cluster(settle_degraded_s=10.0), EPILOG, "n1").then(4.0)
    later = slurm_drains(picture, EPILOG, "n2", "n3").then(4.0)
    assert (open_cases(later), list(later.memory.incidents)) == ([], [KIND])
    alone = slurm_drains(a_cluster(settle_degraded_s=10.0), EPILOG, "n1").then(10.1).then()
    assert [case.node for case in open_cases(alone)] == ["n1"]


def test_while_the_script_is_broken_one_node_at_a_time_is_looked_into_and_no_machine_is_touched() -> None:
    picture = struck()
    scouts = set[str]()
    for _ in range(600):
        picture = a_turn(picture, broken=True)
        assert len(open_cases(picture)) <= 1
        scouts |= {case.node for case in open_cases(picture)}
        assert all(case.rung is Advice.NONE for case in open_cases(picture))
    assert len(scouts) > 2, "not the same one each time"
    assert picture.memory.incidents[KIND].over is None
    assert len(is_out(picture)) == 6
    assert picture.memory.remedies.get("i-n1", ()) == (), "that it did not help counts against no hardware"


def test_a_cause_that_passes_at_once_costs_no_minute_and_one_that_stays_is_looked_into_ever_more_rarely() -> None:
    assert is_out(go_on(struck(), SCOUT_FIRST_S + 60.0, broken=False)) == []
    picture, opened = struck(), list[float]()
    for _ in range(200):
        picture = a_turn(picture, broken=True)
        opened += [case.opened for case in open_cases(picture) if case.opened not in opened]
    gaps = [after - before for before, after in pairwise([picture.memory.incidents[KIND].since, *opened])]
    assert SCOUT_FIRST_S <= gaps[0] < SCOUT_FIRST_S + 5.0
    assert gaps == sorted(gaps)
    assert SCOUT_EVERY_S <= gaps[-1] < 2 * SCOUT_EVERY_S


def test_when_the_script_is_mended_all_nodes_are_given_back() -> None:
    picture = go_on(struck(), 200.0, broken=True)
    mended = go_on(picture, SCOUT_EVERY_S + 120.0, broken=False)
    assert is_out(mended) == []
    assert mended.memory.incidents[KIND].over is not None
    assert open_cases(mended) == []


@pytest.mark.parametrize("text", ["Kill task failed", "Node unexpectedly rebooted", "SlurmdSpoolDir is full"])
def test_an_incident_and_its_reasons_do_not_keep_each_other_alive(text: str) -> None:
    mended = go_on(struck(text=text), SCOUT_EVERY_S + 120.0, broken=False)
    assert is_out(mended) == []


def test_a_case_from_before_the_incident_goes_on_as_its_scout_and_no_higher() -> None:
    early = slurm_drains(a_cluster(), EPILOG, "n1").then(1.0)
    assert [case.node for case in open_cases(early)] == ["n1"]
    picture = slurm_drains(early, EPILOG, "n2", "n3", "n4").then(1.0)
    later = go_on(picture, 100.0, broken=True)
    assert all(case.step is CaseStep.CLOSED for case in later.memory.cases.values() if case.node == n("n1"))


def test_a_node_that_waits_for_a_person_keeps_no_other_from_its_turn() -> None:
    picture = struck()
    while not open_cases(picture):
        picture = a_turn(picture, broken=True)
    (first,) = open_cases(picture)
    held = replace(first, step=CaseStep.HELD, entered=picture.now)
    picture = replace(picture, memory=replace(picture.memory, cases={**picture.memory.cases, first.id: held}))
    assert is_out(go_on(picture, 2 * SCOUT_EVERY_S + 120.0, broken=False)) == [first.node]


def test_a_test_that_cannot_be_made_while_it_goes_on_is_made_on_the_next_node_and_holds_none_for_a_person() -> None:
    picture = struck()
    scouts = set[str]()
    for _ in range(600):
        for action in picture.plan().actions:
            assert not isinstance(action, (*HARM, ReturnNode)), action
        picture = picture.then(2.0).see(reservations_at=picture.now)
        for name in ALL:
            picture = picture.agent(name, checked_at=picture.now)
        assert [case for case in open_cases(picture) if case.step is CaseStep.HELD] == []
        scouts |= {case.node for case in open_cases(picture)}
    assert len(scouts) > 2
    assert is_out(go_on(picture, SCOUT_EVERY_S + 400.0, broken=False)) == []


def test_a_node_that_nothing_helped_keeps_no_other_out_when_the_script_is_mended() -> None:
    """It failed alone until a person was asked for; then all others, until somebody mended the script."""
    picture = slurm_drains(a_cluster(provider=False), EPILOG, "n1")
    for _ in range(600):
        picture = a_turn(picture, broken=True)
        if any(case.step is CaseStep.HELD for case in open_cases(picture)):
            break
    assert [case.step for case in open_cases(picture)] == [CaseStep.HELD]
    everywhere = go_on(slurm_drains(picture, EPILOG, *ALL[1:]), 300.0, broken=True)
    assert everywhere.memory.incidents[KIND].over is None
    mended = go_on(everywhere, SCOUT_EVERY_S + 120.0, broken=False)
    assert is_out(mended) == ["n1"]


def test_a_node_where_a_job_runs_on_keeps_no_other_from_its_turn() -> None:
    picture = struck().node("n1", base=NodeBase.MIXED)
    assert is_out(go_on(picture, 2 * SCOUT_EVERY_S + 120.0, broken=False)) == ["n1"]


def test_what_is_said_of_one_of_many_is_what_is_done() -> None:
    picture = struck().then(1.0)
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    said, lines = node_verdict(n("n2"), draft), explain_node(n("n2"), picture.seen, picture.want, picture.memory, T0)
    words = "now and then one is looked into; when one serves again, all are given back"
    assert (said.word, said.next) == (Word.DEGRADED, f"many nodes have it at once: {words}")
    assert any(words in line for line in lines)
    assert not any("Nothing is done" in line or "a job of Steward's own" in line for line in lines)
