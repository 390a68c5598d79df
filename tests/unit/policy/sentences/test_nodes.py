"""The same of the sentences about a node: its verdict, its checks and its hardware."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.case import Blow, CaseStep
from steward.model.deep import DeepCause, DeepResult, DeepState
from steward.model.health import Advice, Finding, Outcome, Scope, Severity
from steward.model.instance import Slot
from steward.model.memory import NodeMemory
from steward.model.node import NodeBase, Reason
from steward.model.setting_types import RepairMode
from steward.model.slot import SlotStep
from steward.model.witness import Witness
from steward.policy.plan import plan
from steward.views.explain import explain_node
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.picture import T0, Picture, a_cluster, n
from tests.builders.sentences import Case, Row
from tests.builders.slurm_drains import slurm_drains
from tests.builders.want import but
from tests.unit.policy.case import test_forgotten as forgotten
from tests.unit.policy.case import test_silence as silence
from tests.unit.policy.guards import test_canary as canary
from tests.unit.policy.guards import test_lemons as lemons
from tests.unit.policy.views import test_node_verdict as verdict

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


def at_step(step: CaseStep, picture: Picture | None = None, **fields: Any) -> Picture:
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


def stranded(on: str = "n2") -> Picture:
    """n2 is lost where Steward only reports, and a job runs on this node."""
    picture = a_cluster(mode=RepairMode.REPORT).job(on=(on,)).then()
    return picture.lost("n2").then(1)


def suspect(**deep: Any) -> Picture:
    picture = a_cluster().failing("n2", Severity.SUSPECT, check="gpu.slow", text="70 %", event=False)
    return replace(picture, want=replace(picture.want, deep=but(picture.want.deep, **deep)))


def deep_checked(state: DeepState, picture: Picture | None = None, **fields: Any) -> Picture:
    return verdict.remembering(picture or suspect(), cause=DeepCause.SUSPECT, state=state, **fields)


DEEP_PASSED: dict[str, Any] = {"results": {n("n2"): DeepResult.PASSED}, "ended": T0 - 5}


VERDICT: list[Row] = [
    (
        "n2 is lost, and nothing is done about it: ",
        lambda: stranded(),
        lambda: stranded("n3"),
    ),
    (
        "A job that runs on it comes back when Slurm sets it DOWN (after SlurmdTimeout); `scontrol update nodename=n2 "
        "state=down reason=lost` does that now.",
        lambda: stranded(),
        lambda: stranded("n3"),
    ),
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
    ("It returns to service after a successful repair.", lambda: out(), lambda: at_step(CaseStep.HELD)),
    (
        "and no repair is open; nothing gives it back by itself. For a person: give it back with",
        lambda: orphan(),
        lambda: out(),
    ),
    (
        "Steward drained it (reason steward:...), and no repair is open",
        lambda: orphan(),
        lambda: out(),
    ),
    (
        "taken out again after its repair; Slurm kept the old reason, and slurmctld's log says who took it out",
        lambda: forgotten.taken_out_later(2 * 86_400.0),
        lambda: orphan(),
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
        "Check memory says unknown (for 0 s, never acted on): timed out",
        lambda: findings(),
        lambda: findings(outcome=Outcome.FAILED, severity=Severity.INFO),
    ),
    (
        "1 check does not apply here (no such hardware or tool): ib.state.",
        lambda: a_cluster().agent("n2", skipped=frozenset({"ib.state"})),
        lambda: a_cluster().agent("n2", passed=frozenset({"ib.state"})),
    ),
    (
        "its looks have passed again for 5 s, not long enough yet",
        lambda: degraded(good_since=T0 - 5),
        lambda: degraded(),
    ),
    (
        "They have passed for 60 s",
        lambda: a_cluster().agent("n2", passed=frozenset({"disk"}), passed_since=(int(T0) - 60,)),
        lambda: a_cluster().agent("n2", passed=frozenset({"disk"})),
    ),
    (
        "1 check passed: disk. Its agent is gone: that was before.",
        lambda: a_cluster().agent("n2", passed=frozenset({"disk"})).lost("n2"),
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
        "Slurm gives it back after its reboot, if it was the reboot that drained it",
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


ROWS = [*VERDICT, *CHECKS, *HARDWARE]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())
