"""What one plan costs on a large site: `python -m tests.bench.plans [--nodes N] [--jobs N] [--json FILE]`.

Each row is a world that is planned seven times, each time with the memory of the plan before, as the head does it:
`cold_s` is the first plan of a head, which knows no record yet, `first_s` the first one that sees this world after a
quiet one, `later_s` the median of those that follow, `worst_s` the longest of them, in CPU seconds of one thread.
Goals: no plan after the first one takes more than 0.1 s, nor does the first one when 300 shims ask at once.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from steward.head.serve import suit_many_nodes
from steward.model.ask import AskKind, OptedIn
from steward.model.case import Case, CaseStep, Trigger
from steward.model.deep import DeepKind
from steward.model.group import Cluster, ClusterStatus, Goal, GroupStatus
from steward.model.health import Advice
from steward.model.ids import CaseId, InstanceId, JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.memory import Memory
from steward.model.node import NodeBase, Reason
from steward.model.reservation import Reservation, keep_name
from steward.model.resume import Attempt, Decision, JobMemory, KeptNodes
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.plan import Plans
from tests.builders.capacity import a_group
from tests.builders.picture import ON, T0, Picture, a_cluster, n
from tests.builders.want import but

GOAL_S = 0.1
_SHIMS = "300 shims ask at once"
_TIMES = 5
_OWN = 1600
_JOB: dict[str, Any] = {"name": "train", "partition": "main", "node_count": 1}
_WHY = Why(rule="bench", text="a node of it died")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_006)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    suit_many_nodes()
    site = a_site(asked.nodes, asked.jobs)
    worlds: dict[str, tuple[Picture, Picture]] = {
        "quiet": (site, site),
        "quiet, 250 agents heard": (site, heard(site, 250)),
        "quiet, all jobs opted in": (opted := opted_in(site), opted),
        "quiet, all nodes of one API group": (group := grouped(site), group),
        "one node is lost": (opted, opted.lost("n2000")),
        "1,000 nodes are lost with 1,000 jobs": (opted, opted.lost(*(f"n{_OWN + i}" for i in range(1, 1001)))),
        _SHIMS: (opted, asking(opted, 300)),
        "200 resumed jobs wait": (site, resumed(site, 200)),
        "200 resumed jobs wait, nodes are kept": (site, kept(resumed(site, 200))),
        "300 deep checks on start": (site, deep_checks(site, 300)),
        "all but six bear a reason, 5,000 jobs held": (away := held(out(a_cluster(asked.nodes)), asked.jobs), away),
        "and one of the six is lost": (away, away.lost("n1")),
        "six nodes, 66 jobs ended": (six := a_cluster(6), ended(six, 66)),
        "six nodes, 2,000 jobs held": (six, held(six, 2000)),
    }
    rows = [row(name, *pictures) for name, pictures in worlds.items()]
    print(json.dumps(rows, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(rows))
    missed = [f"{each['world']}: {each['worst_s']} s" for each in rows if each["worst_s"] > GOAL_S]
    missed += [
        f"{_SHIMS}: {each['first_s']} s" for each in rows if each["world"] == _SHIMS and each["first_s"] > GOAL_S
    ]
    for line in missed:
        print(f"missed: {line}, the goal is {GOAL_S} s")
    return 1 if missed else 0


def row(name: str, before: Picture, after: Picture) -> dict[str, Any]:
    plans = Plans()
    memory, cold = planned(plans, before, before.memory, before.now - 10)
    memory, _ = planned(plans, before, memory, before.now - 5)
    if after.memory is not before.memory:
        memory = replace(after.memory, agents=memory.agents, served=memory.served)
    took = []
    for turn in range(1 + _TIMES):
        memory, seconds = planned(plans, after, memory, after.now + turn)
        took.append(seconds)
    first, *later = took
    figures = {"cold_s": cold, "first_s": first, "later_s": statistics.median(later), "worst_s": max(later)}
    return {"world": name, **{word: round(seconds, 4) for word, seconds in figures.items()}}


def planned(plans: Plans, world: Picture, memory: Memory, now: float) -> tuple[Memory, float]:
    seen = replace(world.seen, at=now, reservations_at=now)
    began = time.thread_time()
    found = plans(seen, world.want, memory, now)
    return found.memory, time.thread_time() - began


def heard(site: Picture, many: int) -> Picture:
    """So many agents' beats came since."""
    return site.heard(*(f"n{i}" for i in range(1, many + 1)))


def opted_in(site: Picture) -> Picture:
    """All that run, each by the word of its node."""
    running = [job for job in site.seen.jobs.values() if job.is_active]
    words = [
        OptedIn(job=job.id, uid=job.user_id, mode=ON, restart=0, at=T0 - 8000, told_by=job.nodes) for job in running
    ]
    return site.see(opted_in=tuple(words))


def asking(site: Picture, many: int) -> Picture:
    """So many batch scripts failed when a node of each was lost."""
    for id, job in [each for each in site.seen.jobs.items() if each[1].is_active][:many]:
        node = min(job.nodes)
        site = site.lost(node).ask(AskKind.BATCH, id=id, node=node, uid=job.user_id)
    return site


def grouped(site: Picture) -> Picture:
    """Every node is a slot that serves, of an API cluster with one group."""
    target = len(site.seen.nodes)
    group = replace(a_group("workers", target, status=GroupStatus.IN_SERVICE), good=Goal(target=target))
    cluster = Cluster(name="demo", id="abcdef012345", created=T0, status=ClusterStatus.IN_SERVICE, serial=target)
    slots = {name: a_slot(name, number) for number, name in enumerate(site.seen.nodes)}
    memory = replace(site.memory, cluster=cluster, groups={"workers": group}, slots=slots)
    return replace(site, memory=memory, want=replace(site.want, slots={})).see(partitions_at=T0)


def a_slot(node: NodeName, number: int) -> SlotRecord:
    return SlotRecord(
        node=node,
        group="workers",
        logical=f"abcdef012345-{number}",
        step=SlotStep.SERVING,
        entered=T0 - 9000,
        created=T0 - 9900 + number / 100,
        instance=InstanceId(f"i-{node}"),
        launched=T0 - 9500,
        served=T0 - 9000,
        has_served=True,
        why=_WHY,
    )


def out(site: Picture) -> Picture:
    """All but six nodes were taken out of service by somebody, long ago, and no agent was ever there."""
    reason = Reason(text="not bought yet", user="root", at=T0 - 90_000)
    names = list(site.seen.nodes)[6:]
    nodes = {
        name: replace(site.seen.nodes[name], base=NodeBase.DOWN, reason=reason, responding=False) for name in names
    }
    agents = {name: view for name, view in site.seen.agents.items() if name not in nodes}
    return site.see(nodes={**site.seen.nodes, **nodes}, agents=agents, agents_since=T0 - 9000)


def ended(site: Picture, many: int) -> Picture:
    nodes = frozenset({n("n1")})
    return with_jobs(site, (a_job(JobId(i), state=JobState.COMPLETED, nodes=nodes, ended=T0 - 60) for i in range(many)))


def held(site: Picture, many: int) -> Picture:
    return with_jobs(site, (a_job(JobId(i), state=JobState.PENDING, reason="JobHeldUser") for i in range(many)))


def with_jobs(site: Picture, jobs: Iterable[Job]) -> Picture:
    return site.see(jobs={**site.seen.jobs, **{job.id: job for job in jobs}})


def a_site(nodes: int, jobs: int) -> Picture:
    """A job on each node but the first 1,600; the other jobs wait for nodes."""
    site = a_cluster(nodes)
    busy = range(_OWN + 1, nodes + 1)
    table = {n(f"n{i}"): replace(site.seen.nodes[n(f"n{i}")], base=NodeBase.ALLOCATED) for i in busy}
    ids = map(JobId, range(_OWN, _OWN + jobs))
    running = {id: a_job(id, nodes=frozenset({n(f"n{i}")})) for i, id in zip(busy, ids, strict=False)}
    waiting = {id: a_job(id, state=JobState.PENDING, reason="Resources", node_count=16) for id in ids}
    return site.see(nodes={**site.seen.nodes, **table}, jobs={**running, **waiting})


def a_job(id: JobId, **fields: Any) -> Job:
    return Job(
        id=id, **{"state": JobState.RUNNING, "user_id": 1000 + id % 40, "submitted": T0 - 9000, **_JOB, **fields}
    )


def resumed(site: Picture, many: int) -> Picture:
    """So many jobs of eight nodes are back in the queue, each because of one node, which is being replaced."""
    dead = [n(f"n{8 * i + 1}") for i in range(many)]
    flags = frozenset({"DRAIN", "NOT_RESPONDING"})
    nodes, cases, jobs, memories = {}, {}, {}, {}
    for i, name in enumerate(dead):
        case = a_case(i, name, CaseStep.LAUNCH)
        reason = Reason(text=f"steward:{case.check}:{case.rung.value}:{case.id}", user="slurm", at=T0 - 60)
        nodes[name] = replace(site.seen.nodes[name], base=NodeBase.DOWN, flags=flags, reason=reason, responding=False)
        cases[case.id] = case
        job = a_job(JobId(i + 1), state=JobState.PENDING, reason="Resources", node_count=8, restarts=1)
        jobs[job.id], memories[job.id] = job, a_memory(job, name, frozenset(n(f"n{8 * i + k}") for k in range(1, 9)))
    memory = replace(site.memory, cases=cases, jobs=memories, next_case=many)
    agents = {name: replace(site.seen.agents[name], connected=False, lost_at=T0 - 60) for name in dead}
    return replace(site, memory=memory).see(
        nodes={**site.seen.nodes, **nodes}, jobs={**site.seen.jobs, **jobs}, agents={**site.seen.agents, **agents}
    )


def a_case(number: int, node: NodeName, step: CaseStep) -> Case:
    return Case(
        id=CaseId(f"c{number}"),
        node=node,
        trigger=Trigger.LOST,
        check="lost",
        step=step,
        entered=T0 - 60,
        opened=T0 - 60,
        marked=T0 - 60,
        why=_WHY,
        rung=Advice.REPLACE,
    )


def a_memory(job: Job, dead: NodeName, nodes: frozenset[NodeName]) -> JobMemory:
    last = Attempt(
        decided_for="1",
        decision=Decision.WAIT,
        why=_WHY,
        at=T0 - 60,
        culprits=frozenset({dead}),
        requeued=T0 - 59,
    )
    return JobMemory(
        id=job.id,
        uid=job.user_id,
        mode=ON,
        opted_at=T0 - 8000,
        resumes=1,
        pending_from=T0 - 59,
        nodes=nodes,
        started=T0 - 7000,
        attempts=(last,),
    )


def kept(site: Picture) -> Picture:
    """And the sound nodes of each are kept for it."""
    memories, reservations = {}, {}
    for id, mem in site.memory.jobs.items():
        nodes = frozenset(mem.nodes - mem.attempts[-1].culprits)
        memories[id] = replace(mem, kept=KeptNodes(restart=0, nodes=nodes, since=T0 - 59, until=T0 + 900))
        name = keep_name(id)
        reservations[name] = Reservation(name=name, nodes=nodes, starts=T0 - 59, ends=T0 + 300)
    return replace(site, memory=replace(site.memory, jobs=memories)).see(reservations=reservations)


def deep_checks(site: Picture, many: int) -> Picture:
    """So many new machines are to prove themselves before they serve."""
    nodes, cases = {}, {}
    for i in range(many):
        name = n(f"n{i + 1}")
        case = a_case(i, name, CaseStep.RETURN)
        cases[case.id] = case
        reason = Reason(text=f"steward:{case.check}:{case.rung.value}:{case.id}", user="slurm", at=T0 - 60)
        nodes[name] = replace(site.seen.nodes[name], flags=frozenset({"DRAIN"}), reason=reason)
    want = replace(site.want, deep=but(site.want.deep, on_start=tuple(DeepKind)))
    memory = replace(site.memory, cases=cases, next_case=many)
    return replace(site, want=want, memory=memory).see(nodes={**site.seen.nodes, **nodes})


if __name__ == "__main__":
    sys.exit(main())
