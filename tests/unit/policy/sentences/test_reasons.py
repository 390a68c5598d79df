"""The same of nodes that Slurm took out, that wait for a deep check, or that are seldom as they are."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from steward.model.case import CaseStep
from steward.model.deep import DeepCause, DeepKind, DeepState
from steward.model.health import Advice, Severity
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation
from steward.model.slot import Purpose
from tests.builders import site
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.deep import a_run
from tests.builders.picture import T0, Picture, a_cluster, n
from tests.builders.sentences import Case, Row
from tests.builders.slurm_drains import slurm_drains
from tests.builders.want import but
from tests.unit.policy.case import test_forgotten as forgotten
from tests.unit.policy.case import test_launch_test as launch_test
from tests.unit.policy.case import test_lost_cases as lost_cases
from tests.unit.policy.case import test_reason_incidents as reasons
from tests.unit.policy.case import test_slurm_faults as faults
from tests.unit.policy.guards import test_canary as canary
from tests.unit.policy.guards import test_ladder as ladder
from tests.unit.policy.job import test_broken_launch as launch
from tests.unit.policy.sentences.test_cases import lost_on_site, short_of
from tests.unit.policy.sentences.test_guards import degraded_out, rebooting
from tests.unit.policy.sentences.test_nodes import KILL, at_step, deep_checked, orphan, said, suspect, without_agent
from tests.unit.policy.views import test_node_verdict as verdict


def ordered_mend(advice: Advice = Advice.RESTART_SERVICE, hardware: str = "munge") -> Picture:
    """Our mark is on n2, and its agent is about to be asked."""
    return ladder.failing(a_cluster(), advice, hardware).then().marked("n2")


def killed_on(count: int) -> Picture:
    """Slurm drained so many nodes of a hundred at once for a job's processes."""
    return slurm_drains(a_cluster(100), KILL, *(f"n{number}" for number in range(1, count + 1)))


def unended(text: str) -> Picture:
    """The node cannot be rebooted, and its checks fail again after Slurm took it out."""
    picture = slurm_drains(a_cluster(), text).then().then().failing("n2", Severity.DEGRADED, check="d", event=False)
    slots = {name: replace(slot, reboots=False) for name, slot in picture.want.slots.items()}
    return replace(picture, want=replace(picture.want, slots=slots)).wait(600.0)


REASONS: list[Row] = [
    (
        'Slurm reboots it: "Reboot ASAP : reboot issued" by ann',
        lambda: slurm_drains(a_cluster(), "Reboot ASAP : reboot issued", user="ann").node(
            "n2", flags=frozenset({"DRAIN", "REBOOT_ISSUED"})
        ),
        lambda: slurm_drains(a_cluster(), "Reboot ASAP : reboot issued", user="ann"),
    ),
    (
        "one job alone can bring about 'Kill task failed (JobId=7 StepId=0)', and no machine is replaced for what a "
        "job can do",
        lambda: unended(KILL),
        lambda: unended("Prolog error"),
    ),
    (
        "users filled a disk (in use: / 100 %), and no machine is replaced for what a job can do",
        lambda: launch_test.bad_after_reboot("disk"),
        lambda: launch_test.bad_after_reboot("other"),
    ),
    (
        "jobs of one user alone could not begin or end on n2, and no machine is replaced for what a job can do",
        lambda: launch_test.rebooted_often(1000),
        lambda: launch_test.rebooted_often(1001),
    ),
    (
        "8 of 100 nodes were taken out for what a job can bring about (slurm.kill_task_failed)",
        lambda: killed_on(8),
        lambda: killed_on(1),
    ),
    (
        "nothing: Slurm took it out; a person must look and give it back (",
        lambda: slurm_drains(a_cluster(), "Bad core count"),
        lambda: slurm_drains(a_cluster(), "Bad core count", user="ann"),
    ),
    (
        "nothing: left alone, it passes",
        lambda: slurm_drains(a_cluster(), "Reboot ASAP : reboot issued", user="ann"),
        lambda: slurm_drains(a_cluster(), "fan", user="ann"),
    ),
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
        "many nodes have it at once: now and then one is looked into; when one serves again, all are given back",
        lambda: reasons.struck().then(1.0),
        lambda: reasons.struck("n2").then(1.0),
    ),
    (
        "Many nodes have it at once: now and then one is looked into",
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
    while launch_test.the_case(later).step is not CaseStep.HELD:
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
        lambda: at_step(CaseStep.LAUNCH, rebooting(), refusals=9),
        lambda: at_step(CaseStep.LAUNCH, rebooting(), refusals=1),
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


LOST: list[Row] = [
    (
        "n2 is out of service for a repair that the store has lost",
        lambda: lost_cases.drained(),
        lambda: orphan(),
    ),
    (
        "slurm.conf has CPUs=8 RealMemory=9000 Gres=gpu:h100:7 for it, and had CPUs=8 RealMemory=8000 Gres=gpu:h100:7 "
        "when it served: see whether that is right",
        lambda: faults.short_of_memory(),
        lambda: faults.served().failing("n2", Severity.DEGRADED, check="memory", event=False),
    ),
]
ROWS = [*REASONS, *DEEP, *FORGOTTEN, *SELDOM, *LOST]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())
