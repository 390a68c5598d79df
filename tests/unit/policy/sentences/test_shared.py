"""The same of the sentences about what jobs share: a closed partition, a team's quota, an elastic run."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.elastic import Cause, RunPhase
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.partition import Gate
from steward.model.quota import GPU, Reclaimed, Share, Wrote, resource
from steward.model.slot import SlotStep
from steward.policy.draft import Draft
from steward.policy.quota.decide import UnitStanding
from steward.policy.quota.turn import Turn, take_turn
from steward.views.explain import explain_job
from steward.views.explain_group import run_lines
from steward.views.explain_quota import lines_of
from tests.builders.picture import T0, Picture, n
from tests.builders.quota import G6, P5, WEAK, a_quota, own, runs, teams, waits
from tests.builders.quota_lent import BEHIND, FIRST, beside_a_new_job, of_two_parts, one_node_free, one_node_lent
from tests.builders.quota_site import a_site, settled
from tests.builders.sentences import ROOT, Row, lacking
from tests.builders.want import but
from tests.fakes.elastic_world import QUICK, ElasticWorld
from tests.unit.policy.quota.test_others import with_account
from tests.unit.policy.views.test_explain_group import gated, of_job, queued
from tests.unit.policy.views.test_quota_explain import evicted, put_back, site

POOL = resource(G6.name, GPU)


def said(picture: Picture, id: int) -> str:
    return "\n".join(explain_job(JobId(id), picture.seen, picture.want, picture.memory, picture.now))


def ruled(standing: UnitStanding, **fields: Any) -> str:
    """Of a job that waits, with another ruling than the turn's own."""
    picture = waits(runs(site(100), 1, "a", 4), 2, "a", 2, reason=fields.pop("reason", "Resources"))
    draft, turn = turn_of(picture)
    rulings = {**turn.rulings, JobId(2): replace(turn.rulings[JobId(2)], standing=standing, **fields)}
    return "\n".join(lines_of(picture.seen.jobs[JobId(2)], replace(turn, rulings=rulings), draft))


def on_one_node(name: str) -> str:
    """Of a job that asks for this node and would borrow: team a has n1, n2 is free for a job of team b, n3 for all."""
    picture = settled(runs(a_site(WEAK, own("a", 4), own("b", 8), machines=3), 1, "a", 4))
    picture = waits(picture, 2, "b", 4, reason="Priority", required=frozenset({n("n2")}))
    return said(waits(picture, 3, "a", 1, reason="Priority", required=frozenset({n(name)})), 3)


def behind(limit_s: float, *, is_planned: bool = True) -> str:
    """Of a job behind one that needs both nodes, of which team a owns one and borrows the other."""
    picture = settled(runs(runs(a_site(replace(WEAK, backfill_s=30.0)), 1, "a", 4), 2, "a", 4, "b", "n2"))
    both = frozenset({n("n1"), n("n2")}) if is_planned else frozenset[NodeName]()
    picture = waits(
        picture, 8, "b", 2, planned=both, node_count=2, priority=5, reason="Resources", eligible=picture.now
    )
    picture = picture.change_job(8, started=picture.now + 3600.0 if is_planned else None)
    return said(waits(picture, 9, "b", 2, priority=5, reason="Priority", time_limit_s=limit_s), 9)


def borrows_behind(limit_s: float) -> str:
    """Of a job that would borrow the free node, behind one that needs both; the other node is full of owned jobs."""
    picture = settled(runs(a_site(WEAK), 1, "b", 4))
    both = frozenset({n("n1"), n("n2")})
    picture = waits(picture, 8, "a", 2, planned=both, node_count=2, priority=5, reason="Resources")
    picture = picture.change_job(8, started=picture.now + 3600.0)
    return said(waits(picture, 9, "b", 2, priority=5, reason="Priority", time_limit_s=limit_s), 9)


def with_a_part_taken_back(later_s: float) -> Picture:
    """A job in two parts of which Slurm delays one by so many seconds; nobody has borrowed anything."""
    picture = settled(a_site(WEAK, own("b", 8)))
    before = picture.now - 300.0
    picture = of_two_parts(picture, "b", submitted=before, eligible=before)
    reason = "BeginTime" if later_s else "Resources"
    return picture.change_job(FIRST, reason=reason, submitted=before, eligible=picture.now + later_s)


def behind_a_part(*kept: str) -> Picture:
    """A job that needs n2 is behind a part of another one for which Slurm keeps these nodes."""
    first = of_two_parts(one_node_lent(), "b").change_job(FIRST, planned=frozenset(map(n, kept)), started=T0)
    return waits(first, BEHIND, "b", 2, priority=5, reason="Priority")


def turn_of(picture: Picture) -> tuple[Draft, Turn]:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    turn = take_turn(draft)
    assert turn is not None
    return draft, turn


def has_to_go(cause: Reclaimed) -> str:
    """Of a borrowed job that was chosen in this turn, for this cause."""
    picture = waits(runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2"), 3, "b", 4)
    draft, turn = turn_of(picture)
    (chosen,) = turn.yielding
    turn = replace(turn, yielding=(replace(chosen, cause=cause),))
    return "\n".join(lines_of(picture.seen.jobs[JobId(2)], turn, draft))


def busy() -> Picture:
    """Team a has its four GPUs, b three of the others."""
    return runs(runs(site(100), 1, "a", 4), 2, "b", 3, "g", "n2")


def in_use(team: str = "b") -> str:
    return said(waits(busy(), 3, "a", 2), 3) if team == "b" else said(waits(site(100), 3, "a", 2), 3)


def by_hand(foreign: str) -> str:
    picture = waits(a_site(), 1, "a", 2, reason="QOSGrpGRES")
    writes = {**picture.memory.quota_writes, "stw-a-g/cap:gres/gpu": Wrote(values=("4",), foreign=foreign)}
    return said(replace(picture, memory=replace(picture.memory, quota_writes=writes)), 1)


def not_lent() -> str:
    """Team a owns nothing more, and four GPUs are no team's."""
    return said(waits(settled(runs(a_site(WEAK, own("a", 4)), 1, "a", 4)), 2, "a", 2), 2)


def of_account(name: str) -> str:
    """Account dept has no quota and is limited by us, with all below it."""
    site = with_account(with_account(a_site(), "dept"), "sub", parent="dept")
    return said(waits(settled(site), 1, name, 1), 1)


def after_its_own() -> Picture:
    """Of the six that team a may have, five are for jobs of its own that wait longer."""
    picture = waits(waits(site(), 1, "a", 4, submitted=T0 - 9), 3, "a", 1, submitted=T0 - 8)
    return waits(picture, 2, "a", 2)


def out_of_service() -> Picture:
    """Team a has all that works; the other machine is drained."""
    picture = waits(runs(site(100), 1, "a", 4), 3, "a", 2)
    return picture.drained("n2", "fan")


def is_evicted(**fields: Any) -> Picture:
    return evicted(waits(runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2"), 3, "b", 4), **fields)


def was_evicted(count: int = 1) -> str:
    picture = evicted(waits(runs(site(100), 3, "b", 4), 2, "a", 4), over=T0 - 10)
    memory = {id: replace(one, count=count) for id, one in picture.memory.quota_jobs.items()}
    return said(replace(picture, memory=replace(picture.memory, quota_jobs=memory)), 2)


def unread(trouble: str | None) -> str:
    picture = waits(site(), 1, "a", 1)
    assert picture.seen.accounting is not None
    accounting = None if trouble is None else replace(picture.seen.accounting, trouble=trouble)
    return said(picture.see(accounting=accounting), 1)


QUOTAS: list[Row] = [
    ("Quotas are not in force now: slurmdbd is down.", lambda: unread("slurmdbd is down"), lambda: unread("")),
    ("Slurm's accounting has not been read yet", lambda: unread(None), lambda: unread("slurmdbd is down")),
    (
        "Its priority class none-such is none of this site's",
        lambda: said(waits(site(), 1, "a", 1, comment="priority-class=none-such"), 1),
        lambda: said(waits(site(), 1, "a", 1), 1),
    ),
    (
        "Account other has no quota: the job cannot be evicted; it may use what teams own. For a team's share: "
        "sbatch -A TEAM. An admin limits the account with a quota, or with: sacctmgr modify account where name=other",
        lambda: said(waits(site(), 1, "other", 1), 1),
        lambda: said(waits(site(), 1, "a", 1), 1),
    ),
    (
        "and it may use only what no team owns (with all accounts below dept). For a team's share: sbatch -A TEAM.",
        lambda: of_account("sub"),
        lambda: of_account("dept"),
    ),
    (
        "and it may use only what no team owns. For a team's share: sbatch -A TEAM.",
        lambda: of_account("dept"),
        lambda: said(waits(site(), 1, "other", 1), 1),
    ),
    (
        "For a team's share name its account: sbatch -A TEAM.",
        lambda: said(waits(site(), 1, "", 1), 1),
        lambda: said(waits(site(), 1, "other", 1), 1),
    ),
    (
        "its team had borrowed, and the owner wants it back",
        lambda: has_to_go(Reclaimed.RECLAIM),
        lambda: has_to_go(Reclaimed.PRIORITY),
    ),
    (
        "a job of its own team has a higher priority class",
        lambda: has_to_go(Reclaimed.IN_TEAM),
        lambda: has_to_go(Reclaimed.RECLAIM),
    ),
    (
        "it was borrowed, and that job has a higher priority class",
        lambda: has_to_go(Reclaimed.PRIORITY),
        lambda: has_to_go(Reclaimed.IN_TEAM),
    ),
    (
        "its team had borrowed more than its fair share",
        lambda: has_to_go(Reclaimed.REBALANCE),
        lambda: has_to_go(Reclaimed.RECLAIM),
    ),
    (
        "The job is to be evicted for job 3 of team b: ",
        lambda: has_to_go(Reclaimed.RECLAIM),
        lambda: said(runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2"), 2),
    ),
    (
        "GPUs of ml.g6.12xlarge; guaranteed). No other team can take that back.",
        lambda: said(runs(site(100), 1, "a", 4), 1),
        lambda: said(runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2"), 2),
    ),
    (
        "The quota of team a limits nothing that the job uses. No other team can take that back.",
        lambda: said(runs(site(), 1, "a", 0), 1),
        lambda: said(runs(site(), 1, "a", 1), 1),
    ),
    (
        "; Slurm's delay after its requeue is about to be ended.",
        lambda: said(put_back(reason="BeginTime", eligible=T0 + 100), 3),
        lambda: said(put_back(reason="Resources"), 3),
    ),
    (
        "; one of its parts could not start, and Slurm's delay after that is about to be ended",
        lambda: said(with_a_part_taken_back(120.0), FIRST),
        lambda: said(with_a_part_taken_back(0.0), FIRST),
    ),
    (
        "begun with borrowed resources, covered by now",
        lambda: said(runs(site(100), 1, "a", 4, "b"), 1),
        lambda: said(runs(site(100), 1, "a", 4), 1),
    ),
    (
        "Quota of team a: the job runs with borrowed resources (",
        lambda: said(runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2"), 2),
        lambda: said(runs(site(100), 1, "a", 4, "b"), 1),
    ),
    ("; Slurm ends it.", lambda: said(is_evicted(), 2), lambda: said(is_evicted(due=T0 + 30), 2)),
    ("its grace ends in 30 s", lambda: said(is_evicted(due=T0 + 30), 2), lambda: said(is_evicted(), 2)),
    (
        "job 2 of team a to be evicted, in 30 s at the latest",
        lambda: said(is_evicted(due=T0 + 30), 3),
        lambda: said(is_evicted(), 3),
    ),
    (
        "it waits for job 2 of team a to be evicted.",
        lambda: said(waits(runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2"), 3, "b", 4), 3),
        lambda: said(waits(runs(site(100), 1, "a", 4), 3, "b", 4), 3),
    ),
    (
        "Quota of team a: the job is not ready to run (JobHeldUser).",
        lambda: said(waits(site(), 1, "a", 2, reason="JobHeldUser"), 1),
        lambda: said(waits(site(), 1, "a", 2, reason="Resources"), 1),
    ),
    (
        "Quota of team a: the job was evicted before, and may borrow again in 60 s; the team's own quota is used up.",
        lambda: ruled(UnitStanding.BACKS_OFF, until=T0 + 60),
        lambda: ruled(UnitStanding.WAITS),
    ),
    (
        "its jobs start in order (quota.strict), and an earlier one waits.",
        lambda: ruled(UnitStanding.BEHIND),
        lambda: ruled(UnitStanding.WAITS),
    ),
    (
        "it asks for a kind of machine or accelerator that the cluster does not have.",
        lambda: said(waits(site(), 1, "a", 1, requested="cpu=1,mem=1G,node=1,gres/gpu:h100=1"), 1),
        lambda: said(waits(site(), 1, "a", 7), 1),
    ),
    (
        "Quota of team a: the job never fits: it asks for 7 GPUs of ml.g6.12xlarge, and the team may have 6 GPUs of "
        "ml.g6.12xlarge at most (its quota and its borrow limit). Ask for no more than that.",
        lambda: said(waits(site(), 1, "a", 7), 1),
        lambda: said(waits(site(), 1, "a", 6), 1),
    ),
    (
        "Its quota is of ml.p5.48xlarge, of which the cluster has no node.",
        lambda: never_of_absent(),
        lambda: said(waits(site(), 1, "a", 7), 1),
    ),
    (
        "the job may borrow, but what is free on nodes that it may use is promised to jobs that come first: it waits "
        "for nodes.",
        lambda: on_one_node("n2"),
        lambda: on_one_node("n1"),
    ),
    (
        "the job may borrow, but no node that it may use would have room for it, even if every borrower were evicted: "
        "it waits for nodes.",
        lambda: on_one_node("n1"),
        lambda: ruled(UnitStanding.WAITS),
    ),
    (
        "but job 9 may start on nodes that it needs, and Slurm has not looked at that job yet: no job is evicted for "
        "this one until it has (Slurm: Resources).",
        lambda: said(beside_a_new_job(), 8),
        lambda: said(beside_a_new_job(reason="Resources"), 8),
    ),
    (
        "the job waits until other jobs of its team leave room.",
        lambda: ruled(UnitStanding.WAITS, short={}),
        lambda: ruled(UnitStanding.WAITS, short={POOL: 1}),
    ),
    (
        "the team has reached its limit (",
        lambda: said(waits(runs(runs(site(), 1, "a", 4), 2, "a", 2, "b", "n2"), 3, "a", 1), 3),
        lambda: in_use(),
    ),
    ("others have that or come first: b has 3 GPUs of ml.g6.12xlarge", lambda: in_use(), lambda: in_use("nobody")),
    (
        "b waits for nodes for 4 GPUs of ml.g6.12xlarge",
        lambda: said(waits(waits(runs(site(100), 1, "a", 4), 2, "b", 4, submitted=T0 - 9), 3, "a", 2), 3),
        lambda: in_use(),
    ),
    (
        "no node that takes jobs has them free",
        lambda: said(out_of_service(), 3),
        lambda: in_use(),
    ),
    (
        "4 GPUs of ml.g6.12xlarge are idle, but no team lends them: what no team owns is lent with IdleResourceSharing "
        "(ClusterSchedulerConfig) only, and DontLend lends nothing",
        lambda: not_lent(),
        lambda: in_use(),
    ),
    (
        "2 GPUs of ml.g6.12xlarge are idle, but only 1 GPU of ml.g6.12xlarge of them are lent: ",
        lambda: ruled(UnitStanding.WAITS, short={POOL: 1}),
        lambda: not_lent(),
    ),
    (
        "other waiting jobs of its team come first and take what is left of its limit (",
        lambda: said(after_its_own(), 2),
        lambda: said(waits(runs(runs(site(), 1, "a", 4), 2, "a", 2, "b", "n2"), 3, "a", 1), 3),
    ),
    (
        "Quota of team a: the job waits, short of 1 GPU of ml.g6.12xlarge; ",
        lambda: in_use(),
        lambda: in_use("nobody"),
    ),
    (
        "Shares of what is lent, by weight (the least comes first): a 0.025.",
        lambda: said(waits(runs(runs(site(), 1, "a", 4), 2, "a", 2, "b", "n2"), 3, "a", 1), 3),
        lambda: in_use(),
    ),
    (
        "Quota of team a: the job may run with what others lend (2 GPUs of ml.g6.12xlarge); it waits for nodes",
        lambda: said(waits(runs(site(), 1, "a", 4), 2, "a", 2, reason="Resources"), 2),
        lambda: said(waits(site(), 1, "a", 2, reason="Resources"), 1),
    ),
    (
        "The quota of team a covers the job (2 GPUs of ml.g6.12xlarge); it waits for nodes (Slurm: Resources).",
        lambda: said(waits(site(), 1, "a", 2, reason="Resources"), 1),
        lambda: said(waits(runs(site(), 1, "a", 4), 2, "a", 2, reason="Resources"), 2),
    ),
    (
        "The quota of team a covers the job, but no ml.g6.12xlarge takes jobs now: it waits until one does (Slurm: ",
        lambda: said(waits(site(), 1, "a", 2, reason="Resources").drained("n1", "fan").drained("n2", "fan"), 1),
        lambda: said(waits(site(), 1, "a", 2, reason="Resources").drained("n1", "fan"), 1),
    ),
    (
        "it waits for nodes (Slurm: Resources). Other jobs of the team may start before it.",
        lambda: ruled(UnitStanding.OWN, hopeless=True),
        lambda: ruled(UnitStanding.OWN, hopeless=False),
    ),
    (
        "The quota of team b covers the job, but Slurm keeps n1, n2 for job 8, which comes first and is to start in 60 "
        "min: only jobs that are over by then start there before it (Slurm: Priority).",
        lambda: behind(7200.0),
        lambda: behind(600.0),
    ),
    (
        "Quota of team b: the job may borrow, but Slurm keeps n1, n2 for job 8, which comes first and is to start in",
        lambda: borrows_behind(7200.0),
        lambda: borrows_behind(600.0),
    ),
    (
        "The quota of team b covers the job, but job 8, which comes first, has no room either, and Slurm has not "
        "planned yet which nodes it keeps for job 8: no job is evicted for this one until it has (Slurm: Priority).",
        lambda: behind(600.0, is_planned=False),
        lambda: behind(600.0),
    ),
    (
        "The quota of team b covers the job, but job 10, which comes first, waits for nodes of its own for each of its "
        "parts, and Slurm would keep what is freed for one of them: no job is evicted for this one (Slurm: Priority).",
        lambda: said(waits(of_two_parts(one_node_lent(), "b"), BEHIND, "b", 2, priority=5, reason="Priority"), BEHIND),
        lambda: said(waits(of_two_parts(one_node_lent(), "b"), BEHIND, "b", 2, priority=10, reason="None"), BEHIND),
    ),
    (
        "The quota of team b covers the job, but Slurm keeps n2 for a part of job 10, which comes first and waits for "
        "all of its parts (Slurm: Priority).",
        lambda: said(behind_a_part("n2"), BEHIND),
        lambda: said(behind_a_part(), BEHIND),
    ),
    (
        "the job may borrow, but too few nodes are free for all of its parts at once: it waits for nodes",
        lambda: said(of_two_parts(one_node_free(), "a"), FIRST),
        lambda: said(of_two_parts(one_node_lent(), "a"), FIRST),
    ),
    (
        "the limit in Slurm is about to be raised (QOSGrpGRES)",
        lambda: said(waits(runs(site(), 1, "a", 4), 2, "a", 2, qos="stw-a-b", reason="QOSGrpGRES"), 2),
        lambda: by_hand("1"),
    ),
    (
        "a limit that was set by hand holds it up: gres/gpu=1 of QOS stw-a-g (QOSGrpGRES)",
        lambda: by_hand("1"),
        lambda: by_hand("8"),
    ),
    (
        "there is room for that in the limit; if Slurm still says QOSGrpGRES, Slurm counts more for the job than it "
        "asked for: with --exclusive all GPUs of the machine",
        lambda: by_hand("8"),
        lambda: by_hand("1"),
    ),
    ("The job was evicted 2 times. ", lambda: was_evicted(2), lambda: was_evicted(1)),
    (
        "An eviction costs no resume and blames no node; the job keeps its place by its time of submission.",
        lambda: was_evicted(),
        lambda: said(is_evicted(), 2),
    ),
]


def never_of_absent() -> str:
    """A team's quota is of a machine that the cluster does not have."""
    return said(waits(teams(a_quota("a", Share(machine_type=P5.name, accelerators=8))), 1, "a", 1), 1)


GATES: list[Row] = [
    (
        "The job waits because its partition is closed: group workers waits for its minimum",
        lambda: of_job(queued(gated())),
        lambda: of_job(queued(gated().remember(gates={"dev": Gate(partition="dev", open=True, set_at=T0)}))),
    ),
    (
        "Group workers is Updating: 2 in service, at least 3 wanted, 3 in all.",
        lambda: of_job(queued(gated())),
        lambda: of_job(queued(gated(), state=JobState.RUNNING)),
    ),
    (
        "The job asks for 9 nodes, and partition dev has 2 in service.",
        lambda: of_job(opened(9)),
        lambda: of_job(opened(2)),
    ),
    (
        "Its minimum must be there ",
        lambda: of_job(queued(gated())),
        lambda: of_job(queued(gated().change_group("workers", minimum_since=None))),
    ),
    (
        "otherwise it goes back to its last good size (2, at least 1).",
        lambda: of_job(queued(gated())),
        lambda: of_job(queued(gated().change_group("workers", good=None))),
    ),
    (
        "otherwise it goes back to nothing, as it is new.",
        lambda: of_job(queued(gated().change_group("workers", good=None))),
        lambda: of_job(queued(gated())),
    ),
    (
        "Next may come workers-3: ",
        lambda: of_job(queued(gated())),
        lambda: of_job(queued(gated(step=SlotStep.SERVING))),
    ),
]


def opened(nodes: int) -> Any:
    gate = Gate(partition="dev", open=True, set_at=T0)
    return queued(gated().remember(gates={"dev": gate}), node_count=nodes)


def a_world(**fields: Any) -> ElasticWorld:
    world = ElasticWorld(**fields)
    world.go(40)
    return world


def of_run(paused_site: bool = False, **fields: Any) -> str:
    world = a_world()
    run = replace(world.run, cool_until=0.0, **fields) if "cool_until" not in fields else replace(world.run, **fields)
    return "\n".join(run_lines(run, but(QUICK, enabled=not paused_site), world.now))


def of_replica(id: int = 0) -> str:
    world = a_world()
    seen, job = world.picture, JobId(id or world.replicas()[0].id)
    return "\n".join(explain_job(job, seen.seen, seen.want, seen.memory, world.now))


def awaited_replica() -> str:
    world = a_world()
    one = replace(world.run.replicas[0], job=None, ending=None)
    return "\n".join(run_lines(replace(world.run, cool_until=0.0, replicas=(one,)), QUICK, world.now))


ELASTIC: list[Row] = [
    (
        "Replica of elastic run 7: a preemptible part of it, given back when others need its nodes.",
        lambda: of_replica(),
        lambda: of_replica(7),
    ),
    ("Elastic run 7 has 5 nodes (sizes: 2, 3, 4, 5); ", lambda: of_run(), lambda: of_run(phase=RunPhase.ENDED)),
    ("changes of size so far.", lambda: of_run(), lambda: in_use()),
    (
        "forms with 2 nodes, its base",
        lambda: of_run(phase=RunPhase.WAITING),
        lambda: of_run(phase=RunPhase.REFORMING),
    ),
    ("forms with 5 nodes", lambda: of_run(phase=RunPhase.REFORMING), lambda: of_run(phase=RunPhase.WAITING)),
    (
        "has 5 nodes and goes to 2",
        lambda: draining(2),
        lambda: of_run(),
    ),
    (
        "The run stays at its size: it has no coordinator (no token).",
        lambda: of_run(why_no_coordinator="no token"),
        lambda: of_run(),
    ),
    (
        "The run waits for its first step with all nodes of its base. It stays at their number where its processes are "
        "not started by torchrun --rdzv-backend=steward or python -m steward.job.launch.",
        lambda: of_run(phase=RunPhase.WAITING),
        lambda: of_run(),
    ),
    ("The run is changing its size (draining for ", lambda: draining(2), lambda: of_run()),
    ("The run does not grow: a person paused it.", lambda: of_run(paused=True), lambda: of_run(paused_site=True)),
    (
        "The run does not grow: the site does not let runs grow.",
        lambda: of_run(paused_site=True),
        lambda: of_run(paused=True),
    ),
    (
        "The run does not grow: its program never asks whether to save (resize_wanted), so that a growth would throw "
        "away what it did since its last checkpoint.",
        lambda: of_run(steerable=False),
        lambda: of_run(),
    ),
    (
        "at the earliest: a change of size was made or tried.",
        lambda: of_run(cool_until=2 * T0),
        lambda: of_run(),
    ),
    ("The run has asked for 1 more nodes.", lambda: awaited_replica(), lambda: of_run()),
    (" (a person asked for 3 nodes)", lambda: of_run(wish=3), lambda: of_run()),
    (
        "The run grows when enough idle, sound nodes are there that no waiting job needs, and growing gains more than "
        "its pause costs",
        lambda: of_run(),
        lambda: of_run(paused=True),
    ),
    (" (first step ", lambda: of_run(), lambda: of_run(events=())),
]


def draining(count: int) -> str:
    world = a_world()
    to = frozenset(sorted(world.run.members)[:count])
    run = replace(world.run, phase=RunPhase.DRAINING, ordered_members=to, cause=Cause.RECLAIMED)
    return "\n".join(run_lines(run, QUICK, world.now))


ROWS = [*QUOTAS, *GATES, *ELASTIC]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Any, false: Any) -> None:
    assert sentence in true()
    assert sentence not in false()


_OF_GROUPS = "explain_group|_counts|_gate|_rollout|_bring_ups|_operations|_away|_missing|_step|slot_lines|_PURPOSES"


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    paths = [ROOT / "views/explain_quota.py", ROOT / "views/explain_group.py"]
    assert lacking(paths, _OF_GROUPS, ((true(), false()) for _, true, false in ROWS)) == []
