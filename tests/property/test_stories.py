"""P1 to P6 and P8 to P12 on every plan of every story, and that the world comes to rest (P3)."""

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from steward.model.case import CaseStep
from steward.model.health import Advice, Severity
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.resume import Decision
from steward.model.resume_policy import ResumePolicy
from steward.policy.controls import resume_actions
from steward.policy.facts.incidents import AGENTS
from tests.fakes.head import Head
from tests.property.law import Law
from tests.property.stories import Blow, a_head, blow, opted_in, stories, tell

CALM_S = 1800.0
EXAMPLES = 60
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=stories)
@example(story=[blow("Slurm hangs", size=3), blow("kill", "n1"), blow("xid", "n4", after_s=3.0)])
@example(story=[blow("provider hangs", size=3), blow("kill", "n3")])
@example(story=[blow("kill", "n2"), blow("kill", "n4"), blow("Slurm hangs", after_s=0.3)])
@example(story=[blow("admin drains", "n3"), blow("freeze", "n3"), blow("Action:Replace", "n6", after_s=1.0)])
@example(story=[blow("service down", "n1"), blow("GPU wants a reset", "n2", after_s=8.0), blow("head killed", size=2)])
@example(story=[blow("GPU wants a reset", "n2", after_s=8.0 * i, size=1 + i) for i in range(3)])
@example(story=[blow("agent refuses to mend", size=2), blow("service down", "n3", size=3)])
@example(story=[blow("Kill task failed", "n5"), blow("kill", "n5", after_s=1.0), blow("Prolog error", "n6")])
@example(story=[blow("Prolog error", f"n{i}", after_s=0.3) for i in range(1, 6)])
@example(story=[blow("shared fault", f"n{i}") for i in range(1, 7)] + [blow("kill", "n2", after_s=3.0)])
@example(story=[blow("gres too low", "n4"), blow("admin drains", "n4", after_s=1.0), blow("suspect", "n1")])
@example(story=[blow("kill", f"n{1 + i % 6}", after_s=20.0) for i in range(8)])
@example(story=[blow("kill", f"n{i}") for i in (1, 2, 3)])
@example(story=[blow("power off", f"n{i}") for i in (1, 2, 3, 4)] + [blow("kill", "n6", after_s=8.0)])
@example(story=[blow("submit, with steps"), blow("hang", "n5", after_s=8.0), blow("head killed", after_s=6.0, size=3)])
@example(story=[blow("submit, with steps", size=2), blow("hang", "n6", after_s=8.0), blow("degraded", "n6")])
@example(story=[blow("submit, with steps"), blow("hang", size=3, after_s=8.0), blow("all agents vanish", after_s=3.0)])
def test_every_story_keeps_the_law_and_comes_to_rest(story: list[Blow]) -> None:
    head = a_head()
    tell(head, story)
    assert comes_to_rest(head) == []


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_a_job_that_fails_for_ever_beside_real_faults_is_resumed_as_often_as_its_budget_says(budget: int) -> None:
    head = a_head(resume=ResumePolicy(max_resumes=budget), modes={"check-1": "report"})
    job = head.world.submit(2, bug_after_s=2.0)
    opted_in(head, job)
    for _ in range(40):
        for node in head.world.slurm.nodes:
            head.world.machines.fail_check(node, Severity.FATAL, Advice.REPLACE, head.world.now, "check-1")
        head.run(5.0)
    assert head.world.slurm.jobs[job].state is JobState.FAILED
    assert head.world.slurm.jobs[job].restarts + retries(head, job) == budget


def retries(head: Head, job: JobId) -> int:
    assert head.memory is not None
    return sum(1 for attempt in head.memory.jobs[job].attempts if attempt.decision is Decision.RETRY)


def comes_to_rest(head: Head) -> list[str]:
    """What is still restless after a long calm time; stops as soon as nothing is.

    Tripped breakers and incidents of checks that do not end wait for a person; he comes by now and then.
    """
    for turn in range(int(CALM_S / 20)):
        head.run(20.0)
        if not restless(head):
            return []
        if turn % 10 == 9:
            person_looks(head)
    return restless(head)


def person_looks(head: Head) -> None:
    """He also cancels the jobs that stand still and are left to their users."""
    assert head.memory is not None
    for id, run in head.world.slurm.runs.items():
        mem = head.memory.jobs.get(id)
        hang = mem.hang if mem else None
        if run.hangs and (mem is None or run.step_s is None or (hang is not None and hang.is_settled)):
            head.world.slurm.cancel(id, head.world.now)
    of_checks = [one for one in head.memory.incidents.values() if one.over is None and one.kind != AGENTS]
    if head.memory.breakers or of_checks:
        head.memory = resume_actions(head.memory, head.world.now)


def restless(head: Head) -> list[str]:
    """What is neither as it should be nor waiting for a person."""
    assert head.memory is not None
    found = []
    held = {case.node for case in head.memory.cases.values() if case.step is CaseStep.HELD}
    open_cases = [c for c in head.memory.cases.values() if c.is_open and c.step is not CaseStep.HELD]
    found += [f"case {c.id} of {c.node} is stuck at {c.step.value}" for c in open_cases]
    shown = head.world.slurm.shown_nodes(head.world.now)
    for name, node in shown.items():
        sound = node.is_schedulable and head.world.is_alive(name)
        if not sound and name not in held and not node.is_foreign:
            found.append(f"{name} is out of service and nobody cares: {node}")
    for machines in head.world.machines.launched.items():
        if machines[1] > 1:
            found.append(f"token {machines[0]} made {machines[1]} machines")
    done_twice = [token for token, times in head.world.machines.mended.items() if times > 1]
    found += [f"{token} was carried out more than once" for token in done_twice]
    nodes_used = [m.node for m in head.world.machines.alive.values()]
    found += [f"two machines serve {n}" for n in set(nodes_used) if nodes_used.count(n) > 1]
    found += [f"ask {ask} was never answered" for ask in head.world.asks]
    active = (JobState.RUNNING,)
    running = [j for j in head.world.slurm.jobs.values() if j.state in active and not dead_nodes(head, j.nodes)]
    found += [f"job {j.id} still runs" for j in running]
    found += [f"incident {one.text}" for one in head.memory.incidents.values() if one.over is None]
    if isinstance(head.watch, Law) and head.watch.live is not None:
        found += [f"job {id} could run" for id in head.watch.live.since]
    return found


def dead_nodes(head: Head, nodes: frozenset[NodeName]) -> bool:
    return any(not head.world.is_alive(name) for name in nodes)
