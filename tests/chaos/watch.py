"""What is looked at all the time, and how things must stand at the end."""

from collections import Counter
from dataclasses import dataclass, field

from steward.model.case import CaseStep
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import AgentView, Observed
from steward.model.plan import Plan
from tests.fakes.deep_world import DeepSlurm
from tests.fakes.head import Watcher
from tests.fakes.world import World

MAINTENANCE = "my own maintenance"
INVARIANTS = {
    "law": "every plan is deterministic, keeps budgets, touches only what is Steward's, does nothing destructive on an "
    "old picture, and has evidence for each action; a second plan has nothing to do",
    "lost job": "every job that may end well does; one that did not opt in is never touched",
    "doubled launch": "no token makes two machines, no node ever has two, none is left over",
    "foreign drain": "an admin's drain is neither undone nor overwritten, at any moment",
    "stuck": "no case, slot, deep check, shim, reservation or node is left behind, no broken node in service",
    "another end": "a head that was killed ends with the same machines, jobs and restarts as one that was not",
}


@dataclass(slots=True, kw_only=True)
class Watch:
    """`broken` are the invariants that did not hold, each told once. `foreign` are nodes that an admin took out."""

    broken: list[str] = field(default_factory=list)
    foreign: set[NodeName] = field(default_factory=set)
    bystanders: set[JobId] = field(default_factory=set)
    """Jobs that did not opt in and whose nodes are well."""
    cancelled: set[JobId] = field(default_factory=set)
    """By their users."""
    unwritten: set[JobId] = field(default_factory=set)
    """Jobs that opted in while the head could not write that down."""

    def tell(self, invariant: str, text: str) -> None:
        line = f"{invariant}: {text}"
        if line not in self.broken:
            self.broken.append(line)

    def judge(self, law: Watcher, seen: Observed, memory: Memory, decided: Plan) -> None:
        try:
            law(seen, memory, decided)
        except AssertionError as error:
            self.tell("law", str(error).splitlines()[0])

    def look(self, world: World) -> None:
        for name in self.foreign:
            node = world.slurm.nodes.get(name)
            if node is None or not node.is_drain or node.reason is None or node.reason.text != MAINTENANCE:
                self.tell("foreign drain", f"{name} was touched: {node}")
        for token, many in world.machines.launched.items():
            if many > 1:
                self.tell("doubled launch", f"{token} made {many} machines")
        serving = Counter(machine.node for machine in world.machines.alive.values())
        for name, many in serving.items():
            if many > 1:
                self.tell("doubled launch", f"{many} machines serve {name}")
        for id in self.bystanders - world.slurm.timed_out:
            job = world.slurm.jobs[id]
            if job.restarts or job.state in (JobState.CANCELLED, JobState.FAILED, JobState.NODE_FAIL):
                self.tell("lost job", f"{id} did not opt in and was hurt: {job.state.value}")


def unrest(world: World, memory: Memory, foreign: set[NodeName]) -> list[str]:
    """What is neither as it should be nor waits for a person: cases, deep checks, asks, nodes, jobs."""
    held = {case.node for case in memory.cases.values() if case.step is CaseStep.HELD}
    found = [
        f"case {case.id} of {case.node} is at {case.step.value}"
        for case in memory.cases.values()
        if case.is_open and case.step is not CaseStep.HELD
    ]
    found += [f"deep check {run.id} is {run.state.value}" for run in memory.deeps.values() if run.is_open]
    found += [f"ask {ask} was never answered" for ask in world.asks]
    agents = world.agents()
    for name, node in world.slurm.shown_nodes(world.now).items():
        is_sound = node.is_schedulable and world.is_alive(name)
        if not is_sound and name not in held | foreign and not _is_admins(node):
            found.append(f"{name} is out of service: {node.base.value} {sorted(node.flags)} {node.reason}")
        if is_sound and (faults := _faults(agents.get(name))):
            found.append(f"{name} is in service and broken: {', '.join(faults)}")
    found += [f"{node} is held for a person" for node in sorted(held)]
    others = world.slurm.timed_out - world.opted.keys()  # they wait as long as Slurm itself makes them
    open_jobs = [job for job in world.slurm.jobs.values() if not job.is_over and job.id not in others]
    found += [f"job {job.id} is {job.state.value}" for job in open_jobs]
    if isinstance(world.slurm, DeepSlurm):
        found += [f"reservation {name} is left" for name in sorted(world.slurm.reservations)]
    return found


def _is_admins(node: Node) -> bool:
    """A slurmctld that forgot that an admin gave the node back has it drained again, and so it stays."""
    return node.is_drain and node.reason is not None and node.reason.text == MAINTENANCE


def _faults(view: AgentView | None) -> list[str]:
    return [each.check for each in view.findings if each.is_bad and each.severity.takes_out] if view else []
