"""What overrules "it may be us" while many agents are silent, what is done then, and what the incident waits for."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import DownNode, DrainNode, NudgeJob, ProbeNode
from steward.model.case import Case, CaseStep, Trigger
from steward.model.health import Advice
from steward.model.ids import CaseId, InstanceId, Key
from steward.model.instance import InstanceState
from steward.model.node import NodeBase, Reason
from steward.model.repair_policy import WITNESS_FRESH_S
from steward.model.why import Why
from steward.model.witness import PeerWord, Witness
from steward.policy.facts.gone import PEERS, SEEN_ALIVE_S
from tests.builders.picture import Picture, a_cluster, changed, n, names

GRACE_S = 16.0


def touched(picture: Picture) -> list[str]:
    return [a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)]


def silent(count: int = 3, of: int = 8, *, provider: bool = True, **repair: Any) -> Picture:
    """n1.. of the cluster fell silent together, and nobody has looked at them yet."""
    given = [f"n{i}" for i in range(1, count + 1)]
    return a_cluster(of, provider=provider, **repair).then().after(1.0).agent_lost(*given).then()


def looked_at(picture: Picture, *given: str, result: Witness = Witness.SILENT) -> Picture:
    for name in given:
        picture = picture.witnessed(name, result)
    return picture


def stopped(picture: Picture, *given: str) -> Picture:
    instances = dict(picture.seen.instances)
    for name in given:
        instances = changed(instances, InstanceId(f"i-{name}"), lambda one: replace(one, state=InstanceState.STOPPED))
    return picture.see(instances=instances)


def down_by_slurm(picture: Picture, *given: str) -> Picture:
    for name in given:
        reason = Reason(text="Not responding", user="slurm", at=picture.now)
        picture = picture.node(name, base=NodeBase.DOWN, responding=False, reason=reason)
    return picture


def incident(picture: Picture) -> str:
    (one,) = (one for one in picture.plan().memory.incidents.values() if one.over is None)
    return one.text


def test_the_providers_word_that_a_machine_is_stopped_overrules_that_it_may_be_us() -> None:
    picture = stopped(silent().after(1.0), "n1", "n2", "n3")
    assert touched(picture) == ["n1", "n2", "n3"]
    down = next(a for a in picture.plan().actions if isinstance(a, DownNode))
    assert "provider: instance i-n1 is stopped" in down.why.evidence
    assert "incident.over" in [event.kind for event in picture.plan().events]


def test_a_list_of_before_the_loss_says_nothing() -> None:
    picture = stopped(silent().after(1.0), "n1", "n2", "n3")
    assert touched(picture.see(listed_at=picture.now - 60)) == []


def test_slurms_own_word_overrules_it_too_where_the_head_hears_somebody() -> None:
    picture = silent(4).after(300.0)
    assert touched(down_by_slurm(picture, "n1", "n2", "n3", "n4")) == ["n1", "n2", "n3", "n4"]


def test_slurms_word_counts_under_the_mark_of_a_repair_that_is_over_too() -> None:
    """24.11 keeps the reason of a node that was given back."""
    picture = down_by_slurm(silent(4).after(300.0), "n1", "n2", "n3", "n4")
    at = picture.now - 86_400.0
    over = Case(
        id=CaseId("c9-0"),
        node=n("n1"),
        trigger=Trigger.FATAL,
        check="gpu",
        step=CaseStep.CLOSED,
        why=Why(rule="case.xid", text="an Xid"),
        opened=at,
        entered=at,
        returned=at,
        closed=at,
    )
    picture = picture.node("n1", reason=Reason(text="steward:gpu:replace:c9-0 : Not responding", user="slurm", at=at))
    assert touched(picture) == ["n2", "n3", "n4"]
    assert touched(replace(picture, memory=replace(picture.memory, cases={over.id: over}))) == ["n1", "n2", "n3", "n4"]


def test_where_nobody_is_heard_slurms_word_is_no_other_than_ours() -> None:
    everybody = [f"n{i}" for i in range(1, 9)]
    picture = down_by_slurm(silent(8).after(300.0), *everybody)
    assert touched(picture) == []
    assert "the head reaches no node" in incident(picture)


def test_while_the_first_are_heard_again_the_others_have_time_to_follow() -> None:
    everybody = [f"n{i}" for i in range(1, 9)]
    cut_off = down_by_slurm(silent(8).after(300.0), *everybody).then()
    first = cut_off.after(1.0).heard("n1")
    assert touched(first) == []
    assert touched(first.then(GRACE_S)) == everybody[1:]


def with_job(picture: Picture, *on: str) -> Picture:
    return picture.job(on=on).opted_in().then()


def test_where_most_are_reached_a_node_is_taken_out_for_its_job_after_a_while_and_others_are_not() -> None:
    picture = looked_at(with_job(silent(3), "n1", "n5").after(5.0), "n1", "n2", "n3")
    assert touched(picture) == []
    later = looked_at(picture.then(GRACE_S), "n1", "n2", "n3")
    assert touched(later) == ["n1"]
    assert "5 of 8 nodes are reached" in incident(picture)


@pytest.mark.parametrize(("many", "of"), [(4, 8), (20, 40), (5, 8)])
def test_where_half_are_silent_nobody_can_tell_who_is_cut_off(many: int, of: int) -> None:
    picture = looked_at(with_job(silent(many, of), "n1", "n2"), "n1", "n2").then(GRACE_S)
    assert touched(looked_at(picture, "n1", "n2")) == []
    assert "too few to tell who is cut off" in incident(picture)


def test_where_only_agents_are_gone_a_slurmd_that_starts_anew_is_waited_for_and_one_that_died_is_not() -> None:
    everybody = [f"n{i}" for i in range(1, 9)]
    agents_only = looked_at(with_job(silent(8), "n1", "n2").after(1.0), *everybody, result=Witness.ALIVE)
    assert touched(agents_only) == []
    stopped = looked_at(agents_only.then(GRACE_S), "n1", result=Witness.REFUSED)
    assert touched(stopped) == []
    anew = looked_at(stopped.then(5.0), "n1", result=Witness.ALIVE).then(GRACE_S)
    assert touched(looked_at(anew, "n1", result=Witness.REFUSED)) == []
    assert touched(looked_at(stopped.then(GRACE_S), "n1", result=Witness.REFUSED)) == ["n1"]


def test_all_silent_nodes_of_a_job_are_looked_at_where_that_may_bring_it_back() -> None:
    few = with_job(silent(3), "n1", "n2", "n5").after(4.0)
    assert [a.node for a in few.plan().actions if isinstance(a, ProbeNode)] == ["n1", "n2"]
    half = with_job(silent(4), "n1", "n2", "n5").after(4.0)
    assert [a.node for a in half.plan().actions if isinstance(a, ProbeNode)] == ["n1", "n2"]
    everybody = with_job(silent(8), "n1", "n2", "n5").after(4.0)
    assert [(a.node, a.peers) for a in everybody.plan().actions if isinstance(a, ProbeNode)] == [("n1", frozenset())]


def test_one_of_many_is_looked_at_again_before_its_last_look_is_too_old_to_count() -> None:
    """Else all are ruled gone but those whose looks are just being renewed."""
    picture = with_job(silent(4), "n1", "n5").then()
    fresh_s, looked = WITNESS_FRESH_S, picture.memory.asked[Key("probe:n1")]
    times = [picture.after(looked + part * fresh_s - picture.now) for part in (0.4, 0.6)]
    assert [[a.node for a in each.plan().actions if isinstance(a, ProbeNode)] for each in times] == [[], ["n1"]]


def test_a_node_that_somebody_says_is_gone_is_not_looked_at_also_when_the_incident_ends_by_the_last_repair() -> None:
    """n1 is the last that is waited for, and taken out for its job; the others are an admin's."""
    admins = with_job(silent(3), "n1", "n5").drained("n2", "maintenance").drained("n3", "maintenance")
    picture = stopped(admins.after(5.0), "n2", "n3")
    last = looked_at(looked_at(picture, "n1").then(GRACE_S), "n1")
    assert [type(a) for a in last.plan().actions if isinstance(a, DownNode | ProbeNode)] == [DownNode]
    again = last.then()
    assert [event.kind for event in again.plan().events] == ["incident.over"]
    assert again.plan().actions == ()


def peers_say(picture: Picture, node: str, **words: Witness) -> Picture:
    told = tuple(PeerWord(by=n(by), result=result, at=picture.now) for by, result in words.items())
    return picture.agent(node, peers=told)


def test_agents_that_are_heard_are_asked_about_the_silent_nodes_of_a_job() -> None:
    half = with_job(silent(4), "n1", "n2", "n5").after(4.0)
    asked = {a.node: a.peers for a in half.plan().actions if isinstance(a, ProbeNode)}
    assert all(len(peers) == PEERS and peers <= names("n5", "n6", "n7", "n8") for peers in asked.values())
    alone = with_job(silent(1), "n1").after(4.0)
    assert [a.peers for a in alone.plan().actions if isinstance(a, ProbeNode)] == [frozenset()]


NO, YES = Witness.SILENT, Witness.ALIVE


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ({"n5": NO, "n6": NO}, ["n1"]),
        ({"n5": NO, "n6": Witness.REFUSED, "n7": NO}, ["n1"]),
        ({"n5": NO}, []),
        ({"n5": NO, "n6": NO, "n7": YES}, []),
        ({"n5": NO, "n2": NO, "n3": NO}, []),
    ],
    ids=["two", "three", "one alone", "one reaches it", "silent ones say nothing"],
)
def test_where_half_are_silent_agents_that_cannot_reach_a_node_either_decide(
    words: dict[str, Witness], out: list[str]
) -> None:
    picture = looked_at(with_job(silent(4), "n1", "n5").after(1.0), "n1").then(GRACE_S)
    assert touched(peers_say(looked_at(picture, "n1"), "n1", **words)) == out


def test_a_node_that_only_the_head_does_not_reach_is_let_be_though_the_head_reaches_most() -> None:
    picture = looked_at(with_job(silent(3), "n1", "n5").after(5.0), "n1").then(GRACE_S)
    assert touched(peers_say(looked_at(picture, "n1"), "n1", n6=YES)) == []
    assert touched(looked_at(picture, "n1")) == ["n1"]


def test_what_agents_said_before_the_loss_or_long_ago_counts_no_more() -> None:
    picture = looked_at(with_job(silent(4), "n1", "n5").after(1.0), "n1").then(GRACE_S)
    old = peers_say(picture, "n1", n5=NO, n6=NO).then(SEEN_ALIVE_S + 1.0)
    assert touched(looked_at(old, "n1")) == []
    before = peers_say(a_cluster(8).then(), "n1", n5=NO, n6=NO).after(1.0).agent_lost("n1", "n2", "n3", "n4").then()
    assert touched(looked_at(with_job(looked_at(before, "n1"), "n1", "n5").then(GRACE_S), "n1")) == []


def test_a_node_that_is_lost_later_is_looked_at_and_judged_on_its_own() -> None:
    picture = silent(4).after(100.0).then().agent_lost("n8")
    assert [a.node for a in picture.plan().actions if isinstance(a, ProbeNode)] == ["n8"]
    assert touched(looked_at(picture, "n8")) == ["n8"]


def fellows_gone(picture: Picture, *given: str) -> Picture:
    """The machines of these are stopped, as the provider says, and their repair has begun."""
    return taken_out(picture, *given).then(GRACE_S + 1.0)


def not_answering(picture: Picture, *given: str) -> Picture:
    return looked_at(picture, *given, result=Witness.SILENT)


def test_a_node_of_which_nobody_knows_is_not_judged_alone_because_its_fellows_are_gone_by_anothers_word() -> None:
    rest = fellows_gone(silent(5), "n1", "n2", "n3")
    assert touched(not_answering(rest, "n4", "n5")) == []
    later = rest.wait(60.0)
    assert touched(not_answering(later, "n4", "n5")) == []
    assert incident(later)


def test_nor_when_the_new_machines_of_its_fellows_are_heard() -> None:
    replaced = fellows_gone(silent(5), "n1", "n2", "n3").heard("n1", "n2", "n3").then(GRACE_S + 1.0)
    assert touched(not_answering(replaced, "n4", "n5")) == []
    assert touched(not_answering(replaced.then(GRACE_S + 1.0), "n4", "n5")) == []


def test_nor_when_its_fellows_were_found_gone_by_looks() -> None:
    picture = looked_at(with_job(silent(3), "n1", "n5").after(5.0), "n1").then(GRACE_S)
    out = looked_at(picture, "n1").then().marked("n1").then(GRACE_S + 1.0)
    assert step_of(out, "n1") is not CaseStep.SUSPECT
    assert touched(not_answering(out.then(GRACE_S + 1.0), "n2", "n3")) == []


def test_the_new_machine_of_a_fellow_is_judged_by_itself_when_it_dies_too() -> None:
    replaced = fellows_gone(silent(5), "n1", "n2", "n3").heard("n1", "n2", "n3").then(GRACE_S)
    closed = replace(replaced, memory=replace(replaced.memory, cases={}))
    for name in ("n1", "n2", "n3"):
        closed = closed.node(name, base=NodeBase.IDLE, flags=frozenset(), reason=None)
    assert touched(closed.see(instances=a_cluster(8).seen.instances).then(1.0).lost("n1")) == ["n1"]


def test_nor_when_its_fellows_are_known_to_be_gone_at_the_first_look_at_all_of_them() -> None:
    picture = stopped(a_cluster(8).then().after(30.0).agent_lost("n1", "n2", "n4", "n5", ago_s=20.0), "n1", "n2")
    assert touched(not_answering(picture, "n4", "n5")) == ["n1", "n2"]
    first = picture.plan().memory.incidents["agents"]
    assert (first.fate_unknown, first.known_gone) == (names("n4", "n5"), names("n1", "n2"))
    assert not {"n4", "n5"} & {*touched(not_answering(picture.then(GRACE_S).then(GRACE_S), "n4", "n5"))}


def ruled_lost(picture: Picture, *given: str) -> Picture:
    """Somebody says that they are gone, and their cases are under way."""
    ruled = stopped(picture.after(1.0), *given).then(0.1)
    for name in given:
        ruled = ruled.marked(name)
    return ruled.then(1.0)


@pytest.mark.parametrize(("later_s", "alone"), [(5.0, []), (60.0, ["n4"])], ids=["soon after them", "much later"])
def test_one_that_falls_silent_soon_after_others_that_were_lost_counts_with_them(
    later_s: float, alone: list[str]
) -> None:
    rest = ruled_lost(silent(), "n1", "n2", "n3")
    assert rest.memory.incidents["agents"].over is not None
    cut = rest.after(later_s).agent_lost("n4").then(1.0).then(2.0)
    assert touched(not_answering(cut, "n4")) == alone


def test_so_it_does_when_the_clock_was_set_forward_just_before_the_others_were_missed() -> None:
    long_ago = silent()
    for name in ("n1", "n2", "n3"):
        long_ago = long_ago.agent(name, last_heard=long_ago.now - 3600.0)
    cut = ruled_lost(long_ago.then(), "n1", "n2", "n3").after(5.0).agent_lost("n4").then(1.0).then(2.0)
    assert touched(not_answering(cut, "n4")) == []


def test_such_an_incident_is_over_when_the_others_are_heard_or_gone_by_anothers_word_too() -> None:
    rest = fellows_gone(silent(5), "n1", "n2", "n3")
    heard = rest.heard("n4").then(1.0)
    assert "waits" not in incident(heard)
    assert "incident.over" in [event.kind for event in heard.heard("n5").plan().events]
    known = down_by_slurm(heard.then(GRACE_S), "n5")
    assert touched(known) == ["n5"]
    assert "incident.over" in [event.kind for event in known.plan().events]


def test_where_most_of_an_incident_were_heard_again_the_few_others_are_judged_by_themselves() -> None:
    back = fellows_gone(silent(5), "n1").heard("n2", "n3", "n4").then(1.0).then(GRACE_S)
    assert touched(looked_at(back.then(1.0), "n5")) == ["n5"]


def test_a_head_that_begins_anew_waits_on_for_the_nodes_of_an_incident() -> None:
    rest = fellows_gone(silent(5), "n1", "n2", "n3")
    views = {name: view for name, view in rest.seen.agents.items() if view.is_heard}
    anew = rest.see(agents=views, agents_since=rest.now)
    later = anew.wait(GRACE_S + 5.0, 1.0)
    assert [event.kind for event in anew.plan().events] == []
    assert incident(later)
    assert later.memory.incidents["agents"].fate_unknown == names("n4", "n5")


def test_nodes_that_were_heard_again_before_the_head_began_anew_count_as_heard_after_it() -> None:
    back = fellows_gone(silent(5), "n1").heard("n2", "n3", "n4").then(1.0)
    never = replace(back.seen.agents[n("n5")], lost_at=None, last_heard=0.0)
    views = {name: back.seen.agents[name] for name in names("n2", "n3", "n4", "n6", "n7", "n8")}
    begun = back.see(agents={n("n5"): never}, agents_since=back.now).then(1.0)
    here = begun.see(agents={**views, n("n5"): never}).wait(2.0 * GRACE_S, 1.0).then(1.0)
    assert touched(looked_at(here, "n5")) == ["n5"]


def test_no_breaker_holds_or_counts_what_is_surely_gone() -> None:
    picture = silent(4, breaker_min=2)
    gone = stopped(picture.after(1.0), "n1", "n2", "n3", "n4")
    assert touched(gone) == ["n1", "n2", "n3", "n4"]
    marked = gone.then()
    for name in ("n1", "n2", "n3", "n4"):
        marked = marked.marked(name)
    later = marked.then(100.0)
    assert later.memory.breakers == {}
    assert touched(later.lost("n8")) == ["n8"]


def test_a_lost_node_that_a_breaker_holds_is_taken_out_for_its_job_all_the_same() -> None:
    """Lost one after the other, too far apart for an incident."""
    picture = a_cluster(8, breaker_min=1, breaker_percent=0.0).lost("n8").then().marked("n8").then(100.0)
    held = with_job(picture.lost("n1"), "n1", "n2").then(1.0)
    assert touched(looked_at(held, "n1")) == []
    assert touched(looked_at(held.then(GRACE_S), "n1")) == ["n1"]


def test_a_requeued_job_is_kept_off_nodes_that_fell_silent_together() -> None:
    picture = with_job(silent(3), "n4", "n5").then(1.0).requeued().then(2.0).then(2.0)
    nudge = next(a for a in picture.plan().actions if isinstance(a, NudgeJob))
    assert nudge.exclude == names("n1", "n2", "n3")


def taken_out(picture: Picture, *given: str) -> Picture:
    """Gone by the provider's word, and out; whose turn it is not waits."""
    out = stopped(picture.after(1.0), *given).then()
    for name in given:
        out = out.marked(name)
    return out.then(1.0)


def step_of(picture: Picture, name: str) -> CaseStep:
    return next(case.step for case in picture.memory.cases.values() if case.node == name)


def test_a_machine_that_is_heard_again_before_its_turn_is_checked_and_given_back() -> None:
    picture = taken_out(silent(3), "n1", "n2", "n3")
    assert [step_of(picture, name) for name in ("n1", "n2", "n3")] == [
        CaseStep.LAUNCH,
        CaseStep.RELEASE,
        CaseStep.RELEASE,
    ]
    heard = picture.heard("n1", "n2", "n3").then(1.0)
    rungs = {case.node: case.rung for case in heard.memory.cases.values()}
    assert rungs == {"n1": Advice.REPLACE, "n2": Advice.NONE, "n3": Advice.NONE}


def test_so_is_one_that_nobody_could_replace() -> None:
    lost = silent(3, provider=False).after(300.0)
    picture = down_by_slurm(lost, "n1", "n2", "n3").then()
    for name in ("n1", "n2", "n3"):
        picture = picture.marked(name)
    held = picture.then(1.0).then()
    assert step_of(held, "n1") is CaseStep.HELD
    heard = held.node("n1", responding=True).heard("n1").then(1.0)
    assert step_of(heard, "n1") is CaseStep.VERIFY
    assert step_of(heard, "n2") is CaseStep.HELD


def shut_down(count: int, of: int, silent: int = 0, *, leaves: bool = False) -> Picture:
    """n1.. said that their hosts shut down, as the next ones, which fell silent at the same time, did not."""
    told, others = ([f"n{i}" for i in range(start, start + many)] for start, many in ((1, count), (count + 1, silent)))
    picture = a_cluster(of).then().after(1.0).agent_lost(*told, *others)
    for name in told:
        picture = picture.agent(name, host_ends=True, leaves=leaves)
    return looked_at(looked_at(picture, *others), *told, result=Witness.REFUSED)


def test_hosts_that_said_that_they_shut_down_are_no_incident_however_many() -> None:
    picture = shut_down(3, of=3)
    assert touched(picture) == ["n1", "n2", "n3"]
    assert picture.plan().memory.incidents == {}


def test_such_hosts_say_nothing_of_those_that_fell_silent_beside_them() -> None:
    picture = shut_down(3, of=8, silent=4)
    assert touched(picture) == ["n1", "n2", "n3"]
    assert "1 of 5 nodes are reached" in incident(picture)


def test_a_head_that_began_anew_knows_which_hosts_shut_down() -> None:
    picture = shut_down(3, of=3).then(1.0)
    for name in ("n1", "n2", "n3"):
        picture = picture.agent(name, incarnation=None, host_ends=False)
    assert picture.plan().memory.incidents == {}


def test_agents_that_were_told_to_end_with_the_slurm_daemons_of_their_hosts_are_one() -> None:
    """Their hosts may live on: somebody may stop all services everywhere."""
    picture = shut_down(3, of=3, leaves=True)
    assert touched(picture) == []
    assert "all of them were told to end" in incident(picture)
