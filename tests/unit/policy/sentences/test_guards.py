"""The same of what a repair waits for, and of what keeps it from beginning."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.case import CaseStep
from steward.model.group import Goal
from steward.model.health import Advice, Incarnation, Scope, Severity
from steward.model.ids import BootId
from steward.model.instance import Instance, InstanceState
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.model.setting_types import RepairMode
from steward.model.witness import Witness
from tests.builders import site
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.picture import T0, Picture, a_cluster, an_agent, n
from tests.builders.sentences import Case, Row
from tests.builders.slurm_drains import slurm_drains
from tests.unit.policy.case import test_repair as repair
from tests.unit.policy.case import test_silence as silence
from tests.unit.policy.case import test_slurm_faults as faults
from tests.unit.policy.guards import test_approval as approval
from tests.unit.policy.guards import test_breaker as breaker
from tests.unit.policy.guards import test_budget as budget
from tests.unit.policy.guards import test_canary as canary
from tests.unit.policy.guards import test_ladder as ladder
from tests.unit.policy.guards import test_lemons as lemons
from tests.unit.policy.guards import test_one_user as one_user
from tests.unit.policy.sentences.test_cases import (
    BAD,
    back_but_held,
    lost_on_site,
    refused,
    two_lost,
    verifying,
    waiting_for_jobs,
)
from tests.unit.policy.sentences.test_nodes import (
    KILL,
    at_step,
    degraded,
    out,
    remembered,
    repaired_before,
    said,
    trial,
)
from tests.unit.policy.views import test_node_verdict as verdict


def degraded_out(**settings: Any) -> Picture:
    return verdict.degraded(a_cluster(**settings)).then().marked("n2").then(1)


def lost_and_out() -> Picture:
    return a_cluster().lost("n2").then().marked("n2")


def asking(advice: Advice = Advice.REPLACE, hardware: str = "") -> Picture:
    failing = ladder.failing(a_cluster(mode=RepairMode.ASK), advice, hardware)
    return failing.then().marked("n2")


def with_page(picture: Picture) -> Picture:
    return replace(picture, want=replace(picture.want, page_url="https://steward.example.org/"))


GUARDS: list[Row] = [
    (
        "waits for your approval to replace its machine: `steward approve c1`",
        lambda: approval.asking(),
        lambda: approval.approved(approval.asking()),
    ),
    ("waits for your approval to restart a service on it", lambda: asking(Advice.RESTART_SERVICE, "munge"), asking),
    ("waits for your approval to reset its GPU", lambda: asking(Advice.RESET_GPU, ladder.GPU), asking),
    (
        "n2 takes no more jobs; Steward asks to replace its machine: check svc.munge failed on n2",
        asking,
        lambda: degraded().then().marked("n2"),
    ),
    (". Look at it: https://steward.example.org/case/c1", lambda: with_page(asking()), asking),
    (
        "waits for its turn: 1 of at most 1 repairs run (n2)",
        lambda: two_lost(),
        lambda: two_lost(concurrent_min=2),
    ),
    (
        "waits for its turn: 1 repairs run in the whole cluster (limit 1)",
        lambda: two_lost(concurrent_min=2, concurrent_all_count=1),
        lambda: two_lost(),
    ),
    (
        "waits: 1 repairs began within the hour (limit 1)",
        lambda: two_lost(concurrent_min=2, replacements_per_hour=1),
        lambda: two_lost(concurrent_min=2),
    ),
    (
        "waits for the provider: its machines cannot be listed now",
        lambda: a_cluster().lost("n2").then().marked("n2").see(provider=Freshness.OLD).then(1),
        lambda: two_lost(),
    ),
    (
        "waits: the node came back from its last repair less than ",
        lambda: again(60.0),
        lambda: again(86_400.0),
    ),
    (
        "waits for the end of its maintenance (a reservation of Slurm with the flag MAINT)",
        lambda: lost_and_out().node("n2", flags=frozenset({"DRAIN", "MAINTENANCE"})).then(),
        lambda: lost_and_out().then(),
    ),
    (
        "waits for the end of the incident check:disk: many nodes have this fault at once",
        lambda: with_others(degraded_out(concurrent_min=0, concurrent_percent=0.0), "n3", "n4", "n5"),
        lambda: with_others(degraded_out(concurrent_min=0, concurrent_percent=0.0), "n3"),
    ),
    (
        "nodes fail disk at once: one cause in common, no node is touched for it",
        lambda: with_others(degraded(), "n3", "n4", "n5"),
        lambda: with_others(degraded(), "n3"),
    ),
    (
        "nodes were taken out for what a job can bring about (slurm.kill_task_failed)",
        lambda: slurm_drains(a_cluster(100), KILL, *(f"n{number}" for number in range(1, 9))),
        lambda: slurm_drains(a_cluster(100), KILL),
    ),
    (
        "many nodes have it at once: one cause in common",
        lambda: with_others(degraded(), "n3", "n4", "n5").then(1),
        lambda: with_others(degraded(), "n3").then(1),
    ),
    (
        "nodes report a shared fault (disk): a fault of the cluster",
        lambda: degraded(scope=Scope.CLUSTER),
        lambda: degraded(),
    ),
    ("check:disk: over after ", lambda: incident_over(), lambda: with_others(degraded(), "n3", "n4", "n5").then(1)),
    ("Part of an incident of the cluster: 4 of 8 agents", lambda: silence.silent(4), lambda: out()),
    (
        "many nodes fell silent at once, and no other source says that this one is gone",
        lambda: silence.looked_at(silence.silent(4), "n2"),
        lambda: silence.looked_at(silence.silent(1), "n1"),
    ),
    (
        "4 of 8 agents went silent at once",
        lambda: silence.silent(4).see(),
        lambda: silence.silent(1),
    ),
    (
        "all of them were told to end: nothing is done until one is heard again or its provider says that it is gone",
        lambda: everywhere_silent(leaves=True),
        lambda: everywhere_silent(),
    ),
    (
        "the head reaches no node, probably its own network is down: nothing is done until one is heard again",
        lambda: everywhere_silent(),
        lambda: everywhere_silent(leaves=True),
    ),
    (
        "5 of 8 nodes are reached: silent ones with jobs to bring back are taken out after a while, the others when "
        "Slurm or the provider says that they are gone",
        lambda: silence.silent(3),
        lambda: silence.silent(5),
    ),
    (
        "3 of 8 nodes are reached, too few to tell who is cut off: a silent one is taken out when Slurm, the provider "
        "or agents that are heard say that it is gone",
        lambda: silence.silent(5),
        lambda: silence.silent(3),
    ),
    (
        "agents: over after ",
        lambda: silence.silent(3).heard("n1", "n2", "n3"),
        lambda: silence.silent(3).then(20.0),
    ),
    (
        "its slurmd does not answer n5 nor n6 either, which are heard",
        lambda: peers_say(n5=silence.NO, n6=silence.NO),
        lambda: peers_say(n5=silence.NO),
    ),
    (
        "Slurm has it DOWN",
        lambda: silence.down_by_slurm(silence.silent(4).after(300.0), "n2"),
        lambda: silence.silent(4).after(300.0),
    ),
    (
        "its agent said that its host shuts down",
        lambda: a_cluster().lost("n2").agent("n2", host_ends=True),
        lambda: a_cluster().lost("n2"),
    ),
    (
        "Breaker: breaker check:disk: 2 nodes were taken out for it within ",
        lambda: tripped(),
        lambda: (tripped()[0], "n6"),
    ),
    ("; one repair is let through in ", lambda: tripped(), lambda: (tripped()[0], "n6")),
    (
        "and one more would be taken out (limit 2): report only until `steward breaker reset check:disk`, or until a "
        "first repair that is let through ends well",
        lambda: tripped(),
        lambda: (breaker.failing_one_by_one("n1"), "n1"),
    ),
    (
        "breaker group:main: 2 nodes are out of service by our own action",
        lambda: (budget.two_out().lost("n3"), "n3"),
        lambda: (a_cluster().lost("n3"), "n3"),
    ),
    (
        "breaker check:disk: one repair is let through, n3; it ends well, or the breaker trips again",
        lambda: (breaker.half_open(), "n3"),
        lambda: (breaker.half_open().after(-breaker.PATIENCE_S / 2), "n3"),
    ),
    (
        "breaker check:disk: closed, the repair of n3 ended well",
        lambda: half_open_then(CaseStep.CLOSED),
        lambda: half_open_then(CaseStep.HELD),
    ),
    (
        "breaker check:disk: the repair of n3 did not end well; the next one in 60 min",
        lambda: half_open_then(CaseStep.HELD),
        lambda: half_open_then(CaseStep.CLOSED),
    ),
    (
        "quarantine: n2 was lost 3 times in ",
        lambda: back_but_held_often(3),
        lambda: back_but_held_often(2),
    ),
    (
        "quarantine: i-n2 was repaired 3 times in ",
        lambda: often_repaired(3),
        lambda: often_repaired(1),
    ),
    (
        "quarantine: the machine of n2 was replaced 3 times in a day",
        lambda: often_replaced(3),
        lambda: often_replaced(1),
    ),
    (
        "quarantine: n2 was repaired 3 times in ",
        lambda: node_often_repaired(3),
        lambda: node_often_repaired(1),
    ),
    (
        f"one job alone can bring about '{KILL}', and no machine is replaced for what a job can do",
        lambda: faults.rebooted_before(faults.not_ended(), 2).wait(600.0),
        lambda: faults.rebooted_before(faults.not_ended(), 1).wait(600.0),
    ),
    (": a person must look", lambda: often_repaired(3), lambda: often_repaired(1)),
    (
        "a person gave the node back, or took it over, although it has this fault: that stands",
        lambda: given_back(),
        lambda: degraded(),
    ),
    (
        "a reservation of Slurm has it in maintenance (flag MAINT): it is left alone until that ends",
        lambda: degraded().node("n2", flags=frozenset({"MAINTENANCE"})),
        lambda: degraded(),
    ),
    (
        "a person or a tool took the node out (fan)",
        lambda: degraded().drained("n2", "fan"),
        lambda: degraded(),
    ),
    (
        "a person or a tool took the node out (no reason given)",
        lambda: degraded().node("n2", flags=frozenset({"DRAIN"})),
        lambda: degraded().drained("n2", "fan"),
    ),
    (
        "a reservation of Slurm has it in maintenance (flag MAINT): it is left alone until that ends",
        lambda: degraded().node("n2", flags=frozenset({"MAINTENANCE"})),
        lambda: degraded().node("n3", flags=frozenset({"MAINTENANCE"})),
    ),
    (
        "waits for the end of its maintenance (a reservation of Slurm with the flag MAINT)",
        lambda: waiting_for_jobs().node("n2", base=NodeBase.IDLE, flags=frozenset({"DRAIN", "MAINTENANCE"})),
        lambda: waiting_for_jobs().node("n2", base=NodeBase.IDLE),
    ),
    (
        "the cluster's NodeRecovery is None",
        lambda: (failing_worker().cluster(recovery=False), "workers-2"),
        lambda: (failing_worker(), "workers-2"),
    ),
    (
        'the recovery of group main is "none"',
        lambda: unrepaired("main"),
        lambda: unrepaired("other"),
    ),
    (
        "group workers would fall below its minimum (3 serve, 3 must)",
        lambda: (failing_worker(minimum=3), "workers-2"),
        lambda: (failing_worker(minimum=2), "workers-2"),
    ),
    (
        "its provider has no command that reboots a machine: reboot n2 by hand, then give it back",
        lambda: site.a_site("s1").drained("n2", "Action:Reboot"),
        lambda: site.a_site("s1", reboots=True).drained("n2", "Action:Reboot"),
    ),
    (
        "its machine is fixed and no spare is named for it: repair n2 by hand, then give it back",
        lambda: site.a_site().drained("n2", "Action:Replace"),
        lambda: site.a_site("s1").drained("n2", "Action:Replace"),
    ),
]


def again(later_s: float) -> Picture:
    back = repair.back(repair.sound(verifying())).then(later_s)
    return verdict.degraded(back, at=back.now).then().marked("n2").then(1)


def with_others(picture: Picture, *others: str) -> Picture:
    for name in others:
        picture = verdict.degraded(picture, name, at=picture.now)
    return picture.then(1)


def incident_over() -> Picture:
    many = with_others(degraded(), "n3", "n4", "n5")
    for name in ("n2", "n3", "n4", "n5"):
        many = many.agent(name, findings=())
    return many


def everywhere_silent(**agent: Any) -> Picture:
    picture = a_cluster(8).then().after(1.0).agent_lost(*(f"n{i}" for i in range(1, 9)))
    for i in range(1, 9):
        picture = picture.agent(f"n{i}", **agent)
    return picture


def peers_say(**words: Witness) -> tuple[Picture, str]:
    with_job = silence.with_job(silence.silent(4), "n1", "n5").after(1.0)
    picture = silence.looked_at(silence.looked_at(with_job, "n1").then(silence.GRACE_S), "n1")
    return silence.peers_say(picture, "n1", **words), "n1"


def tripped() -> tuple[Picture, str]:
    return breaker.failing_one_by_one("n1", "n2").failing("n3", Severity.DEGRADED, check="disk", event=False), "n3"


def half_open_then(step: CaseStep) -> tuple[Picture, str]:
    picture = breaker.half_open().then(300)
    returned = picture.now if step is CaseStep.CLOSED else None
    return breaker.ended(picture, step=step, closed=returned, returned=returned).agent("n3", findings=()), "n3"


def back_but_held_often(times: int) -> Picture:
    done = (replace(lemons.remedy(Advice.NONE, case=f"old-{i}", node="n2"), check="agent") for i in range(times))
    return remembered(*done, picture=back_but_held())


def often_repaired(times: int) -> Picture:
    return ladder.out(ladder.remembered(degraded(), *(Advice.REBOOT,) * times, ago_s=200_000.0))


def often_replaced(times: int) -> Picture:
    others = repaired_before(*(Advice.REPLACE,) * times, failing=degraded())
    remedies = {"i-old": others.memory.remedies["i-n2"]}
    return ladder.out(replace(others, memory=replace(others.memory, remedies=remedies)))


def node_often_repaired(times: int) -> Picture:
    picture = degraded()
    history = {n("n2"): tuple(T0 - 7200.0 * i for i in range(1, times + 1))}
    return ladder.out(replace(picture, memory=replace(picture.memory, history=history)))


def given_back() -> Picture:
    picture = degraded().then().marked("n2").then(1)
    return picture.node("n2", flags=frozenset(), reason=None).then(5).then(5)


def failing_worker(minimum: int = 0) -> ApiPicture:
    picture = an_api_cluster().change_group("workers", goal=Goal(target=3, minimum=minimum))
    bad = replace(BAD, advice=Advice.REPLACE)
    return picture.agent("workers-2", findings=(bad,))


def unrepaired(group: str) -> Picture:
    return replace(degraded(), want=replace(degraded().want, unrepaired=frozenset({group})))


def mended_in_vain() -> Picture:
    """The GPU was reset, and the event is there again."""
    failing = a_cluster().failing("n2", Severity.FATAL, advice=Advice.RESET_GPU, hardware=ladder.GPU)
    verifying = ladder.told(ladder.out(failing))
    return verifying.after(2.0).agent("n2", checked_at=verifying.now + 2.0)


def rebooting() -> Picture:
    """The reboot of n2 was asked for."""
    return ladder.out(ladder.failing(a_cluster(), Advice.REBOOT, "")).then(1)


FACTS: list[Row] = [
    (
        "n2: the fault is gone: its agent is back, slurmd answers, or the check passes",
        lambda: a_cluster().agent_lost("n2").then(0.1).heard("n2"),
        lambda: a_cluster().agent_lost("n2").then(0.1),
    ),
    (
        "n2: many nodes at once: not this node's fault",
        lambda: a_cluster(8).agent_lost("n2").then(0.1).agent_lost("n3", "n4", "n5"),
        lambda: a_cluster(8).agent_lost("n2").then(0.1).agent_lost("n3"),
    ),
    (
        "n2: drain -> closed: an admin gave a new command",
        lambda: degraded().then(1).drained("n2", "Action:Reboot"),
        lambda: degraded().then(1).drained("n2", "fan"),
    ),
    (
        "n2: drain -> closed: the node is out of service, but not by Steward",
        lambda: degraded().then(1).drained("n2", "fan"),
        lambda: degraded().then(1).drained("n2", "Action:Reboot"),
    ),
    (
        "n2: release -> drain: the node died, or a fatal fault was found",
        lambda: waiting_for_jobs().failing("n2"),
        lambda: waiting_for_jobs(),
    ),
    (
        "n2: release -> held: no provider can replace this node",
        lambda: a_cluster(provider=False).lost("n2").then().marked("n2"),
        lambda: a_cluster().lost("n2").then().marked("n2"),
    ),
    (
        "too many repairs of this node or its hardware lately: quarantine",
        lambda: ladder.remembered(degraded(), *(Advice.REBOOT,) * 3, ago_s=200_000.0).then().marked("n2"),
        lambda: ladder.remembered(degraded(), Advice.REBOOT, ago_s=200_000.0).then().marked("n2"),
    ),
    (
        "this remedy was tried too often lately, the next one is due",
        lambda: used_up(3),
        lambda: used_up(1),
    ),
    (
        "n2: release -> mend: no job is on the node, it is its turn: a light repair comes first, or the checks alone",
        lambda: ladder.failing(a_cluster(), Advice.RESTART_SERVICE, "munge").then().marked("n2"),
        lambda: ladder.failing(a_cluster(), Advice.REPLACE, "").then().marked("n2"),
    ),
    (
        "n2: release -> launch: no job can continue on the node, and it is its turn",
        lambda: ladder.failing(a_cluster(), Advice.REPLACE, "").then().marked("n2"),
        lambda: waiting_for_jobs(seen=False),
    ),
    (
        "n2: verify -> release: the light repair did not help, the next remedy is due",
        lambda: mended_in_vain(),
        lambda: mended_in_vain().agent("n2", findings=()),
    ),
    (
        "n2: launch -> provision: the new instance exists",
        lambda: listed(),
        lambda: repair.launching().then(1),
    ),
    (
        "n2: release -> release: the lost machine is heard again: its checks decide",
        lambda: approval.asking().heard("n2"),
        lambda: out().heard("n2"),
    ),
    (
        "n2: provision -> verify: the agent of the new or rebooted machine is connected",
        lambda: connected(),
        lambda: repair.launched(repair.launching()),
    ),
    (
        "n2: provision -> launch: the new or rebooted machine failed, another try follows",
        lambda: vanished(),
        lambda: vanished(max_launches=1),
    ),
    (
        "n2: provision -> held: the new or rebooted machine failed, and no try is left",
        lambda: vanished(max_launches=1),
        lambda: vanished(),
    ),
    (
        "n2: held -> verify: the new machine came after its deadline: its checks decide",
        lambda: at_step(CaseStep.HELD, connected()),
        lambda: at_step(CaseStep.HELD, repair.launched(repair.launching())),
    ),
    (
        "n2: launch -> held: the provider refused too often",
        lambda: at_step(CaseStep.LAUNCH, repair.launching(), tries=50, refusals=50),
        lambda: refused(1),
    ),
    (
        "n2: launch -> launch: the reboot did not help",
        lambda: rebooting().repair(launch_timeout_s=100.0).wait(90.0).after(12.0),
        lambda: rebooting(),
    ),
    (
        "n2: return -> held: a spare serves in its place, and the node itself is left to a person",
        lambda: site.free(site.lent(lost_on_site("s1")).checked("s1").then(1), "s1"),
        lambda: site.lent(lost_on_site("s1")).checked("s1").then(1),
    ),
    (
        "n2: return -> closed: Slurm starts jobs on the node again",
        lambda: repair.sound(verifying()).node("n2", base=NodeBase.IDLE, flags=frozenset(), reason=None),
        lambda: repair.sound(verifying()),
    ),
    (
        "n2: drain -> held: the step's deadline passed",
        lambda: a_cluster().lost("n2").wait(50.0).after(12.0),
        lambda: a_cluster().lost("n2").then(1.0),
    ),
]


def used_up(times: int) -> Picture:
    picture = ladder.failing(ladder.without_probation(a_cluster()), Advice.RESTART_SERVICE, "munge")
    return ladder.remembered(picture, *(Advice.RESTART_SERVICE,) * times).then().marked("n2")


def listed() -> Picture:
    """The provider lists the machine that was asked for."""
    picture = repair.launching().then(1)
    new = Instance(id=repair.NEW, node=n("n2"), state=InstanceState.RUNNING, token=repair.case_of(picture).token)
    return picture.see(instances={**picture.seen.instances, repair.NEW: new})


def connected() -> Picture:
    """The agent of the new machine is connected, as is seen for the first time."""
    picture = repair.launched(repair.launching())
    who = Incarnation(instance=repair.NEW, boot=BootId("b9"))
    view = replace(an_agent(n("n2")), incarnation=who, last_heard=picture.now)
    return picture.see(agents={**picture.seen.agents, n("n2"): view})


def vanished(**settings: Any) -> Picture:
    picture = repair.launched(repair.launching().repair(**settings))
    return picture.see(instances={k: v for k, v in picture.seen.instances.items() if k != repair.NEW})


TRIALS: list[Row] = [
    (
        "check site.fabric is new: it only reports until 5 nodes had results for 4 h",
        lambda: canary.versions(canary.a_site(), "v1"),
        lambda: canary.armed(),
    ),
    (
        "check site.fabric may take nodes out from now on: 0 of 20 nodes failed (0.0%; at most 5.0%, it has no "
        "previous version)",
        lambda: canary.versions(canary.a_site(), "v1").then(4 * canary.HOUR_S),
        lambda: canary.versions(canary.a_site(), "v1").then(3 * canary.HOUR_S),
    ),
    (
        "check site.fabric fails too often: 3 of 20 nodes failed (15.0%; at most 5.0%, it has no previous version); it "
        "goes on reporting only until `steward check arm site.fabric`, or until it is changed",
        lambda: trial("n1", "n2", "n3").then(4 * canary.HOUR_S),
        lambda: canary.versions(canary.a_site(), "v1").then(4 * canary.HOUR_S),
    ),
    (
        "0.0% with its previous version",
        lambda: canary.versions(canary.versions(canary.armed(), "v2").then(), "v2").then(4 * canary.HOUR_S),
        lambda: canary.versions(canary.a_site(), "v1").then(4 * canary.HOUR_S),
    ),
]


ONE_USER: list[Row] = [
    (
        "n4: one user's jobs broke n[1-3] in the same way (kernel_log) soon after they began, within 4 hours",
        lambda: (one_user.one_more(), "n4"),
        lambda: (one_user.one_more(one_user.OTHER), "n4"),
    ),
    (
        ": its machine is rebooted and checked, not replaced",
        lambda: (one_user.one_more(), "n4"),
        lambda: (one_user.one_more(one_user.OTHER), "n4"),
    ),
    (
        "within 4 hours, and no machine is replaced for what a job can do",
        lambda: (one_user.often().then(1.0), "n4"),
        lambda: (one_user.often(one_user.OTHER).then(1.0), "n4"),
    ),
]
ROWS = [*FACTS, *GUARDS, *TRIALS, *ONE_USER]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())
