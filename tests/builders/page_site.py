"""A site of any size with something of everything that the pages show, in the middle of a working day."""

from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.elastic import Cause, ElasticRun, RunPhase, SizeChange
from steward.model.events import Event, Level
from steward.model.health import Advice, Finding, Outcome, Severity
from steward.model.ids import CaseId, JobId, NodeName
from steward.model.job import JobState
from steward.model.ledger import Ending, Run
from steward.model.memory import Breaker, Incident, Memory
from steward.model.node import NodeBase
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.why import Why
from tests.builders.deep import a_run
from tests.builders.picture import ON, T0, Picture, a_cluster, n, names
from tests.builders.quota import a_quota

HOUR = 3600.0
_USER = 61000
"""Users whom no machine has a name for."""
_PASSED = frozenset({"agent", "clock", "memory", "disk.root", "network", "gpu.count", "gpu.ecc", "gpu.nvlink"})
_LOST = Why(rule="node.lost", text="its agent is gone, and its slurmd does not answer", evidence=("connection reset",))
_ECC = Why(
    rule="health.fatal", text="gpu.ecc: 14 uncorrectable errors on GPU 3", evidence=("Xid 94", "row remap failed")
)
_CULPRIT = Why(
    rule="resume.requeue", text="n7 was lost under it", evidence=("n7: its agent is gone", "step 0: exit 137")
)


def a_busy_site(count: int) -> Picture:
    """`count` nodes, 16 at least, in three partitions, two of which share nodes."""
    picture = a_cluster(count, provider=False)
    nodes, agents = dict(picture.seen.nodes), dict(picture.seen.agents)
    for at, name in enumerate(nodes):
        partitions = {"gpu"} if at < count * 0.75 else {"cpu"} if at < count * 0.95 else {"cpu", "debug"}
        base = NodeBase.ALLOCATED if at % 4 else NodeBase.IDLE
        nodes[name] = replace(nodes[name], partitions=frozenset(partitions), base=base)
        since = tuple(int(T0 - 9 * HOUR) for _ in _PASSED)
        skipped = frozenset({"ib.link", "neuron"})
        agents[name] = replace(agents[name], passed=_PASSED, passed_since=since, skipped=skipped)
    picture = picture.see(nodes=nodes, agents=agents)
    picture = _with_jobs(picture).lost("n7").drained("n9", "fan is loud, ticket 812").agent_lost("n11", ago_s=40)
    picture = picture.failing("n3", Severity.FATAL, check="gpu.ecc", text="14 uncorrectable errors on GPU 3")
    picture = picture.failing("n5", Severity.SUSPECT, check="network", text="a link runs at 100 Gb/s, others at 400")
    unknown = Finding(check="disk.root", outcome=Outcome.UNKNOWN, text="no answer in 8 s", at=T0 - 90)
    picture = picture.agent("n3", findings=(*picture.seen.agents[n("n3")].findings, unknown))
    return replace(picture, memory=_memory(picture))


def told_of() -> list[Event]:
    """Events of that day, oldest first."""
    day = [
        Event(at=T0 - 5 * HOUR, kind="case.closed", text="n14: its checks passed", node=n("n14"), case=CaseId("c3-1")),
        Event(at=T0 - 600, kind="node.fault", text="n7: its agent is gone", level=Level.ERROR, node=n("n7")),
        Event(at=T0 - 595, kind="case.opened", text="n7: lost", level=Level.WARNING, node=n("n7"), case=CaseId("c9-1")),
        Event(at=T0 - 594, kind="job.requeued", text="job 100 is requeued", level=Level.WARNING, job=JobId(100)),
        Event(at=T0 - 300, kind="node.fault", text="n3: gpu.ecc fails", level=Level.WARNING, node=n("n3")),
        Event(at=T0 - 20, kind="job.opted_in", text="job 111 asked to be resumed", job=JobId(111)),
    ]
    return sorted(day, key=lambda event: event.at)


def _with_jobs(picture: Picture) -> Picture:
    """Twelve, four nodes each; the first waits to run again."""
    for at in range(12):
        on = tuple(f"n{1 + (at * 4 + part) % len(picture.seen.nodes)}" for part in range(4))
        picture = picture.job(
            100 + at, on=on, name=f"train-{at}", user_id=_USER + at % 3, partition="gpu", account="ml"
        )
    return picture.change_job(
        100, state=JobState.PENDING, nodes=frozenset(), started=None, reason="Resources", restarts=1
    )


def _memory(picture: Picture) -> Memory:
    jobs, ledger = {}, {}
    for job in picture.seen.jobs.values():
        on, came = job.nodes or names("n5", "n6", "n7", "n8"), T0 - 6 * HOUR
        mem = JobMemory(id=job.id, uid=job.user_id, mode=ON, opted_at=came, nodes=on, restarts=job.restarts)
        last = _run(job.id, job.user_id, job.name, on, came, restart=0)
        if job.id == JobId(100):
            decided = Attempt(
                decided_for="0", decision=Decision.REQUEUE, why=_CULPRIT, at=T0 - 594, culprits=names("n7")
            )
            mem = replace(mem, resumes=1, pending_from=T0 - 594, attempts=(decided,), excluded=names("n7"))
            hit = {"ended": T0 - 600, "ending": Ending.REQUEUED, "decision": Decision.REQUEUE, "why": _CULPRIT}
            times = {"fault": T0 - 603, "detected": T0 - 600, "decided": T0 - 594, "eligible": T0 - 590}
            last = replace(last, culprits=names("n7"), **hit, **times)  # type: ignore[arg-type]
        jobs[job.id], ledger[job.id] = mem, (last,)
    agents = Incident(
        kind="agents", since=T0 - 1200, nodes=names("n11", "n12", "n13"), text="3 agents fell silent at once"
    )
    past = replace(agents, kind="check:lustre", since=T0 - 9 * HOUR, over=T0 - 8 * HOUR, text="lustre hung on 3 nodes")
    deep = a_run("n15", id="d4")
    return Memory(
        cases={case.id: case for case in _cases()},
        jobs=jobs,
        ledger=ledger,
        incidents={one.kind: one for one in (agents, past)},
        breakers={"group:gpu": Breaker(scope="group:gpu", tripped=T0 - 500, text="6 nodes went out within an hour")},
        deeps={deep.id: deep},
        elastic={JobId(101): _elastic()},
        quotas={one.id: one for one in (a_quota("ml", gpus=8), a_quota("physics", gpus=4))},
        agents={name: view.incarnation for name, view in picture.seen.agents.items() if view.incarnation},
    )


def _run(id: JobId, uid: int, name: str, on: frozenset[NodeName], began: float, restart: int) -> Run:
    steps = {"first_step": began + 90, "first": 1, "step": 4200, "stepped": T0 - 604, "checkpoint_step": 4000}
    given = {"job": id, "uid": uid, "name": name, "nodes": on, "partition": "gpu", "account": "ml", "restart": restart}
    return Run(opted_at=began, started=began, checkpointed=T0 - 1500, **given, **steps)  # type: ignore[arg-type]


def _cases() -> list[Case]:
    closed = [
        _case(
            f"c{at}-1",
            f"n{at + 11}",
            CaseStep.CLOSED,
            T0 - (20 - at) * HOUR,
            why=_LOST if at % 2 else _ECC,
            fault_at=T0 - (20 - at) * HOUR,
            returned=T0 - (20 - at) * HOUR + 900 + 600 * at,
            closed=T0 - (20 - at) * HOUR + 900 + 600 * at,
        )
        for at in range(3, 8)
    ]
    return [
        *closed,
        _case("c9-1", "n7", CaseStep.LAUNCH, T0 - 595, why=_LOST, fault_at=T0 - 603, marked=T0 - 590),
        _case("c10-1", "n3", CaseStep.RELEASE, T0 - 290, why=_ECC, trigger=Trigger.FATAL, asked=T0 - 280),
        _case("c8-1", "n16", CaseStep.HELD, T0 - 7200, why=_ECC, trigger=Trigger.FATAL, rung=Advice.REPLACE),
    ]


def _case(id: str, node: str, step: CaseStep, opened: float, **fields: object) -> Case:
    given = {"trigger": Trigger.LOST, "check": "gpu.ecc", "why": _LOST, **fields}
    return Case(id=CaseId(id), node=n(node), step=step, opened=opened, entered=opened + 5, **given)  # type: ignore[arg-type]


def _elastic() -> ElasticRun:
    grown = {"before": 4, "after": 8, "cause": Cause.GROW, "why": "4 idle nodes for 60 s"}
    return ElasticRun(
        id=JobId(101),
        uid=_USER,
        spec="4,8,16",
        base=4,
        phase=RunPhase.RUNNING,
        members=names("n5", "n6", "n7", "n8"),
        events=(SizeChange(at=T0 - 3000, done=T0 - 2990, **grown),),  # type: ignore[arg-type]
        changes=1,
        begun=T0 - 6 * HOUR,
        entered=T0 - 2990,
        counted=T0 - 10,
    )
