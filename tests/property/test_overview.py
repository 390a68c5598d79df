"""What is worked out once a plan is what each step would find by itself in the picture."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.deep import DeepCause, DeepRun, DeepState
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.blame import EVIDENCE_AFTER_S, EVIDENCE_BEFORE_S, LEAST_USERS, nodes_failing_other_users
from steward.policy.facts.crowd import STARTS_BY_ITSELF_S, Crowd, is_in_other_run
from steward.policy.job.exclude import is_short_without
from steward.policy.job.places import rivals
from steward.policy.traits import FAILURES as FAILED
from steward.policy.traits import is_idle
from tests.builders.deep import a_run
from tests.builders.picture import ON, T0, Picture, a_cluster, names

NODES = ("n1", "n2", "n3", "n4", "n5")
PARTITIONS = ("main", "main", "main,dev", "gone", "")
some_nodes = st.frozensets(st.sampled_from(NODES), max_size=3).map(lambda found: names(*found))


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Jobs are much alike, so that several are about the same nodes."""
    site = a_cluster(len(NODES))
    for name in NODES:
        base = draw(st.sampled_from((NodeBase.IDLE, NodeBase.IDLE, NodeBase.ALLOCATED)))
        flags = draw(st.sampled_from((frozenset[str](), frozenset({"DRAIN"}))))
        parts = draw(st.sampled_from((frozenset({"main"}), frozenset({"dev"}), frozenset({"main", "dev"}))))
        site = site.node(name, base=base, flags=flags, partitions=parts)
    for id, fields in enumerate(draw(st.lists(waiting_jobs() | failed_jobs(), min_size=1, max_size=10)), 1):
        site = site.job(id, on=(), **fields)
    runs = {f"d{i}": replace(draw(deep_runs()), id=f"d{i}") for i in range(draw(st.integers(0, 3)))}
    return replace(site, memory=replace(site.memory, deeps=runs))


def waiting_jobs() -> st.SearchStrategy[dict[str, object]]:
    shape = {
        "state": st.just(JobState.PENDING),
        "reason": st.sampled_from(("", "Resources", "BeginTime")),
        "partition": st.sampled_from(PARTITIONS),
        "node_count": st.integers(0, 3),
        "excluded": some_nodes,
        "eligible": st.sampled_from((None, T0 - 60, T0 - 1, T0 + 1)),
    }
    return st.fixed_dictionaries(shape)


def failed_jobs() -> st.SearchStrategy[dict[str, object]]:
    shape = {
        "state": st.sampled_from((JobState.FAILED, JobState.NODE_FAIL, JobState.COMPLETED)),
        "nodes": st.sampled_from((names("n1"), names("n2"), names("n1", "n2"))),
        "user_id": st.integers(1, 3),
        "ended": st.sampled_from((None, T0 - 5, T0 - 5, T0 - 4000)),
    }
    return st.fixed_dictionaries(shape)


def deep_runs() -> st.SearchStrategy[DeepRun]:
    cause, state = st.sampled_from(DeepCause), st.sampled_from((DeepState.WAITING, DeepState.RESERVED))
    return st.builds(lambda nodes, c, s: a_run(*nodes, cause=c, state=s), some_nodes, cause, state)


def draft_of(picture: Picture) -> Draft:
    return Draft(picture.seen, picture.want, picture.memory, picture.now)


def shares(job: Job, node: Node) -> bool:
    return bool(set(job.partition.split(",")) & node.partitions)


def within(part: str, picture: Picture) -> set[NodeName]:
    return {name for name, node in picture.seen.nodes.items() if part in node.partitions}


def waiting(picture: Picture) -> list[Job]:
    ready = (job for job in picture.seen.jobs.values() if job.is_pending and (job.eligible or 0.0) <= picture.now)
    return [job for job in ready if job.reason in ("", "Resources")]


@settings(max_examples=200)
@given(pictures(), some_nodes)
def test_a_rival_is_a_waiting_job_for_which_these_nodes_and_idle_ones_are_enough(
    picture: Picture, nodes: frozenset[NodeName]
) -> None:
    def could_run(other: Job) -> bool:
        every = picture.seen.nodes.values()
        there = [each for each in every if is_idle(each) or (each.name in nodes and each.is_schedulable)]
        usable = {each.name for each in there if each.name not in other.excluded}
        found = [usable & within(part, picture) for part in other.partition.split(",")]
        return any(here & nodes and len(here) >= max(1, other.node_count) for here in found)

    for job in picture.seen.jobs.values():
        found = rivals(job, nodes, draft_of(picture))
        assert list(found) == [each for each in waiting(picture) if each.id != job.id and could_run(each)]


@settings(max_examples=200)
@given(pictures(), some_nodes, some_nodes)
def test_a_job_is_short_when_too_few_sound_nodes_that_are_free_or_its_own_are_left(
    picture: Picture, bad: frozenset[NodeName], had: frozenset[NodeName]
) -> None:
    for job in picture.seen.jobs.values():
        mem = JobMemory(id=job.id, uid=job.user_id, mode=ON, opted_at=T0, nodes=had)
        every = picture.seen.nodes.values()
        usable = [n for n in every if n.is_schedulable and (not n.is_busy or n.name in job.nodes | had)]
        left = {node.name for node in usable} - bad - job.excluded
        parts = job.partition.split(",")
        most = max(len(left & within(part, picture) if part else left) for part in parts)
        asks_for_nodes = job.is_pending and job.node_count and not job.is_total
        short = most < (job.node_count if asks_for_nodes else max(1, job.node_count, len(had)))
        assert is_short_without(bad, job, mem, draft_of(picture)) is short


@settings(max_examples=200)
@given(pictures(), st.integers(1, 3))
def test_bad_company_is_of_several_others_whose_jobs_failed_there_lately(picture: Picture, uid: int) -> None:
    draft = draft_of(picture)
    by_node: dict[NodeName, list[JobId]] = {}
    for id in sorted(picture.seen.jobs):
        job = picture.seen.jobs[id]
        counts = len(job.nodes) == 1 and job.user_id != uid and job.state in FAILED and job.ended is not None
        if counts and T0 - EVIDENCE_BEFORE_S <= (job.ended or 0.0) <= T0 + EVIDENCE_AFTER_S:
            by_node.setdefault(next(iter(job.nodes)), []).append(id)
    users = {node: {picture.seen.jobs[id].user_id for id in ids} for node, ids in by_node.items()}
    bad = {node: ids for node, ids in by_node.items() if len(users[node]) >= LEAST_USERS}

    for other in (uid + 1, uid):
        nodes_failing_other_users(other, T0, draft)
        found = nodes_failing_other_users(uid, T0, draft)
        assert {node: [job.id for job in of_it] for node, of_it in found.items()} == (
            bad if len(bad) * 2 <= len(NODES) else {}
        )


def taken(runs: Sequence[DeepRun]) -> set[NodeName]:
    return {node for run in runs if run.has_nodes for node in run.nodes - run.results.keys()}


@settings(max_examples=200)
@given(pictures(), deep_runs())
def test_the_crowd_is_that_of_the_deep_checks_as_they_are_now(picture: Picture, run: DeepRun) -> None:
    draft = draft_of(picture)
    for _ in range(2):
        runs = list(draft.deeps.values())
        in_service = [each for each in runs if not each.is_for_return]
        idle = {name for name, node in picture.seen.nodes.items() if is_idle(node)}

        assert Crowd(draft).idle == idle - taken(runs)
        assert Crowd(draft).held == taken(in_service)
        for name in picture.seen.nodes:
            other = any(name in taken([each]) for each in runs if each.id != run.id)
            assert is_in_other_run(name, run, draft) is other
        draft.deeps.keep(run)
        draft.deeps.keep(replace(draft.deeps[min(draft.deeps)], state=DeepState.DONE))


@settings(max_examples=200)
@given(pictures())
def test_a_node_is_needed_by_a_job_that_waits_longer_or_finds_too_few_others(picture: Picture) -> None:
    draft = draft_of(picture)
    crowd = Crowd(draft)

    def needs(job: Job, node: Node) -> bool:
        known = [picture.seen.nodes[name] for name in crowd.idle - {node.name}]
        usable = {each.name for each in known if each.name not in job.excluded}
        most = max(len(usable & within(part, picture)) for part in job.partition.split(","))
        old = picture.now >= (job.eligible or job.submitted or 0.0) + STARTS_BY_ITSELF_S
        could = shares(job, node) and node.name not in job.excluded
        return could and (old or most < max(1, job.node_count))

    for node in picture.seen.nodes.values():
        assert crowd.needed(node) == next((job for job in waiting(picture) if needs(job, node)), None)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("", "s1", "s2")), st.booleans()), max_size=12))
def test_checks_of_a_waiter_are_those_that_are_remembered_for_it_now(
    changes: list[tuple[str, str, bool]],
) -> None:
    draft = draft_of(a_cluster(2))
    for id, waiter, stays in changes:
        if stays:
            draft.deeps.keep(a_run("n1", id=id, waiter=waiter))
        elif id in draft.deeps:
            draft.deeps.forget(id)
        for each in ("", "s1", "s2"):
            assert list(draft.deeps.of(each)) == [run for run in draft.deeps.values() if run.waiter == each]
