"""What must hold of every ruling, whatever the failure."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.ids import NodeName
from steward.model.job import SLURMS_HOLDS, JobState
from steward.model.job_report import Lean, LogSign
from steward.model.resume import Decision
from steward.policy.job.decide import decide, has_cause
from steward.policy.job.evidence import Evidence
from steward.policy.job.failure import Failure, FailureSource
from steward.policy.job.options import Options
from tests.builders.failures import an_exit

few = st.integers(min_value=0, max_value=6)
statuses = st.one_of(
    st.integers(min_value=0, max_value=255).map(lambda code: code << 8), st.sampled_from((0, 9, 11, 15, 125, 93 << 8))
)
nodes = st.sampled_from(tuple(NodeName(f"n{i}") for i in range(1, 5)))
chosen = st.builds(
    Options,
    max_resumes=few,
    without_evidence=few,
    stalls=st.integers(min_value=1, max_value=4),
    youngest_s=st.floats(min_value=0, max_value=300),
    backoff_s=st.just((0.0, 60.0)),
    final_codes=st.frozensets(st.integers(min_value=1, max_value=255), max_size=3).map(lambda codes: codes | {93}),
    timeout=st.booleans(),
    preempted=st.booleans(),
    user_errors_stop=st.booleans(),
)
signs = st.builds(
    LogSign, sign=st.just("s"), lean=st.sampled_from(Lean), strong=st.booleans(), line=st.text(max_size=5), order=few
)
failures = st.builds(
    Failure,
    kind=st.sampled_from(FailureSource),
    options=chosen,
    state=st.sampled_from(JobState),
    reason=st.sampled_from(("", "None", "NodeDown", "TimeLimit", *sorted(SLURMS_HOLDS))),
    status=statuses,
    exits=st.lists(statuses.map(an_exit), max_size=3).map(tuple),
    evidence=st.lists(st.builds(Evidence, node=nodes, text=st.sampled_from("abc"), at=st.floats(0, 9)), max_size=3).map(
        tuple
    ),
    signs=st.lists(signs, max_size=3).map(tuple),
    age_s=st.one_of(st.none(), st.floats(min_value=0, max_value=1000)),
    resumes=few,
    unproven=few,
    stalls=few,
    is_batch=st.booleans(),
    may_retry=st.booleans(),
    short=st.booleans(),
)


@settings(max_examples=300)
@given(failures)
def test_every_failure_has_one_answer_with_a_reason(failure: Failure) -> None:
    ruling = decide(failure)
    assert ruling == decide(failure)
    assert ruling.why.rule
    assert ruling.why.text
    assert ruling.why.evidence


@settings(max_examples=300)
@given(failures)
def test_no_job_is_resumed_beyond_its_budgets(failure: Failure) -> None:
    ruling = decide(failure)
    if ruling.decision is Decision.STOP:
        return
    assert failure.resumes < failure.options.max_resumes
    assert failure.stalls < failure.options.stalls
    assert has_cause(failure) or failure.unproven < failure.options.without_evidence
    assert ruling.unproven is not has_cause(failure)


@settings(max_examples=300)
@given(failures)
def test_a_final_code_stops_always(failure: Failure) -> None:
    assert decide(replace(failure, status=93 << 8)).decision is Decision.STOP


@settings(max_examples=300)
@given(failures)
def test_what_people_and_limits_ended_stays_ended(failure: Failure) -> None:
    for state in (JobState.CANCELLED, JobState.COMPLETED, JobState.OUT_OF_MEMORY, JobState.DEADLINE):
        assert decide(replace(failure, state=state)).decision is Decision.STOP


@settings(max_examples=300)
@given(failures, st.lists(signs, max_size=3).map(tuple))
def test_signs_blame_no_node_and_never_bring_a_job_back(failure: Failure, others: tuple[LogSign, ...]) -> None:
    ruling, silent = decide(replace(failure, signs=others)), decide(replace(failure, signs=()))
    assert ruling.culprits <= failure.culprits
    assert ruling.decision in (silent.decision, Decision.STOP)


@settings(max_examples=300)
@given(failures)
def test_the_order_in_which_things_are_told_does_not_matter(failure: Failure) -> None:
    shuffled = replace(
        failure,
        evidence=tuple(reversed(failure.evidence)),
        signs=tuple(reversed(failure.signs)),
        exits=tuple(reversed(failure.exits)),
    )
    assert decide(shuffled) == decide(failure)


@settings(max_examples=300)
@given(failures)
def test_only_a_failed_step_is_retried_in_place_and_only_a_batch_job_requeued(failure: Failure) -> None:
    ruling = decide(failure)
    if ruling.decision is Decision.RETRY:
        assert failure.kind is FailureSource.STEP
        assert failure.may_retry
    if ruling.decision in (Decision.REQUEUE, Decision.WAIT):
        assert failure.is_batch
