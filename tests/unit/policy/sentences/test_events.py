"""The same as test_sentences.py, for what events and the reasons of actions say of groups, slots and deep checks."""

import math
from dataclasses import replace
from typing import Any

import pytest

from steward.model.agent_action import Action
from steward.model.capacity_policy import GateRule, Pool
from steward.model.deep import DeepCause, DeepKind, DeepReport, DeepResult, DeepRun, DeepState, Measure, slurm_name
from steward.model.group import ClusterStatus, GroupStatus, Version
from steward.model.health import Outcome
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.job import JobState
from steward.model.node import NodeBase, Reason
from steward.model.plan import Plan
from steward.model.reservation import Reservation, hot_name
from steward.model.slot import Purpose, SlotStep
from steward.policy.controls import pause
from steward.policy.deep.judge import judge
from steward.policy.groups.orphans import SEEN_FOR_S
from tests.builders import gates
from tests.builders.api_cluster import ApiPicture
from tests.builders.capacity import NODE, SCRIPTS, a_group, a_slot_at, an_empty_head, slot, with_group, with_slot
from tests.builders.deep import a_run, done, reserved, with_run
from tests.builders.gates import DOWN, GATED, SERVING, UP, dev, head, regrouped, shown
from tests.builders.picture import T0, Picture, a_cluster, n, names
from tests.builders.sentences import Case, Row
from tests.builders.want import but
from tests.unit.policy.case import test_late_machines as late
from tests.unit.policy.case import test_launch_test as launch
from tests.unit.policy.deep import test_judge as judged
from tests.unit.policy.deep import test_start as start
from tests.unit.policy.groups import test_groups as groups
from tests.unit.policy.groups import test_hot_spares as hot
from tests.unit.policy.groups import test_rollout as rollout
from tests.unit.policy.groups import test_slots_leaving as leaving

HOUR_S = 3600.0
N1, N2, N3, N4 = judged.ALL


def said(what: Any) -> str:
    """All that is told and asked for in one plan; of a deep check's judgement what it says of each node."""
    if isinstance(what, ApiPicture):
        what = rollout.moved(what)[1]
    if isinstance(what, Picture):
        what = what.plan()
    if isinstance(what, Plan):
        return "\n".join([*(event.text for event in what.events), *map(_of_action, what.actions)])
    return str(what)


def _of_action(action: Action) -> str:
    return f"{type(action).__name__}: {action.why}"


def gate(picture: Picture) -> Plan:
    return gates.decide(picture)


def closed() -> Picture:
    return gates.then(shown(gates.then(head(dev(GATED))), DOWN))


GATES: list[Row] = [
    (
        "its groups are being deleted",
        lambda: gate(head(dev(GroupStatus.DELETING))),
        lambda: gate(head(dev(GroupStatus.DELETING), dev(SERVING, name="x"), state=DOWN)),
    ),
    (
        "group w has less than its minimum",
        lambda: gate(head(dev(SERVING), gate=GateRule.STRICT)),
        lambda: gate(head(dev(SERVING), state=DOWN)),
    ),
    (
        "it has no node yet; jobs wait",
        lambda: gate(shown(head(dev(SERVING)), UP, nodes="")),
        lambda: gate(shown(head(dev(SERVING)), DOWN)),
    ),
    ("its groups have what they need", lambda: gate(head(dev(SERVING), state=DOWN)), lambda: gate(head(dev(GATED)))),
    (
        "partition dev has no group any more",
        lambda: gate(regrouped(shown(closed(), DOWN))),
        lambda: gate(regrouped(shown(closed(), DOWN), dev(SERVING))),
    ),
    (
        "group w is Creating with 0 nodes, minimum 2, target 4",
        lambda: gate(head(dev(GATED))),
        lambda: gate(head(dev(GATED), owned=False)),
    ),
    (
        "partition dev is not Steward's to open and close, so no gate is kept there: name it in "
        "capacity.owned_partitions",
        lambda: gate(head(dev(GATED), owned=False)),
        lambda: gate(head(dev(GATED))),
    ),
    (
        "make it in slurm.conf and name it in capacity.owned_partitions, or set capacity.slurm_include",
        lambda: gate(without_include(head(dev(GATED), owned=False, state=None))),
        lambda: gate(without_include(head(dev(GATED), owned=False))),
    ),
    (
        "partitions of API groups: dev",
        lambda: gate(head(dev(GATED), owned=False, state=None)),
        lambda: gate(head(dev(GATED))),
    ),
    (
        "partitions of API groups: none any more",
        lambda: gate(regrouped(file_written())),
        lambda: gate(file_written()),
    ),
    (
        "default is left out of Steward's partition file: Slurm reserves the name; make its group anew",
        lambda: gate(head(dev(GATED, partition="default"), owned=False, state=None)),
        lambda: gate(head(dev(GATED), owned=False, state=None)),
    ),
    (
        "slurmctld restarted with partition dev UP: partition dev is closed: group w waits for its minimum",
        lambda: gate(shown(closed(), UP, loaded=closed().now - 1.0)),
        lambda: gate(shown(closed(), UP)),
    ),
    (
        "partition dev was set UP, but not by Steward: left so until Steward's own wish changes (",
        lambda: gate(shown(closed(), UP)),
        lambda: gate(shown(closed(), UP, loaded=closed().now - 1.0)),
    ),
]


def without_include(picture: Picture) -> Picture:
    return replace(picture, want=replace(picture.want, capacity=but(picture.want.capacity, slurm_include=None)))


def file_written() -> Picture:
    """Its partition is in our file, and Slurm shows it."""
    return shown(gates.then(head(dev(SERVING), state=None, owned=False)), UP)


def three_hours(instances: int) -> Picture:
    there = [f"workers-{number}" for number in range(1, instances + 1)]
    return groups.serving(an_empty_head(a_group(target=4, minimum=2)), *there).after(3 * HOUR_S)


def pool_of(*nodes: str) -> Picture:
    return an_empty_head(a_group(target=2), pools={"workers": Pool(group="workers", nodes=tuple(map(n, nodes)))})


def deleting(*, slots: bool, cluster: bool = True) -> Picture:
    whole = groups.serving(an_empty_head(a_group(target=1)), "workers-1") if slots else an_empty_head(a_group(target=1))
    picture = with_group(whole, status=GroupStatus.DELETING)
    assert picture.memory.cluster is not None
    status = ClusterStatus.DELETING if cluster else ClusterStatus.IN_SERVICE
    return replace(picture, memory=replace(picture.memory, cluster=replace(picture.memory.cluster, status=status)))


def paused(picture: Picture) -> Picture:
    return replace(picture, memory=pause(picture.memory))


def stray_hot_spares(group: str) -> Picture:
    """Nodes are kept as hot spares of the group, as an earlier setting had it."""
    kept = Reservation(name=hot_name(group), nodes=names("n4"), starts=T0, ends=T0 + HOUR_S)
    return hot.a_site(1).see(reservations={kept.name: kept})


def orphan(*, token: str = "abcdef012345-9-0") -> Picture:
    """An instance of this cluster whose slot is gone was seen for a minute."""
    lost = Instance(id=InstanceId("i-9"), node=n("workers-9"), state=InstanceState.RUNNING, token=token)
    picture = a_slot_at(SlotStep.SERVING)
    seen = picture.see(instances={**picture.seen.instances, lost.id: lost}, listed_at=T0)
    later = seen.then(SEEN_FOR_S / 2).then(SEEN_FOR_S / 2 + 1)
    return later.see(listed_at=later.now)


def orphan_ended(*, listed_after_s: float = 2 * SEEN_FOR_S) -> Picture:
    """That instance is gone, and its node is still in Slurm."""
    picture = orphan().then(listed_after_s)
    left = replace(picture.seen.nodes[n(NODE)], name=n("workers-9"), slurmd_started=T0 - 50)
    rest = {id: one for id, one in picture.seen.instances.items() if id != "i-9"}
    return picture.see(
        instances=rest, nodes={**picture.seen.nodes, left.name: left}, listed_at=T0 + SEEN_FOR_S + listed_after_s
    )


def made_late(*, given_up: bool) -> Picture:
    both, _ = late.two_machines()
    return both.after(SEEN_FOR_S) if given_up else late.listed(both, without=late.SECOND).after(SEEN_FOR_S)


GROUPS: list[Row] = [
    (
        "no instance is launched or ended for any group: actions are paused",
        lambda: paused(an_empty_head()),
        lambda: an_empty_head(),
    ),
    (
        "group workers: its [[groups]] table has 1 nodes too few for its target",
        lambda: pool_of("b7"),
        lambda: pool_of("b7", "b8"),
    ),
    ("group workers is deleted", lambda: deleting(slots=False), lambda: deleting(slots=True)),
    ("cluster demo is deleted", lambda: deleting(slots=False), lambda: deleting(slots=False, cluster=False)),
    ("1 of at least 2 instances were there after 3 h", lambda: three_hours(1), lambda: three_hours(2)),
    (
        "group workers is in service: 2 instances, minimum 2",
        lambda: three_hours(2),
        lambda: three_hours(1),
    ),
    (": rolled back to 0 instances, minimum 0", lambda: three_hours(1), lambda: three_hours(2)),
    (
        "no hot spares are kept in this group",
        lambda: stray_hot_spares("gone"),
        lambda: stray_hot_spares("main"),
    ),
    ("1 of 1 hot spares of main for jobs that are resumed", lambda: hot.a_site(1), lambda: hot.a_site(0)),
    (
        "instance i-9 was made for a slot that is gone",
        lambda: orphan(),
        lambda: orphan(token="another-9-0"),
    ),
    (
        "ForgetNode: the instance of workers-9 is gone",
        lambda: orphan_ended(),
        lambda: orphan_ended(listed_after_s=1.0),
    ),
    ("it has no slot", lambda: orphan_ended(), lambda: orphan_ended(listed_after_s=1.0)),
    (
        "n2: instance i-first appeared after another machine took its place: it is ended",
        lambda: made_late(given_up=True),
        lambda: made_late(given_up=False),
    ),
]


def rolled(times: int) -> ApiPicture:
    """So many bring-ups of the new version failed."""
    picture = rollout.then(rollout.an_update_of(4))
    for tries in range(1, times + 1):
        picture = rollout.failing(picture if tries == 1 else rollout.then(picture), "4", tries)
    return picture


def rolled_back_too(times: int) -> ApiPicture:
    picture = rollout.rolled_back(rollout.then(rollout.an_update_of(4)))
    for tries in range(1, times + 1):
        picture = rollout.failing(picture if tries == 1 else rollout.then(picture), "4", tries)
    return picture


def coming_from(version: Version | None) -> ApiPicture:
    """workers-2 is on its way, made from this version; None: it serves."""
    picture = rollout.an_update_of(2)
    return picture if version is None else picture.slot("workers-2", step=SlotStep.SETUP, version=version)


ROLLOUTS: list[Row] = [
    (
        "workers: the software update begins",
        lambda: rollout.an_update_of(2),
        lambda: rollout.then(rollout.an_update_of(2)),
    ),
    (
        "workers-2 is being made from another version [rollout.renew] (made from the default image",
        lambda: why_renewed(coming_from(Version())),
        lambda: why_renewed(coming_from(None)),
    ),
    (
        "3 bring-ups failed (limit 3), the last one workers-4: exit status 1",
        lambda: rolled(3),
        lambda: rolled(2),
    ),
    ("workers: the software update is rolled back: ", lambda: rolled(3), lambda: rolled(2)),
    (
        "an alarm rolls the update of workers back",
        lambda: rollout.an_update_of(2, alarms=("hot",)),
        lambda: rollout.an_update_of(2),
    ),
    (
        "workers-1 gets the version of the software update of workers",
        lambda: why_renewed(rollout.an_update_of(2)),
        lambda: why_renewed(rollout.an_update_of(2).remember(paused=True)),
    ),
    (
        "the software update failed, and so did its rollback: ",
        lambda: rolled_back_too(3),
        lambda: rolled_back_too(2),
    ),
]


def why_renewed(picture: ApiPicture) -> str:
    """Why each slot is where it is after the next step of the update."""
    return "\n".join(str(slot.why) for slot in rollout.then(picture).memory.slots.values())


def backed_up(*, served: bool = True) -> Picture:
    picture = leaving.leaving(SlotStep.BACKUP, backup=("/sbin/save", "%n"))
    return with_slot(picture, has_served=served)


def restored(*, saved: bool) -> Picture:
    before = leaving.leaving(SlotStep.BACKUP, purpose=Purpose.RENEW, backup=("/sbin/save", "%n"))
    after = before.then() if saved else with_slot(before, has_served=False).then()
    return with_slot(after, step=SlotStep.VERIFY, purpose=Purpose.STAY, entered=after.now - 1).checked(NODE)


def gone_at_end(purpose: Purpose) -> Picture:
    picture = leaving.drained(leaving.leaving(SlotStep.END, purpose=purpose)).node(NODE, base=NodeBase.DOWN)
    return picture.see(instances={}, agents={})


def saving(*, opted_in: bool) -> Picture:
    picture = leaving.leaving(checkpoint_signal="USR1", checkpoint_grace_s=60.0).job(7, on=(NODE,))
    return picture.opted_in(7) if opted_in else picture


SLOTS: list[Row] = [
    (
        "workers-1 will go in 60 s: job 7 is told to save its state",
        lambda: saving(opted_in=True),
        lambda: saving(opted_in=False),
    ),
    ("workers-1 goes and is backed up before", lambda: backed_up(), lambda: backed_up(served=False)),
    ("workers-1 was backed up and has a new instance", lambda: restored(saved=True), lambda: restored(saved=False)),
    (
        "the lifecycle scripts of group workers run on workers-1",
        lambda: with_group(a_slot_at(SlotStep.SETUP), lifecycle=SCRIPTS),
        lambda: a_slot_at(SlotStep.SETUP),
    ),
    (
        "ForgetNode: the instance of workers-1 is gone",
        lambda: gone_at_end(Purpose.LEAVE),
        lambda: gone_at_end(Purpose.RENEW),
    ),
    (
        "deep check failed: ",
        lambda: trouble(done(DeepResult.FAILED, NODE, **start.ON_START)),
        lambda: trouble(done(DeepResult.PASSED, NODE, **start.ON_START)),
    ),
]


def trouble(run: DeepRun) -> str:
    return slot(with_run(start.returning(), run).then(), NODE).trouble


def verdict(*measures: Any, nodes: Any = judged.ALL, kinds: Any = judged.STRESS, **known: Any) -> str:
    found = judge(nodes, kinds, list(measures), **{"profiles": {}, "baselines": {}, **known})
    return "\n".join(f"{node}: {found[node].why}" for node in sorted(found))


def speeds(*values: float, check: str = "cpu.verify") -> list[Any]:
    return [judged.measure(node, value, check=check) for node, value in zip(judged.ALL, values, strict=False)]


def learnt(value: float, good: int) -> str:
    profiles = {N1: "c1"}
    usual = judged.usual(100.0, good)
    return verdict(*speeds(value), nodes=[N1], profiles=profiles, baselines=usual)


def unmeasured(outcome: Outcome, text: str = "") -> str:
    return verdict(judged.measure(N1, math.nan, outcome=outcome, text=text), nodes=[N1])


def with_partner(node: NodeName, partner: NodeName, value: float, outcome: Outcome = Outcome.PASSED) -> Measure:
    return judged.measure(node, value, check="tcp.bandwidth", outcome=outcome, partner=partner)


def pair(bad: int) -> str:
    """n1 was slow with so many of its partners, which were good with each other."""
    slow = [with_partner(N1, node, math.nan, Outcome.FAILED) for node in (N2, N3)]
    good = [with_partner(a, b, 900.0) for a, b in ((N2, N3), (N3, N4), (N2, N4), (N1, N4))]
    return verdict(*slow[:bad], *good, kinds=frozenset({DeepKind.CONNECTIVITY}))


def running(state: DeepState = DeepState.RESERVED, *nodes: str, **fields: Any) -> Picture:
    run = a_run(*(nodes or ("n1", "n2")), state=state, **fields)
    return reserved(with_run(a_cluster(4), run), run)


def with_deep_job(picture: Picture, **job: Any) -> Picture:
    (run,) = picture.memory.deeps.values()
    name = slurm_name(run.token)
    return picture.job(90, on=("n1",), **{"name": name, "partition": name, "reservation": name, **job})


def job_over(tries: int) -> Picture:
    """Its job is gone since a minute, and no agent reported."""
    return running(DeepState.RUNNING, tries=tries, job_over=T0 - 60, job=None)


def a_user_waits(picture: Picture) -> Picture:
    """A user's job needs more nodes than are idle beside the check."""
    return picture.job(
        8, on=(), state=JobState.PENDING, started=None, reason="Resources", node_count=4, eligible=T0 - 60
    )


def lone(count: int) -> Picture:
    """The kinds of a check of so many free nodes; the others have a user's job."""
    picture = with_run(a_cluster(2), a_run("n1", "n2"))
    return picture if count == 2 else picture.node("n2", flags=frozenset({"COMPLETING"}))


def suspected(result: DeepResult) -> Picture:
    """Its nodes reported all, as the result says."""
    return running(DeepState.RUNNING, "n1", cause=DeepCause.SUSPECT, kinds=judged.STRESS).agent(
        "n1", deep=(report_of(result),)
    )


def report_of(result: DeepResult) -> DeepReport:
    outcome = Outcome.PASSED if result is DeepResult.PASSED else Outcome.FAILED
    run = a_run("n1", state=DeepState.RUNNING)
    return DeepReport(run=run.token, node=N1, measures=(judged.measure(N1, outcome=outcome),), is_done=True)


def on_trial_over(*, drained_again: bool) -> Picture:
    """The launch test's job is over, and Slurm drained the node at its end, or did not."""
    running = launch.on_trial(launch.to_be_tested()).then()
    again = Reason(text=launch.PROLOG, user="slurm", at=running.now)
    node = running.node("n2", flags=frozenset({"DRAIN"}), reason=again) if drained_again else running
    return launch.with_job(node, **launch.KILLED).then(2.0)


DEEP: list[Row] = [
    (
        "n1 is measured alone: no second node is free",
        lambda: lone(1).then(60.0),
        lambda: lone(2).then(60.0),
    ),
    ("SubmitDeep: deep check d1 has its nodes", lambda: running(), lambda: running(DeepState.RUNNING)),
    ("; not enough to tell which node is at fault", lambda: pair(1), lambda: pair(2)),
    (
        "cpu.verify could not be measured: no answer",
        lambda: unmeasured(Outcome.UNKNOWN),
        lambda: unmeasured(Outcome.FAILED),
    ),
    (
        ", which proves no fault",
        lambda: verdict(*speeds(10.0, 100.0, 100.0, 100.0, check="disk.write")),
        lambda: verdict(*speeds(10.0, 100.0, 100.0, 100.0)),
    ),
    (
        ", as for most nodes of this run",
        lambda: verdict(
            *speeds(50.0, 50.0, 50.0, 100.0),
            profiles=dict.fromkeys(judged.ALL, "c1"),
            baselines=judged.usual(100.0, 30),
        ),
        lambda: verdict(
            *speeds(50.0, 100.0, 100.0, 100.0),
            profiles=dict.fromkeys(judged.ALL, "c1"),
            baselines=judged.usual(100.0, 30),
        ),
    ),
    (
        "InstanceConnectivity: nothing was reported",
        lambda: verdict(judged.measure(N1), nodes=[N1], kinds=frozenset(DeepKind)),
        lambda: verdict(judged.measure(N1), nodes=[N1]),
    ),
    (
        "cpu.verify skipped: nothing to measure",
        lambda: unmeasured(Outcome.SKIPPED),
        lambda: unmeasured(Outcome.SKIPPED, "no GPU"),
    ),
    ("nothing was measured", lambda: verdict(nodes=[N1], kinds=frozenset()), lambda: unmeasured(Outcome.SKIPPED)),
    ("Slurm has no such job", lambda: job_over(1), lambda: with_deep_job(job_over(1), state=JobState.FAILED)),
    (
        "waiting -> reserved: its nodes are free, and it is its turn",
        lambda: with_run(a_cluster(4), a_run("n1", "n2")),
        lambda: running(),
    ),
    (
        "a user's waiting job needs its nodes",
        lambda: a_user_waits(running()),
        lambda: running(),
    ),
    (
        "reserved -> running: its job was started",
        lambda: with_deep_job(running()),
        lambda: with_deep_job(running(), state=JobState.PENDING, started=None),
    ),
    (
        "all its nodes reported everything",
        lambda: suspected(DeepResult.PASSED),
        lambda: running(DeepState.RUNNING),
    ),
    ("its job was lost; the check starts again", lambda: job_over(0), lambda: job_over(1)),
    (
        "Slurm drained the node again: ",
        lambda: on_trial_over(drained_again=True),
        lambda: on_trial_over(drained_again=False),
    ),
    (
        "the suspicion was not confirmed",
        lambda: suspected(DeepResult.PASSED),
        lambda: suspected(DeepResult.FAILED),
    ),
    ("85% of the usual 100 rounds/s (20 good runs)", lambda: learnt(84.0, 20), lambda: learnt(84.0, 19)),
    (
        "50% of this run's median of 75.5 rounds/s (4 nodes)",
        lambda: verdict(*speeds(30.0, 100.0, 100.0, 51.0)),
        lambda: verdict(*speeds(30.0, 100.0, 100.0)),
    ),
]

ROWS = [*GATES, *GROUPS, *ROLLOUTS, *SLOTS, *DEEP]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())
