"""The same of the sentences about the repair of a node, and the spares for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from steward.model.case import CaseStep
from steward.model.health import Advice, Finding, Outcome, Severity
from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.model.setting_types import RepairMode
from steward.model.witness import Witness
from steward.policy.controls import pause
from tests.builders import site
from tests.builders.picture import T0, Picture, a_cluster, n
from tests.builders.sentences import Case, Row
from tests.unit.policy.case import test_forgotten as forgotten
from tests.unit.policy.case import test_repair as repair
from tests.unit.policy.case import test_spares as spares
from tests.unit.policy.guards import test_approval as approval
from tests.unit.policy.guards import test_ladder as ladder
from tests.unit.policy.sentences.test_nodes import at_step, degraded, findings, orphan, out, reported, said
from tests.unit.policy.views import test_node_verdict as verdict


def unread(picture: Picture) -> Picture:
    return picture.see(slurm=Freshness.OLD)


def held(**fields: Any) -> Picture:
    return at_step(CaseStep.HELD, **fields)


def back_but_held(*failing: Finding) -> Picture:
    """n2 was lost, its repair is left to a person, and its agent is heard again."""
    return held().heard("n2").agent("n2", findings=failing)


BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text="/ is full", at=T0)


def paused(picture: Picture) -> Picture:
    return replace(picture, memory=pause(picture.memory))


def refused(times: int) -> Picture:
    return at_step(CaseStep.LAUNCH, repair.launching(), tries=times, next_try=T0 + 600)


def mending(advice: Advice = Advice.RESTART_SERVICE, hardware: str = "munge") -> Picture:
    return ladder.out(ladder.failing(a_cluster(), advice, hardware))


def waiting_for_jobs(advice: Advice = Advice.REPLACE, hardware: str = "", *, seen: bool = True) -> Picture:
    """n2 is drained by us, with its job still there; `seen`: for a turn."""
    picture = ladder.failing(a_cluster().job(12, on=("n2",)), advice, hardware)
    drained = picture.then().marked("n2").node("n2", base=NodeBase.ALLOCATED)
    return drained.then(1) if seen else drained


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
        lambda: at_step(CaseStep.VERIFY, verifying().checked("n2")).node("n2", responding=False),
        lambda: at_step(CaseStep.VERIFY, verifying().checked("n2")),
    ),
    (
        "Slurm refuses what slurmd of n2 registers: ",
        lambda: at_step(CaseStep.VERIFY, verifying().checked("n2")).node(
            "n2", flags=frozenset({"DRAIN", "INVALID_REG"})
        ),
        lambda: at_step(CaseStep.VERIFY, verifying().checked("n2")),
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
        lambda: at_step(CaseStep.PROVISION, repair.launched(repair.launching())),
        lambda: unread(at_step(CaseStep.PROVISION, repair.launched(repair.launching()))),
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
    ("The provider refused 2 times; next try in ", lambda: refused(2), lambda: unread(refused(2))),
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
    ("A case is about to be opened.", lambda: degraded(), lambda: unread(degraded())),
    ("A case is opened when Slurm can be read again.", lambda: unread(degraded()), lambda: degraded()),
    (
        "Next: nothing while Slurm cannot be read; then: a case is about to be opened.",
        lambda: unread(degraded()),
        lambda: unread(reported()),
    ),
    (": Slurm cannot be read.", lambda: unread(verifying()), lambda: verifying()),
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
        "n2: slurmctld restarted and shows an older mark of Steward's",
        lambda: repair.launching().drained("n2", "steward:update:renew:b5038d3cd113"),
        lambda: repair.launching(),
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
        lambda: at_step(CaseStep.PROVISION, site.lent(lost_on_site("s1"))).agent("s1", connected=False),
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


ROWS = [*CASES, *SPARES]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())
