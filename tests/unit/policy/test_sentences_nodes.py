"""The same of the sentences about a node: its verdict, its checks, its repair and what that waits for."""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from steward.model.case import Blow, Step
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepState
from steward.model.group import Goal
from steward.model.health import Advice, Finding, Incarnation, Outcome, Scope, Severity
from steward.model.ids import BootId, InstanceId
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.job import JobState
from steward.model.memory import NodeMemory
from steward.model.node import NodeBase, Reason
from steward.model.observed import Freshness
from steward.model.reservation import Reservation
from steward.model.setting_types import RepairMode
from steward.model.slot import Purpose, SlotStep
from steward.model.witness import Witness
from steward.policy.controls import pause
from steward.policy.plan import plan
from steward.views.explain import explain_node
from tests.builders import site
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.deep import a_run
from tests.builders.picture import T0, Picture, a_cluster, an_agent, n
from tests.builders.sentences import ROOT, Case, Row, lacking
from tests.builders.want import but
from tests.unit.policy import test_approval as approval
from tests.unit.policy import test_breaker as breaker
from tests.unit.policy import test_broken_launch as launch
from tests.unit.policy import test_budget as budget
from tests.unit.policy import test_canary as canary
from tests.unit.policy import test_forgotten as forgotten
from tests.unit.policy import test_ladder as ladder
from tests.unit.policy import test_launch_test as launch_test
from tests.unit.policy import test_lemons as lemons
from tests.unit.policy import test_node_verdict as verdict
from tests.unit.policy import test_reason_incidents as reasons
from tests.unit.policy import test_repair as repair
from tests.unit.policy import test_silence as silence
from tests.unit.policy import test_slurm_faults as faults
from tests.unit.policy import test_spares as spares
from tests.unit.policy.test_slurm_faults import slurm_drains

KILL = "Kill task failed (JobId=7 StepId=0)"


def said(what: Any) -> str:
    """All that is said of n2, or of the node named beside the picture, before and after what is decided now."""
    if isinstance(what, str):
        return what
    picture, name = what if isinstance(what, tuple) else (what, "n2")
    now = picture.now if isinstance(picture, Picture) else T0
    decided = plan(replace(picture.seen, at=now), picture.want, picture.memory, now)
    lines = [
        line
        for memory in (picture.memory, decided.memory)
        for line in explain_node(n(name), picture.seen, picture.want, memory, now)
    ]
    return "\n".join([*lines, *(str(event.text) for event in decided.events), *(str(a.why) for a in decided.actions)])


def slot(node: str = "workers-2", **fields: Any) -> tuple[ApiPicture, str]:
    return an_api_cluster().slot(node, **{"entered": T0 - 5, **fields}), node


def without_agent(picture: Picture, name: str = "n2") -> Picture:
    return picture.see(agents={key: view for key, view in picture.seen.agents.items() if key != n(name)})


def at_step(step: Step, picture: Picture | None = None, **fields: Any) -> Picture:
    """The repair of n2, at this step."""
    begun = picture or out()
    cases = {id: replace(case, step=step, **fields) for id, case in begun.memory.cases.items()}
    return replace(begun, memory=replace(begun.memory, cases=cases))


def out() -> Picture:
    return a_cluster().lost("n2").then().marked("n2").then(1)


def degraded(**fields: Any) -> Picture:
    return verdict.degraded(a_cluster(), **fields)


def reported(mode: str = "report") -> Picture:
    return verdict.with_mode(degraded(), disk=mode)


def suspect(**deep: Any) -> Picture:
    picture = a_cluster().failing("n2", Severity.SUSPECT, check="gpu.slow", text="70 %", event=False)
    return replace(picture, want=replace(picture.want, deep=but(picture.want.deep, **deep)))


def deep_checked(state: DeepState, picture: Picture | None = None, **fields: Any) -> Picture:
    return verdict.remembering(picture or suspect(), cause=DeepCause.SUSPECT, state=state, **fields)


DEEP_PASSED: dict[str, Any] = {"results": {n("n2"): DeepResult.PASSED}, "ended": T0 - 5}


VERDICT: list[Row] = [
    ("n2: Slurm does not know this node.", lambda: a_cluster(1), a_cluster),
    ("n2: Slurm says IDLE.", a_cluster, lambda: a_cluster().node("n2", base=NodeBase.DOWN)),
    ("n2 is UNWATCHED: Slurm does not know it.", lambda: a_cluster(1), lambda: slot_without_node()),
    ("its group of the API does not use it", lambda: unused(), lambda: slot()),
    (
        "Its group of the API does not use it: nothing is done about it until one takes it.",
        lambda: unused(),
        lambda: unused("steward:slot:gone:s1"),
    ),
    (
        "The node left its group of the API and has no machine: a group that takes it makes one.",
        lambda: unused("steward:slot:gone:s1"),
        lambda: unused(),
    ),
    (
        "its slot in group workers is at step serving, and Slurm does not know it",
        lambda: slot_without_node(),
        lambda: slot(),
    ),
    (
        "its slot in group workers is at step provision",
        lambda: slot(step=SlotStep.PROVISION),
        lambda: slot(),
    ),
    (
        "deep check d1 (suspect) is running",
        lambda: deep_checked(DeepState.RUNNING),
        lambda: deep_checked(DeepState.WAITING),
    ),
    ("n2 is IN DEEP CHECK", lambda: deep_checked(DeepState.RUNNING), lambda: deep_checked(DeepState.WAITING)),
    ("its result decides", lambda: deep_checked(DeepState.RUNNING), lambda: deep_checked(DeepState.RESERVED)),
    (
        "its job begins; users' waiting jobs come first",
        lambda: deep_checked(DeepState.RESERVED),
        lambda: deep_checked(DeepState.RUNNING),
    ),
    (
        "out of service without a reason",
        lambda: a_cluster().node("n2", flags=frozenset({"DRAIN"})),
        lambda: a_cluster().drained("n2", "fan"),
    ),
    (
        "nothing: the person or tool that did it gives it back (`scontrol update nodename=n2 state=resume`)",
        lambda: a_cluster().drained("n2", "fan"),
        lambda: slurm_drains(a_cluster(), KILL),
    ),
    (
        "Taken out of service by a person or a tool: Steward leaves it alone.",
        lambda: a_cluster().drained("n2", "fan"),
        lambda: slurm_drains(a_cluster(), KILL),
    ),
    (
        "Taken out of service by Slurm itself (kind of reason: workload): given back when its checks pass",
        lambda: slurm_drains(a_cluster(), KILL),
        lambda: slurm_drains(a_cluster(), "fan"),
    ),
    (
        "Taken out of service by an admin, who asked for Action:Replace.",
        lambda: a_cluster().drained("n2", "Action:Replace"),
        lambda: a_cluster().drained("n2", "action replace"),
    ),
    (
        "No provider can replace it: Steward only takes it out of service and then needs a person.",
        lambda: a_cluster(provider=False),
        a_cluster,
    ),
    (
        "Steward drained it (reason steward:agent:replace:c",
        lambda: out(),
        lambda: a_cluster().drained("n2", "fan"),
    ),
    ("It returns to service after a successful repair.", lambda: out(), lambda: at_step(Step.HELD)),
    (
        "No repair is open, and nothing gives it back by itself. For a person: give it back with",
        lambda: orphan(),
        lambda: out(),
    ),
    (
        "Steward drained it (reason steward:...), and no repair is open",
        lambda: orphan(),
        lambda: out(),
    ),
    ("nothing by itself; for a person: give it back with", lambda: orphan(), lambda: out()),
    ("its agent is silent", lambda: without_agent(orphan()), lambda: orphan()),
    ("its slurmd is silent", lambda: orphan().node("n2", responding=False), lambda: orphan()),
    (
        'have it replaced with `scontrol update nodename=n2 state=fail reason="Action:Replace"`',
        lambda: without_agent(orphan()),
        lambda: without_agent(orphan(provider=False)),
    ),
    (
        "repair it, then give it back with `scontrol update nodename=n2 state=resume`",
        lambda: without_agent(orphan(provider=False)),
        lambda: without_agent(orphan()),
    ),
    (
        "its agent is awaited: the head has just begun to listen",
        lambda: without_agent(orphan().see(agents_since=T0 - 1)),
        lambda: without_agent(orphan()),
    ),
    ("Slurm has it POWERED_DOWN", lambda: asleep("POWERED_DOWN"), lambda: asleep("CLOUD")),
    (
        "no agent is expected here now",
        lambda: away_on_purpose(),
        lambda: without_agent(a_cluster()),
    ),
    (
        "no agent has come from this node yet: only Slurm says how it is",
        lambda: without_agent(a_cluster()),
        a_cluster,
    ),
    ("the agent is connected", a_cluster, lambda: a_cluster().agent_lost("n2")),
    ("the agent's heartbeat is overdue", lambda: a_cluster().agent("n2", late=True), a_cluster),
    (
        "lost when its connection ends or stays silent",
        lambda: a_cluster().agent("n2", late=True),
        lambda: agent_only(),
    ),
    ("agent lost 1.0 s ago: connection reset", lambda: a_cluster().agent_lost("n2"), a_cluster),
    (
        "the agent is gone but slurmd answers",
        lambda: agent_only(),
        lambda: a_cluster().agent_lost("n2").witnessed("n2", Witness.REFUSED),
    ),
    (
        "nothing: jobs run on; see whether steward-agent and munged run there",
        lambda: agent_only(),
        lambda: a_cluster().agent("n2", late=True),
    ),
    (
        "the agent is alive: it comes and is sent away",
        lambda: a_cluster().agent_lost("n2").agent("n2", dialled_at=T0),
        lambda: a_cluster().agent_lost("n2").agent("n2", dialled_at=T0 - 60),
    ),
    (
        "the agent is gone and a second source confirms it",
        lambda: a_cluster().lost("n2"),
        lambda: a_cluster().agent_lost("n2"),
    ),
    (
        "the agent was told to end and slurmd does not listen, as when both are restarted: Slurm's word is awaited",
        lambda: a_cluster().lost("n2").agent("n2", leaves=True),
        lambda: a_cluster().lost("n2"),
    ),
    (
        "the agent went away and slurmd's port gives no answer, as when it is full: Slurm's word is awaited",
        lambda: a_cluster().agent_lost("n2").witnessed("n2", Witness.UNANSWERED),
        lambda: a_cluster().lost("n2"),
    ),
    (
        "the agent is gone, a second source is awaited",
        lambda: a_cluster().agent_lost("n2"),
        lambda: a_cluster().lost("n2"),
    ),
    ("it did not connect after the head's start", lambda: not_back(), lambda: a_cluster().agent_lost("n2")),
    ("it did not connect when its node was back", lambda: not_back(60.0), lambda: not_back()),
    ("slurmd's port at n2:6818: refused", lambda: a_cluster().lost("n2"), lambda: a_cluster().agent_lost("n2")),
    (
        "provider: instance i-n2 is stopped",
        lambda: silence.stopped(a_cluster().agent_lost("n2"), "n2"),
        lambda: silence.stopped(a_cluster().agent_lost("n2"), "n3"),
    ),
    (
        "Slurm: the node does not respond",
        lambda: without_agent(a_cluster().then()).node("n2", responding=False).after(20_000),
        lambda: without_agent(a_cluster().then()).after(20_000),
    ),
    ("n2 is SUSPECT", lambda: suspect(), lambda: degraded()),
]


def slot_without_node() -> tuple[ApiPicture, str]:
    return an_api_cluster(2).without_node("workers-1"), "workers-1"


def unused(reason: str = "") -> tuple[ApiPicture, str]:
    """workers-2 is of a group that has no slot for it, drained for this reason."""
    picture = an_api_cluster()
    slots = {key: one for key, one in picture.memory.slots.items() if key != n("workers-2")}
    want = replace(picture.want, slots={n("workers-2"): Slot(node=n("workers-2"), group="workers")})
    unused = replace(picture.remember(slots=slots), want=want)
    given = Reason(text=reason, at=T0) if reason else None
    return unused.node("workers-2", flags=frozenset({"DRAIN"}) if reason else frozenset(), reason=given), "workers-2"


def orphan(*, provider: bool = True) -> Picture:
    return a_cluster(provider=provider).down("n2", "steward:agent:replace:c9-65f")


def asleep(flag: str) -> Picture:
    return without_agent(a_cluster()).node("n2", flags=frozenset({flag}))


def away_on_purpose() -> Picture:
    return a_cluster().then().agent_lost("n2").node("n2", flags=frozenset({"POWERED_DOWN"}))


def agent_only() -> Picture:
    return a_cluster().agent_lost("n2").witnessed("n2", Witness.ALIVE)


def not_back(back_ago_s: float = 0.0) -> Picture:
    """The head is new and does not hear n2, which Slurm had away and shows again since then."""
    picture = without_agent(a_cluster().then()).see(agents_since=T0 - 5000)
    if back_ago_s:
        nodes = {n("n2"): replace(picture.memory.nodes.get(n("n2"), NodeMemory()), back_at=T0 - back_ago_s)}
        picture = replace(picture, memory=replace(picture.memory, nodes=nodes))
    return picture


def findings(*, picture: Picture | None = None, name: str = "n2", **fields: Any) -> Picture:
    finding = Finding(**{"check": "memory", "outcome": Outcome.UNKNOWN, "text": "timed out", "at": T0, **fields})
    return (picture or a_cluster()).agent(name, findings=(finding,))


def trial(*failing: str, picture: Picture | None = None) -> Picture:
    return canary.failing(picture or canary.versions(canary.a_site(), "v1"), *(failing or ("n2",)))


CHECKS: list[Row] = [
    (
        "Check memory says unknown (since 0 s ago, never acted on): timed out",
        lambda: findings(),
        lambda: findings(outcome=Outcome.FAILED, severity=Severity.INFO),
    ),
    (
        "1 check does not apply here (no such hardware or tool): ib.state.",
        lambda: a_cluster().agent("n2", skipped=frozenset({"ib.state"})),
        lambda: a_cluster().agent("n2", passed=frozenset({"ib.state"})),
    ),
    (
        "its looks pass again since 5 s ago, not long enough yet",
        lambda: degraded(good_since=T0 - 5),
        lambda: degraded(),
    ),
    (
        "They pass since 60 s ago",
        lambda: a_cluster().agent("n2", passed=frozenset({"disk"}), passed_since=(int(T0) - 60,)),
        lambda: a_cluster().agent("n2", passed=frozenset({"disk"})),
    ),
    ("Check disk failed (degraded", lambda: degraded(), lambda: findings(check="disk")),
    (
        "; it only reports: no trial of this version has begun",
        lambda: trial(),
        lambda: canary.failing(canary.armed(), "n2"),
    ),
    (
        "; it only reports: on trial, `steward check trials`",
        lambda: trial().then(1),
        lambda: canary.failing(canary.armed(), "n2"),
    ),
    ("; a shared resource, no node is touched", lambda: degraded(scope=Scope.CLUSTER), lambda: degraded()),
    ("; mode report, no node is touched", lambda: reported(), lambda: degraded()),
    ("nothing: check disk only reports (mode in [checks.disk])", lambda: reported(), lambda: reported("drain")),
    (
        "a shared resource fails: no fault of this node",
        lambda: degraded(scope=Scope.CLUSTER),
        lambda: reported(),
    ),
    (
        "its agent has just come: no check has told yet",
        lambda: a_cluster().agent("n2", reported_at=0.0),
        a_cluster,
    ),
    (
        "0 checks passed; reported only: gpu.persist",
        lambda: a_cluster().failing("n2", Severity.INFO, check="gpu.persist"),
        a_cluster,
    ),
    (
        "Slurm says DOWN; its checks found no fault",
        lambda: a_cluster().node("n2", base=NodeBase.DOWN),
        lambda: degraded().node("n2", base=NodeBase.DOWN),
    ),
    (
        "back when slurmd answers, or by a person (`scontrol update nodename=n2 state=resume`)",
        lambda: a_cluster().node("n2", base=NodeBase.DOWN),
        a_cluster,
    ),
    (
        "Slurm gives it back after its reboot",
        lambda: rebooted_by_person("REBOOT_ISSUED"),
        lambda: rebooted_by_person("COMPLETING"),
    ),
    ("Node feature in Slurm: HealthCheck:Passed.", lambda: featured("HealthCheck:Passed"), lambda: featured("a100")),
    (
        "n2: idle, but Slurm still counts gpu:8 as used: no job that asks for them starts there, nor an exclusive one",
        lambda: leaking(),
        lambda: leaking().job(on=("n2",)),
    ),
    ("restart slurmctld: running jobs go on", lambda: leaking(), lambda: leaking().job(on=("n2",))),
    (
        "Slurm lost count, as it does when a node is set DOWN while a requeued job still cleans up there",
        lambda: leaking(),
        lambda: leaking().job(on=("n2",)),
    ),
    ("Machine: instance i-n2, boot boot-1.", a_cluster, lambda: a_cluster().agent("n2", incarnation=None)),
    ("No faults found; no repair open.", a_cluster, lambda: degraded()),
    ("check disk failed on n2 [node.degraded] (disk: / is full)", lambda: degraded(), lambda: reported()),
    ("rebooted unexpectedly 2 times in a week", lambda: rebooted(2), lambda: rebooted(1)),
    (
        "nothing: deep checks of suspects are off (deep.suspects)",
        lambda: suspect(suspects=False),
        lambda: suspect(),
    ),
    (
        "Next: deep check when it is idle.",
        lambda: deep_checked(DeepState.WAITING),
        lambda: deep_checked(DeepState.DONE, **DEEP_PASSED),
    ),
    (
        "deep check when it is idle next",
        lambda: suspect(),
        lambda: deep_checked(DeepState.DONE, **DEEP_PASSED),
    ),
    (
        "deep check d1 said Passed; again in ",
        lambda: deep_checked(DeepState.DONE, **DEEP_PASSED),
        lambda: deep_checked(DeepState.DONE, **DEEP_PASSED).after(90_000),
    ),
    (
        "Deep check d1 (suspect; InstanceStress): waiting, asked 60 s ago.",
        lambda: deep_checked(DeepState.WAITING),
        lambda: deep_checked(DeepState.DONE, **DEEP_PASSED),
    ),
    (
        "deep check d1 failed on n2",
        lambda: deep_checked(DeepState.DONE, a_cluster(), results={n("n2"): DeepResult.FAILED}, ended=T0 - 5),
        lambda: deep_checked(DeepState.DONE, a_cluster(), **DEEP_PASSED),
    ),
]


def rebooted_by_person(flag: str) -> Picture:
    return a_cluster().drained("n2", "steward:disk:reboot:c9-65f").node("n2", flags=frozenset({"DRAIN", flag}))


def featured(*features: str) -> Picture:
    return a_cluster().node("n2", active_features=frozenset(features))


def leaking() -> Picture:
    return a_cluster(3).see(gres_used={n("n2"): "gpu:8"}, gres_at=T0 - 30)


def remembered(*remedies: Any, key: str = "i-n2", picture: Picture | None = None) -> Picture:
    picture = picture or a_cluster()
    return replace(picture, memory=replace(picture.memory, remedies={key: remedies}))


def rebooted(times: int) -> Picture:
    done = (lemons.remedy(Advice.REBOOT, case=f"c{i}", node="n2") for i in range(times))
    return remembered(*(replace(one, check="slurm.rebooted") for one in done))


def hit(blow: Blow) -> Picture:
    return replace(a_cluster(), memory=replace(a_cluster().memory, mishaps={"i-n2": (lemons.mishap(blow),)}))


def repaired_before(*rungs: Advice, check: str = "x", node: str = "n2", failing: Picture | None = None) -> Picture:
    done = (replace(lemons.remedy(rung, case=f"old-{i}", node=node), check=check) for i, rung in enumerate(rungs))
    return remembered(*done, picture=failing)


HARDWARE: list[Row] = [
    (
        "Checked 0 s ago, nothing repaired, after kernel_log (case c1).",
        lambda: remembered(lemons.remedy(Advice.NONE)),
        lambda: remembered(lemons.remedy(Advice.REBOOT)),
    ),
    (
        "Done 0 s ago: reboot for kernel_log (case c1, hardware i-n2).",
        lambda: remembered(lemons.remedy(Advice.REBOOT)),
        lambda: remembered(lemons.remedy(Advice.NONE)),
    ),
    (
        "Lemon score 5.0 of i-n2: 5.0 (case c1: replace for kernel_log)",
        lambda: remembered(lemons.remedy(Advice.REPLACE)),
        lambda: remembered(lemons.remedy(Advice.REPLACE, node="n1"), key="i-n1"),
    ),
    (
        "; a candidate for quarantine",
        lambda: repaired_before(Advice.REPLACE, Advice.REPLACE),
        lambda: repaired_before(Advice.REPLACE),
    ),
    (
        "failed under a job of several nodes",
        lambda: hit(Blow.NODE_FAIL_OF_MANY),
        lambda: hit(Blow.NODE_FAIL),
    ),
    ("1.0 (failed under a job)", lambda: hit(Blow.NODE_FAIL), lambda: hit(Blow.NODE_FAIL_OF_MANY)),
    ("excluded by a user", lambda: hit(Blow.EXCLUDED), lambda: hit(Blow.NODE_FAIL)),
]


def held(**fields: Any) -> Picture:
    return at_step(Step.HELD, **fields)


def back_but_held(*failing: Finding) -> Picture:
    """n2 was lost, its repair is left to a person, and its agent is heard again."""
    return held().heard("n2").agent("n2", findings=failing)


BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text="/ is full", at=T0)


def paused(picture: Picture) -> Picture:
    return replace(picture, memory=pause(picture.memory))


def refused(times: int) -> Picture:
    return at_step(Step.LAUNCH, repair.launching(), tries=times, next_try=T0 + 600)


def ordered_mend(advice: Advice = Advice.RESTART_SERVICE, hardware: str = "munge") -> Picture:
    """Our mark is on n2, and its agent is about to be asked."""
    return ladder.failing(a_cluster(), advice, hardware).then().marked("n2")


def mending(advice: Advice = Advice.RESTART_SERVICE, hardware: str = "munge") -> Picture:
    return ladder.out(ladder.failing(a_cluster(), advice, hardware))


def waiting_for_jobs(advice: Advice = Advice.REPLACE, hardware: str = "", *, seen: bool = True) -> Picture:
    """n2 is drained by us, with its job still there; `seen`: for a turn."""
    picture = ladder.failing(a_cluster().job(12, on=("n2",)), advice, hardware)
    drained = picture.then().marked("n2").node("n2", base=NodeBase.ALLOCATED)
    return drained.then(1) if seen else drained


def degraded_out(**settings: Any) -> Picture:
    return verdict.degraded(a_cluster(**settings)).then().marked("n2").then(1)


def lost_and_out() -> Picture:
    return a_cluster().lost("n2").then().marked("n2")


def two_lost(count: int = 6, **settings: Any) -> tuple[Picture, str]:
    """n2 and n5 are lost and out; what is said is of n5."""
    picture = a_cluster(count, **settings).lost("n2", "n5").then()
    return picture.marked("n2").marked("n5").then(1), "n5"


def verifying(picture: Picture | None = None) -> Picture:
    return repair.reborn(repair.launched(picture or repair.launching()))


CASES: list[Row] = [
    ("Case c1-", lambda: out(), lambda: reported()),
    ("At step release, entered ", lambda: two_lost(), lambda: (two_lost()[0], "n2")),
    (
        "Waits for a second look, or the fault to go",
        lambda: a_cluster().agent_lost("n2").then(0.1),
        lambda: a_cluster().lost("n2").then(0.1),
    ),
    (
        "Waits for Slurm to show it out of service",
        lambda: a_cluster().lost("n2").then(1),
        lambda: two_lost(),
    ),
    ("Waits for its jobs to end and its turn to come", lambda: two_lost(), lambda: a_cluster().lost("n2").then(1)),
    ("Waits for its agent to carry out the repair", lambda: mending(), lambda: mending(Advice.REPLACE)),
    (
        "Waits for the provider to reboot or replace its machine",
        lambda: repair.launching().then(1),
        lambda: repair.launched(repair.launching()),
    ),
    (
        "Waits for its agent to connect",
        lambda: repair.launched(repair.launching()),
        lambda: verifying(),
    ),
    ("the agent of n2 is not connected", lambda: repair.launched(repair.launching()), lambda: verifying()),
    (
        "Waits for its checks to pass and its slurmd to register",
        lambda: verifying(),
        lambda: repair.launched(repair.launching()),
    ),
    ("its checks have not answered yet", lambda: verifying(), lambda: verifying().checked("n2")),
    (
        "slurmd of n2 has not registered",
        lambda: at_step(Step.VERIFY, verifying().checked("n2")).node("n2", responding=False),
        lambda: at_step(Step.VERIFY, verifying().checked("n2")),
    ),
    ("Waits for Slurm to start jobs on it", lambda: repair.sound(verifying()), lambda: verifying()),
    (
        "Waits for a person: `scontrol update nodename=n2 state=resume`, or reason=Action:Replace.",
        lambda: held(),
        lambda: out(),
    ),
    ("a person looks at it, then `scontrol update", lambda: held(), lambda: out()),
    (
        ", at the latest in ",
        lambda: at_step(Step.PROVISION, repair.launched(repair.launching())),
        lambda: held(),
    ),
    (
        "n2 was lost and is heard again, but does not serve: its check disk fails: / is full.",
        lambda: back_but_held(BAD),
        lambda: back_but_held(),
    ),
    (
        "it was lost and is heard again; its check disk fails: / is full",
        lambda: back_but_held(BAD),
        lambda: back_but_held(),
    ),
    (
        "ann approved the repair ",
        lambda: approval.approved(approval.asking()),
        lambda: approval.asking(),
    ),
    ("The provider refused 2 times; next try in ", lambda: refused(2), lambda: refused(0)),
    ("the provider is asked again in 10 min (refused 2 times)", lambda: refused(2), lambda: refused(0)),
    ("replaced now; then its agent is awaited", lambda: repair.launching(), lambda: refused(1)),
    (
        "nothing: actions are paused (`steward resume-actions`)",
        lambda: paused(out()),
        lambda: out(),
    ),
    ("actions are paused", lambda: paused(degraded()), lambda: degraded()),
    (
        'repairs are set to report only (repair.mode = "report")',
        lambda: degraded().repair(mode=RepairMode.REPORT),
        lambda: degraded().repair(mode=RepairMode.ASK),
    ),
    (
        "nothing: reported only (repair.mode)",
        lambda: degraded().repair(mode=RepairMode.REPORT),
        lambda: degraded().repair(mode=RepairMode.ASK),
    ),
    (
        'nothing: report only, no node is touched: set repair.mode = "ask" or "act"',
        lambda: out().repair(mode=RepairMode.REPORT),
        lambda: out().repair(mode=RepairMode.ASK),
    ),
    (
        "its service is restarted when job 12 ends",
        lambda: waiting_for_jobs(Advice.RESTART_SERVICE, "munge"),
        lambda: waiting_for_jobs(),
    ),
    (
        "its GPU is reset when job 12 ends",
        lambda: waiting_for_jobs(Advice.RESET_GPU, ladder.GPU),
        lambda: waiting_for_jobs(),
    ),
    ("replaced when job 12 ends", lambda: waiting_for_jobs(), lambda: waiting_for_jobs(Advice.REBOOT)),
    (
        "n2: waits for its jobs to end",
        lambda: waiting_for_jobs(seen=False),
        lambda: verdict.degraded(a_cluster()).then().marked("n2"),
    ),
    (
        "checked when its agent has carried out the light repair",
        lambda: mending(),
        lambda: verifying(),
    ),
    (
        "checked when the agent of the new or rebooted machine connects",
        lambda: repair.launched(repair.launching()),
        lambda: verifying(),
    ),
    ("given back when all its checks passed", lambda: verifying(), lambda: repair.sound(verifying())),
    (
        "in service when Slurm starts jobs on it again",
        lambda: repair.sound(verifying()),
        lambda: verifying(),
    ),
    (
        "taken out of service when a second source confirms it, else left in service",
        lambda: a_cluster().agent_lost("n2").then(0.1),
        lambda: a_cluster().lost("n2").then(0.1),
    ),
    (
        "nothing until another source speaks: its agent, its slurmd, Slurm's word or the provider's",
        lambda: told_in_vain(),
        lambda: a_cluster().agent_lost("n2").then(0.1),
    ),
    ("replaced in its turn: 1 of at most 1 repairs run (n2)", lambda: two_lost(), lambda: (two_lost()[0], "n2")),
    (
        "replaced as soon as Slurm shows it out of service and free",
        lambda: a_cluster().lost("n2").then(0.1),
        lambda: repair.launching(),
    ),
    ("Next: a case is about to be opened", lambda: degraded(), lambda: reported()),
    ("A case is about to be opened.", lambda: degraded(), lambda: reported()),
    (
        "Nothing is done about it: actions are paused.",
        lambda: paused(degraded()),
        lambda: paused(out()),
    ),
    (
        "n2: would be repaired (check disk failed on n2), but actions are paused",
        lambda: paused(degraded()),
        lambda: degraded(),
    ),
    ("Earlier: case c1-", lambda: repair.back(repair.sound(verifying())), lambda: repair.sound(verifying())),
    ("Slurm does not know n2 any more", lambda: out().see(nodes={}), lambda: out()),
    ("an admin asked for Action:Replace", lambda: a_cluster().drained("n2", "Action:Replace"), lambda: degraded()),
    (
        "the reason 'action:replace' is not a command; write exactly Action:Replace to have it done",
        lambda: a_cluster().drained("n2", "action:replace"),
        lambda: a_cluster().drained("n2", "Action:Replace"),
    ),
    (
        "carries our mark 'steward:agent:replace:c9-65f', but no repair is open, and nothing gives it back by itself;",
        lambda: orphan(),
        lambda: out(),
    ),
    (
        "have the same machine id i-n2: clones of one disk or image, or several nodes on one "
        "machine; they are told apart by their names alone: give each its own (`systemd-machine-id-setup`, or a file "
        "named in agent.instance_id_file)",
        lambda: twins("i-n2"),
        lambda: twins("i-n3"),
    ),
    ("n2 gets a new instance", lambda: a_cluster().lost("n2").then().marked("n2"), lambda: repair.launching()),
    ("a new instance for n2", lambda: repair.launching(), lambda: a_cluster().lost("n2").then().marked("n2")),
    (
        "the new machine of n2 must pass its checks",
        lambda: verifying().after(5),
        lambda: verifying().checked("n2").node("n2", slurmd_started=T0 + 99),
    ),
    (
        "all checks of n2 passed after its repair",
        lambda: verifying().checked("n2").node("n2", slurmd_started=T0 + 99),
        lambda: verifying(),
    ),
    (
        "n2: slurmctld restarted and lost Steward's mark",
        lambda: forgotten.read(forgotten.in_service(forgotten.waiting()).then(2), began=1.0),
        lambda: forgotten.read(forgotten.in_service(forgotten.waiting()).then(2), began=0.0),
    ),
    (
        "n2: the node lost Steward's mark when its power changed",
        lambda: unsigned(),
        lambda: repair.launching(),
    ),
]


def unsigned() -> Picture:
    return repair.launching().node("n2", flags=frozenset({"POWERING_UP"}), reason=None, base=NodeBase.IDLE)


def told_in_vain() -> Picture:
    off = a_cluster().agent_lost("n2", ago_s=0.0).agent("n2", leaves=True).witnessed("n2", Witness.REFUSED)
    for _ in range(12):
        off = off.then(5.0).witnessed("n2", Witness.REFUSED)
    return off


def twins(instance: str) -> Picture:
    picture = a_cluster()
    view = picture.seen.agents[n("n3")].incarnation
    assert view is not None
    return picture.agent("n3", incarnation=replace(view, instance=InstanceId(instance)))


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
        lambda: half_open_then(Step.CLOSED),
        lambda: half_open_then(Step.HELD),
    ),
    (
        "breaker check:disk: the repair of n3 did not end well; the next one in 60 min",
        lambda: half_open_then(Step.HELD),
        lambda: half_open_then(Step.CLOSED),
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


def half_open_then(step: Step) -> tuple[Picture, str]:
    picture = breaker.half_open().then(300)
    returned = picture.now if step is Step.CLOSED else None
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


def lost_on_site(*spares: str) -> Picture:
    return site.broken(site.a_site(*spares))


def short_of(spare: Callable[[Picture], Picture]) -> Picture:
    """n2 needs a spare, and s1 is as said."""
    return spare(lost_on_site("s1")).then(1)


SPARES: list[Row] = [
    (
        "A spare: we keep it out of service until it must serve for a broken node of a static group.",
        lambda: (site.a_site("s1"), "s1"),
        lambda: (site.a_site("s1", held=False), "s1"),
    ),
    (
        "A spare; it is kept out of service as soon as it can be.",
        lambda: (site.a_site("s1", held=False), "s1"),
        lambda: (site.a_site("s1"), "s1"),
    ),
    (
        "serves when a broken static node needs it",
        lambda: (site.a_site("s1"), "s1"),
        lambda: (site.a_site("s1", held=False), "s1"),
    ),
    (
        "A spare that is about to serve for n2.",
        lambda: (site.lent(lost_on_site("s1")), "s1"),
        lambda: (site.serving(lost_on_site("s1")), "s1"),
    ),
    (
        "A spare that serves for n2; it goes back to the spares when n2 serves.",
        lambda: (site.serving(lost_on_site("s1")), "s1"),
        lambda: (site.lent(lost_on_site("s1")), "s1"),
    ),
    (
        "Spare s1 serves in its place. For a person: repair n2, then `scontrol update nodename=n2 state=resume`; the "
        "spare then goes back.",
        lambda: site.serving(lost_on_site("s1")),
        lambda: site.lent(lost_on_site("s1")),
    ),
    (
        "a person repairs it, then `scontrol update nodename=n2 state=resume`; spare s1 serves meanwhile",
        lambda: site.serving(lost_on_site("s1")),
        lambda: held(),
    ),
    (
        "Spare s1 is to serve in its place.",
        lambda: site.lent(lost_on_site("s1")),
        lambda: site.serving(lost_on_site("s1")),
    ),
    (
        "A spare is to serve in its place; the node itself is left to a person.",
        lambda: site.lent(lost_on_site("s1")),
        lambda: verifying(),
    ),
    (
        "Spare s1 waits for its checks to pass and its slurmd to register",
        lambda: site.lent(lost_on_site("s1")),
        lambda: verifying(),
    ),
    ("Next: spare s1 serves when all its checks passed", lambda: site.lent(lost_on_site("s1")), lambda: verifying()),
    (
        "Next: spare s1 serves when Slurm starts jobs on it",
        lambda: site.lent(lost_on_site("s1")).checked("s1").then(1),
        lambda: site.lent(lost_on_site("s1")),
    ),
    (
        "Next: spare s1 is checked when its agent connects",
        lambda: at_step(Step.PROVISION, site.lent(lost_on_site("s1"))).agent("s1", connected=False),
        lambda: site.lent(lost_on_site("s1")),
    ),
    (
        "Waits for a spare to take its place",
        lambda: short_of(lambda site: site.drained("s1", "mine")),
        lambda: refused(2),
    ),
    ("s1 will serve for n2", lambda: lost_on_site("s1"), lambda: lost_on_site()),
    (
        "s1, which will serve for n2, must pass its checks",
        lambda: site.lent(lost_on_site("s1")).after(5),
        lambda: lost_on_site("s1"),
    ),
    (
        "all checks of s1 passed; it serves for n2",
        lambda: site.lent(lost_on_site("s1")).checked("s1"),
        lambda: site.lent(lost_on_site("s1")),
    ),
    (
        "The repair waits for a spare; capacity: no spare is free (s1 ",
        lambda: short_of(lambda site: site.drained("s1", "mine")),
        lambda: lost_on_site("s1"),
    ),
    (
        "waits for a spare: capacity: no spare is free (s1 is out of service, but not by Steward)",
        lambda: short_of(lambda site: site.drained("s1", "mine")),
        lambda: lost_on_site("s1"),
    ),
    (
        "s1 shares no partition with n2",
        lambda: other_kind(),
        lambda: lost_on_site("s1"),
    ),
    (
        "s1 is not known to Slurm",
        lambda: short_of(lambda site: site.see(nodes={k: v for k, v in site.seen.nodes.items() if k != n("s1")})),
        lambda: lost_on_site("s1"),
    ),
    ("s1 is not drained yet", lambda: short_of(lambda picture: site.free(picture, "s1")), lambda: lost_on_site("s1")),
    (
        "s1 has no agent connected",
        lambda: short_of(lambda site: site.agent("s1", connected=False)),
        lambda: lost_on_site("s1"),
    ),
    (
        "s1 does not respond to Slurm",
        lambda: short_of(lambda site: site.node("s1", responding=False)),
        lambda: lost_on_site("s1"),
    ),
    ("s1 is switched off", lambda: short_of(switched_off), lambda: lost_on_site("s1")),
    (
        "s1 fails its check memory",
        lambda: short_of(lambda site: findings(picture=site, name="s1", severity=Severity.FATAL)),
        lambda: lost_on_site("s1"),
    ),
    (
        "s1 is a spare and stands in for no node",
        lambda: (site.a_site("s1", held=False), "s1"),
        lambda: (site.a_site("s1"), "s1"),
    ),
    (
        "s1 is no longer needed: n2 serves again",
        lambda: mended(),
        lambda: site.serving(lost_on_site("s1")),
    ),
]


def other_kind() -> Picture:
    """s1 fits n4 only, s2 is not drained."""
    picture = spares.two_kinds("s2").drained("s2", "mine")
    return site.broken(picture).then(1)


def switched_off(picture: Picture) -> Picture:
    off = site.machine("s1", state=InstanceState.STOPPED)
    return picture.see(instances={**picture.seen.instances, off.id: off})


def mended() -> Picture:
    """A person repaired n2 and gave it back, while the spare serves."""
    return site.free(site.serving(lost_on_site("s1")).heard("n2"), "n2")


REASONS: list[Row] = [
    (
        "given back when its checks pass, else the next rung",
        lambda: slurm_drains(a_cluster(), KILL),
        lambda: slurm_drains(a_cluster(), "Prolog error"),
    ),
    (
        "given back when its checks pass and a job of Steward's own ran there, else the next rung",
        lambda: slurm_drains(a_cluster(), "Prolog error"),
        lambda: slurm_drains(a_cluster(), KILL),
    ),
    (
        "; the node's agent is awaited",
        lambda: slurm_drains(a_cluster().then(1.0), KILL).agent("n2", connected=False),
        lambda: slurm_drains(a_cluster(), KILL),
    ),
    ("Slurm took n2 out of service", lambda: slurm_drains(a_cluster(), KILL), lambda: slurm_drains(a_cluster(), "fan")),
    (
        "many nodes have it at once: one of them is looked into each minute; when one serves again, all are given back",
        lambda: reasons.struck().then(1.0),
        lambda: reasons.struck("n2").then(1.0),
    ),
    (
        "Many nodes have it at once: one of them is looked into each minute",
        lambda: reasons.struck().then(1.0),
        lambda: reasons.struck("n2").then(1.0),
    ),
    (
        "serves again; the others are given back in their turn",
        lambda: scout_is_back(),
        lambda: reasons.struck().then(1.0),
    ),
    (
        "n2: Slurm could not start jobs 8, 9 there, which started elsewhere; all are of one user, so nothing is done: "
        "see what only n2 lacks (folders of their output, their environment)",
        lambda: hurts(1001, 1001),
        lambda: hurts(1001, 1002),
    ),
    (
        "Slurm could not start 2 jobs on n2, which started elsewhere",
        lambda: hurts(1001, 1002),
        lambda: hurts(1001, 1001),
    ),
]


def scout_is_back() -> Picture:
    """The first that was looked into is given back at the next turn."""
    picture, serving = reasons.struck().then(1.0), frozenset[str]()
    while not serving:
        picture = reasons.a_turn(picture, broken=False)
        serving = frozenset(one.kind for one in picture.plan().events if one.kind == "incident.over")
    return picture


def hurts(*users: int) -> Picture:
    picture = a_cluster()
    for id, user in enumerate(users, 8):
        picture = launch.hurt(picture, id, uid=user)
    return picture.after(20.0)


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
        lambda: at_step(Step.HELD, connected()),
        lambda: at_step(Step.HELD, repair.launched(repair.launching())),
    ),
    (
        "n2: launch -> held: the provider refused too often",
        lambda: at_step(Step.LAUNCH, repair.launching(), tries=50, refusals=50),
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


def deep_given_up(picture: Picture | None = None, later_s: float = 0.0, **run: Any) -> Picture:
    """A deep check of n2 waits, for so much longer than now."""
    waits = deep_checked(DeepState.WAITING, picture or a_cluster())
    (made,) = waits.memory.deeps.values()
    return replace(waits, memory=replace(waits.memory, deeps={made.id: replace(made, **run)})).after(later_s)


LATER_S = 90_000.0


DEEP: list[Row] = [
    ("Slurm does not know the node", lambda: deep_given_up(gone()), lambda: deep_given_up()),
    (
        "the node's agent is not connected",
        lambda: deep_given_up(without_agent(a_cluster()), LATER_S),
        lambda: deep_given_up(a_cluster(), LATER_S),
    ),
    ("another deep check has the node", lambda: other_run(DeepState.RUNNING), lambda: other_run(DeepState.DONE)),
    ("the node is under repair", lambda: deep_given_up(degraded_out()), lambda: deep_given_up()),
    ("the node is out of service", lambda: deep_given_up(a_cluster().drained("n2", "fan")), lambda: deep_given_up()),
    (
        "the node is in a reservation that is not Steward's",
        lambda: deep_given_up(reserved("theirs"), LATER_S),
        lambda: deep_given_up(reserved("theirs", on="n3"), LATER_S),
    ),
    (
        "jobs run on the node",
        lambda: deep_given_up(a_cluster().node("n2", base=NodeBase.ALLOCATED), LATER_S),
        lambda: deep_given_up(a_cluster().node("n3", base=NodeBase.ALLOCATED), LATER_S),
    ),
    (
        "job 9 is waiting and could use the node",
        lambda: deep_given_up(queued(), LATER_S),
        lambda: deep_given_up(queued(excluded=frozenset({n("n2")})), LATER_S),
    ),
    (
        "there is no second node to measure with",
        lambda: deep_given_up(kinds=frozenset({DeepKind.CONNECTIVITY}), later_s=LATER_S),
        lambda: deep_given_up(later_s=LATER_S),
    ),
    (
        "n2: check gpu.slow: 70 %; a deep check will follow",
        lambda: suspect(),
        lambda: suspect(suspects=False),
    ),
    (
        "of 1 nodes: suspect, by steward",
        lambda: suspect(),
        lambda: suspect(suspects=False),
    ),
]


def last_idle(*, wanted: bool) -> Picture:
    """Only n2 is idle; `wanted`: while a job waits that does not want n2."""
    picture = queued(excluded=frozenset({n("n2")})) if wanted else a_cluster()
    for name in ("n1", "n3", "n4", "n5", "n6"):
        picture = picture.node(name, base=NodeBase.ALLOCATED)
    return picture


def gone() -> Picture:
    return a_cluster().see(nodes={key: node for key, node in a_cluster().seen.nodes.items() if key != n("n2")})


def other_run(state: DeepState) -> Picture:
    picture = deep_given_up(later_s=LATER_S)
    (run,) = picture.memory.deeps.values()
    other = replace(run, id="d2", state=state, asked=picture.now, entered=picture.now)
    return replace(picture, memory=replace(picture.memory, deeps={"d1": run, "d2": other}))


def reserved(name: str, on: str = "n2") -> Picture:
    one = Reservation(name=name, nodes=frozenset({n(on)}), starts=T0 - 60, ends=T0 + 10 * LATER_S)
    return a_cluster().see(reservations={name: one})


def queued(**job: Any) -> Picture:
    fields = {"state": JobState.PENDING, "nodes": frozenset(), "started": None, "reason": "Priority", "node_count": 1}
    return a_cluster().job(9, on=(), **{**fields, **job})


TRIALS: list[Row] = [
    (
        "check site.fabric is new: it only reports until 5 nodes had results for 4 h",
        lambda: canary.versions(canary.a_site(), "v1"),
        lambda: canary.armed(),
    ),
    (
        "check site.fabric may take nodes out from now on: 0 of 20 nodes failed (0.0%; at most 5.0%, it has no "
        "earlier version)",
        lambda: canary.versions(canary.a_site(), "v1").then(4 * canary.HOUR_S),
        lambda: canary.versions(canary.a_site(), "v1").then(3 * canary.HOUR_S),
    ),
    (
        "check site.fabric fails too often: 3 of 20 nodes failed (15.0%; at most 5.0%, it has no earlier version); it "
        "goes on reporting only until `steward check arm site.fabric`, or until it is changed",
        lambda: trial("n1", "n2", "n3").then(4 * canary.HOUR_S),
        lambda: canary.versions(canary.a_site(), "v1").then(4 * canary.HOUR_S),
    ),
    (
        "0.0% with its earlier version",
        lambda: canary.versions(canary.versions(canary.armed(), "v2").then(), "v2").then(4 * canary.HOUR_S),
        lambda: canary.versions(canary.a_site(), "v1").then(4 * canary.HOUR_S),
    ),
]

FORGOTTEN: list[Row] = [
    (
        "Slurm's controller forgot that n2 was given back: it is given back again",
        lambda: forgotten.given_back(),
        lambda: forgotten.given_back().then(11),
    ),
    (
        "given back again: Slurm's controller forgot that it was",
        lambda: forgotten.given_back(),
        lambda: forgotten.given_back().then(11),
    ),
    ("case c1-6553f100 is over: ", lambda: forgotten.given_back(), lambda: forgotten.given_back().then(11)),
    (
        "that case is over: see slurmctld's log for who took it out, then give it back with",
        lambda: forgotten.given_back().then(11),
        lambda: orphan(),
    ),
]


def on_trial(**job: Any) -> Picture:
    """Its own test job is over, as said, and Slurm left the node in service."""
    return launch_test.with_job(launch_test.on_trial(launch_test.to_be_tested()).then(), **job).then(2.0)


def untested() -> Picture:
    """The turn in which the time for the launch test is over."""
    picture = later = launch_test.to_be_tested()
    while launch_test.the_case(later).step is not Step.HELD:
        picture = later
        later = picture.then(20.0).agent("n2", checked_at=picture.now + 20.0)
    return picture.after(20.0)


def of_spare_for_spare(*, needed: bool) -> tuple[Picture, str]:
    """s2 serves for s1, which served for n2."""
    first = site.serving(site.broken(site.a_site("s1", "s2", breaker_min=3)))
    both = site.serving(site.broken(first, "s1"), "s2", "s1")
    if needed:
        return both, "s1"
    mended = site.free(both, "n2").agent("n2", connected=True, lost_at=None).then(site.AGAIN_S)
    return site.taken_back(mended), "s2"


def not_taken_back() -> Picture:
    """Slurm does not start jobs on the spare that is to serve."""
    return site.lent(lost_on_site("s1")).checked("s1").wait(61).after(site.AGAIN_S)


def without_slot(picture: Picture) -> Picture:
    slots = {name: slot for name, slot in picture.want.slots.items() if name != n("n2")}
    without = replace(picture, want=replace(picture.want, slots=slots))
    return replace(without, memory=replace(without.memory, cases={}))


def for_older_case() -> tuple[Picture, str]:
    """n4 broke after n2, and one spare is there."""
    picture = site.a_site("s1", concurrent_min=2).lost("n2").then().marked("n2").after(1)
    return picture.lost("n4").then().marked("n4").after(1), "n4"


def leaves_group() -> tuple[ApiPicture, str]:
    picture = an_api_cluster().slot("workers-2", purpose=Purpose.LEAVE)
    run = a_run("workers-2", cause=DeepCause.SUSPECT)
    return picture.remember(deeps={run.id: run}), "workers-2"


def of_trial(**rules: float) -> str:
    """The text of the trial that begins now, as `steward check trials` shows it."""
    nowhere = canary.a_site(rules=but(canary.RULES, **rules)).agent(
        "n1", versions=MappingProxyType({canary.CHECK: "v1"})
    )
    (begun,) = nowhere.plan().memory.trials.values()
    return begun.text


def another_spare(*, lent: bool) -> Picture:
    """s1 failed its verification; s2 takes its place or is asked for."""
    picture = site.lent(site.broken(site.a_site("s1", "s2", verify_timeout_s=20.0))).wait(21)
    return (site.lent(picture, "s2") if lent else picture).after(site.AGAIN_S)


def without_result() -> Picture:
    """Slurm runs the node inside the reservation, and its test job never comes."""
    picture = launch_test.on_trial(launch_test.to_be_tested())
    picture = picture.see(jobs={})
    for _ in range(200):
        if any("had no result" in str(action.why) for action in picture.plan().actions):
            break
        picture = picture.then(10.0)
    return picture


SELDOM: list[Row] = [
    ("armed without a trial (health.canary_node_count = 0)", lambda: of_trial(canary_node_count=0), lambda: of_trial()),
    ("no results yet", lambda: of_trial(), lambda: of_trial(canary_node_count=0)),
    (
        "s1 is no longer needed: n2 has another spare",
        lambda: another_spare(lent=True),
        lambda: another_spare(lent=False),
    ),
    ("n2 had no result from its launch test", lambda: without_result(), lambda: on_trial(**launch_test.KILLED)),
    (
        "the node is not idle",
        lambda: deep_given_up(a_cluster().node("n2", responding=False), LATER_S),
        lambda: deep_given_up(a_cluster(), LATER_S),
    ),
    (
        "the deep check got no turn within busy_wait_s",
        lambda: deep_given_up(last_idle(wanted=True), LATER_S),
        lambda: deep_given_up(last_idle(wanted=False), LATER_S),
    ),
    (
        "n2: launch -> launch: the reboot could not be carried out",
        lambda: at_step(Step.LAUNCH, rebooting(), refusals=9),
        lambda: at_step(Step.LAUNCH, rebooting(), refusals=1),
    ),
    (
        "n2: return -> held: the test job that should show whether jobs can start did not run: a person must look",
        lambda: untested(),
        lambda: on_trial(**launch_test.KILLED),
    ),
    ("n2 failed its launch test", lambda: on_trial(**launch_test.KILLED), lambda: on_trial()),
    (
        "reset of GPU GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11 on n2",
        lambda: ordered_mend(Advice.RESET_GPU, ladder.GPU),
        lambda: ordered_mend(),
    ),
    ("restart of munge on n2", lambda: ordered_mend(), lambda: ordered_mend(Advice.RESET_GPU, ladder.GPU)),
    (
        "s2 is no longer needed: s1, itself a spare, is no longer needed",
        lambda: of_spare_for_spare(needed=False),
        lambda: of_spare_for_spare(needed=True),
    ),
    (
        "s1 is no longer needed: it did not go into service",
        lambda: not_taken_back(),
        lambda: site.serving(lost_on_site("s1")),
    ),
    (
        "s1 is no longer needed: n2 is not one of Steward's nodes any more",
        lambda: without_slot(site.serving(lost_on_site("s1"))),
        lambda: site.serving(lost_on_site("s1")),
    ),
    ("s1 is kept for other nodes", lambda: for_older_case(), lambda: lost_on_site("s1")),
    ("s1 is broken itself", lambda: short_of(lambda site: verdict.degraded(site, "s1")), lambda: lost_on_site("s1")),
    ("the node leaves its group", lambda: leaves_group(), lambda: deep_given_up()),
    (
        "check site.fabric has 8 versions in use: others only report, without a trial",
        lambda: canary.on_each_its_own(canary.a_site()),
        lambda: canary.versions(canary.a_site(), "v1"),
    ),
    (
        "the site's checks have 1000 versions in use: others only report, without a trial",
        lambda: with_checks_of_their_own(4),
        lambda: with_checks_of_their_own(1),
    ),
]


def with_checks_of_their_own(count: int) -> Picture:
    """So many nodes have 255 checks each that no other has."""
    picture = canary.armed()
    for node in range(1, count + 1):
        own = {f"site.x{node}.{number}": "v" for number in range(255)}
        picture = picture.agent(f"n{node}", versions=MappingProxyType({canary.CHECK: "v1", **own}))
    return picture


ROWS = [*VERDICT, *CHECKS, *HARDWARE, *CASES, *FACTS, *GUARDS, *SPARES, *REASONS, *DEEP, *TRIALS, *FORGOTTEN, *SELDOM]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())


_OF_JOBS = (
    "explain_job|job_lines|job_warning|_OF_A_RUN|_ENDED_UNSEEN|_not_asked|_stale|_known_of_job|_shown_id|_restarts"
    "|_next_of_job|_waiting|place_lines|_DID|_IN_PLACE|resume_lines|_asked|_step|_left_behind|_progress|_attempt"
    "|_lame_steps|silence_lines|_left_alone|hurry"
)


_OF_SLOTS = "next_of_slot|_OF_SLOTS|failure|close_case|_verify"
_NEVER_SAID = "Word|DeepStart|_HEAD"
_OTHERS = ("bring_up.py", "opted_in.py", "lent.py")
"""These speak of groups and jobs."""


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    views = [ROOT / f"views/{name}.py" for name in ("explain", "explain_health", "node_verdict", "awaited")]
    rooms = [path for room in ("facts", "case", "guards") for path in sorted((ROOT / "policy" / room).glob("*.py"))]
    paths = [path for path in (*views, *rooms, ROOT / "policy/leaks.py") if path.name not in _OTHERS]
    skip = f"{_OF_JOBS}|{_OF_SLOTS}|{_NEVER_SAID}"
    assert lacking(paths, skip, ((said(true()), said(false())) for _, true, false in ROWS)) == []
