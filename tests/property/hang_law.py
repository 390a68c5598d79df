"""What must hold of every plan where jobs stand still: only who asked is touched, nothing is ended unseen."""

from collections.abc import Callable
from dataclasses import dataclass, field

from steward.model.agent_action import CollectStacks
from steward.model.desired import Desired
from steward.model.ids import JobId
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.model.resume import Attempt, Decision, JobMemory


@dataclass(slots=True)
class HangLaw:
    """`hangs` says whether a job really does."""

    want: Desired
    hangs: Callable[[JobId], bool] = lambda job: True
    looked_at: set[tuple[JobId, int]] = field(default_factory=set)
    """Runs whose stacks were asked for."""

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        for action in decided.actions:
            if isinstance(action, CollectStacks):
                self._asks_who_told(action, seen, decided)
                self.looked_at.add((action.job, seen.jobs[action.job].restarts))
        for id, mem in decided.memory.jobs.items():
            before = memory.jobs.get(id)
            known = {attempt.decided_for for attempt in before.attempts} if before else set()
            new = [a for a in mem.attempts if a.decided_for.startswith("hang:") and a.decided_for not in known]
            for attempt in new:
                self._ends_what_was_looked_at(mem, attempt, seen)
            assert len([a for a in mem.attempts if _resumes_hang(a, mem.restarts)]) <= 1, f"P2: job {id}, twice"

    def _asks_who_told(self, action: CollectStacks, seen: Observed, decided: Plan) -> None:
        job, mode = seen.jobs[action.job], decided.memory.jobs[action.job].mode
        assert job.is_active, f"P5: {action.key} of a job that does not run"
        assert action.signal in ("", mode.stacks), f"P5: {action.key} sends what was not named"
        told = [
            p for node in job.nodes for p in seen.agents[node].progress if (p.job, p.restart) == (job.id, job.restarts)
        ]
        spoke = [p for p in told if p.step is not None]
        seen_still = [s for node in job.nodes for s in seen.agents[node].sights if s.job == job.id and s.is_notable]
        assert spoke or seen_still, f"P5: {action.key}, and nothing was ever told of the job"

    def _ends_what_was_looked_at(self, mem: JobMemory, attempt: Attempt, seen: Observed) -> None:
        hang = mem.hang
        assert attempt.decision is not Decision.RETRY, f"P5: job {mem.id}: there is no step to retry"
        assert hang is not None, f"P5: job {mem.id} is ended as hung and is not"
        assert (mem.id, attempt.restart) in self.looked_at, f"P5: job {mem.id} is ended without a look"
        kept = all(hang.name in seen.agents[node].bundles for node in seen.jobs[mem.id].nodes)
        waited = seen.at >= hang.since + self.want.resume.hang_stacks_s
        assert kept or waited, f"P5: job {mem.id} is ended before its stacks are kept"
        assert mem.unproven <= mem.mode.without_evidence, f"P10: job {mem.id} resumed too often without evidence"
        assert self.hangs(mem.id), f"P5: job {mem.id} is ended as hung and goes on"


def _resumes_hang(attempt: Attempt, restart: int) -> bool:
    return attempt.decided_for.startswith("hang:") and attempt.restart == restart and attempt.is_requeue
