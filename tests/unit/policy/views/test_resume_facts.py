"""What a resumed job is told of its past."""

from dataclasses import replace

from steward.model.ids import JobId, NodeName
from steward.model.memory import Memory
from steward.model.resume import Attempt, Decision, JobMemory, Saved
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumePolicy
from steward.model.why import Why
from steward.policy.job.options import resume_facts

N3, N4 = NodeName("n3"), NodeName("n4")


def attempt(decision: Decision, at: float, text: str) -> Attempt:
    why = Why(rule="resume.requeue", text=text)
    return Attempt(decided_for=f"a{at:g}", decision=decision, why=why, at=at, culprits=frozenset({N3}))


def remembered(*attempts: Attempt) -> Memory:
    mem = JobMemory(
        id=JobId(7),
        uid=1000,
        mode=ResumeMode.parse("1"),
        opted_at=0.0,
        resumes=len(attempts),
        excluded=frozenset({N4, N3}),
        attempts=attempts,
        saved=Saved(path="/ckpt/10", step=10, at=5.0),
    )
    return Memory(jobs={mem.id: mem})


def test_it_is_told_why_it_was_resumed_last_and_from_where_it_can_go_on() -> None:
    first, last = attempt(Decision.RETRY, 1.0, "first"), attempt(Decision.REQUEUE, 2.0, "n3 died")
    facts = resume_facts(JobId(7), remembered(first, last), ResumePolicy())
    assert facts is not None
    assert (facts.resumes, facts.reason, facts.culprits, facts.excluded) == (2, "n3 died", (N3,), (N3, N4))
    assert (facts.checkpoint, facts.checkpoint_step) == ("/ckpt/10", 10)


def test_what_was_seen_is_the_reason_where_something_was() -> None:
    seen = replace(
        attempt(Decision.REQUEUE, 1.0, "requeue"), why=Why(rule="r", text="requeue", evidence=("n3: Xid 79",))
    )
    facts = resume_facts(JobId(7), remembered(seen), ResumePolicy())
    assert facts is not None
    assert facts.reason == "n3: Xid 79"


def test_a_step_that_runs_again_does_so_without_the_culprits() -> None:
    memory = remembered(attempt(Decision.RETRY, 1.0, "retry"))
    alone = Memory(jobs={JobId(7): replace(memory.jobs[JobId(7)], excluded=frozenset({N4}), excised=frozenset())})
    facts = resume_facts(JobId(7), alone, ResumePolicy())
    assert facts is not None
    assert facts.excluded == (N3, N4)


def test_a_decision_to_stop_is_not_why_it_runs() -> None:
    facts = resume_facts(JobId(7), remembered(attempt(Decision.STOP, 2.0, "no evidence")), ResumePolicy())
    assert facts is not None
    assert (facts.reason, facts.culprits) == ("", ())


def test_of_a_job_that_nobody_knows_there_is_nothing_to_tell() -> None:
    assert resume_facts(JobId(8), remembered(), ResumePolicy()) is None


def resumed(memory: Memory) -> str:
    facts = resume_facts(JobId(7), memory, ResumePolicy())
    assert facts is not None
    return facts.resumed


def test_the_line_for_the_jobs_output_says_which_resume_it_is_why_and_from_where() -> None:
    memory = remembered(attempt(Decision.REQUEUE, 1.0, "requeue"))
    assert resumed(memory) == "1 of 5, after n3 failed; last checkpoint: step 10"
    mem = memory.jobs[JobId(7)]
    bare = replace(mem, saved=None, attempts=(replace(mem.attempts[0], culprits=frozenset()),))
    assert resumed(Memory(jobs={mem.id: bare})) == "1 of 5: requeue; no checkpoint is known"
    unnumbered = replace(mem, saved=Saved(path="/ckpt/x"))
    assert resumed(Memory(jobs={mem.id: unnumbered})).endswith("last checkpoint: /ckpt/x")


def test_a_run_that_a_person_requeued_later_and_a_retry_in_place_have_no_such_line() -> None:
    memory = remembered(attempt(Decision.REQUEUE, 1.0, "requeue"))
    later = Memory(jobs={JobId(7): replace(memory.jobs[JobId(7)], restarts=2)})
    assert resumed(later) == ""
    assert resumed(remembered(attempt(Decision.RETRY, 1.0, "retry"))) == ""
