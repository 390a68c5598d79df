"""The step of the plan that moves elastic runs."""

from dataclasses import replace

from steward.model.agent_action import ResizeRun
from steward.model.elastic import Activity, Cause, ElasticRun, ElasticWord, RunPhase, replica_of
from steward.model.events import Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.elastic.enter import enter_phase
from steward.policy.elastic.facts import QUESTIONS
from steward.policy.elastic.replicas import ask_for_more, end_orphans, end_useless, replica_jobs, with_shown_replicas
from steward.policy.elastic.scene import RunScene
from steward.policy.elastic.table import RUN_TABLE, RunFact, deadline
from steward.policy.facts.run_rules import rules_of
from steward.policy.state_machine import StateMachine
from steward.policy.traits import Trait

_AT_REST = (RunPhase.RUNNING, RunPhase.SETTLING, RunPhase.BACKOFF)
RETRY_S = 5.0
RIVAL_S = 2.0
"""How long a job must have waited to count as one for which idle nodes do not suffice."""
GIVEN_S = 5.0
"""How long Slurm may take to start a job on nodes that were given back, and the head to see it."""


def follow_runs(draft: Draft) -> None:
    """Move every elastic run: take in reports, order changes of size, end and request replica jobs."""
    telling = draft.ground.agents.having(Trait.ELASTIC)
    if not telling and not draft.elastic and not draft.ground.jobs.having(Trait.REPLICA):
        return
    words = _reports(sorted(telling), draft)
    _begin_runs(words, draft)
    jobs = replica_jobs(draft)
    taken = set[NodeName]()
    for id in sorted(draft.elastic):
        run = draft.elastic[id]
        if run.is_open:
            _follow(run, words.get(id), jobs.get(id, {}), taken, draft)
    end_orphans(jobs, draft)
    draft.elastic.prune(draft.now)


def _reports(telling: list[NodeName], draft: Draft) -> dict[JobId, ElasticWord]:
    """Return the report that counts for each run: from its current batch host, with its user and restart."""
    found: dict[JobId, ElasticWord] = {}
    for name in telling:
        for word in draft.seen.agents[name].elastic:
            base = draft.seen.jobs.get(word.run)
            if base is None or not base.is_active or base.batch_host != name or replica_of(base.comment) is not None:
                continue
            if (base.user_id, base.restarts) == (word.uid, word.restart):
                found[word.run] = word
    return found


def _begin_runs(words: dict[JobId, ElasticWord], draft: Draft) -> None:
    """Add new runs, and reset those whose base job has restarted."""
    for id, word in words.items():
        base, known = draft.seen.jobs[id], draft.elastic.get(id)
        size = len(base.nodes)
        if known is not None and known.is_open and known.restart == base.restarts:
            continue
        if word.state is Activity.ENDED or rules_of(word.spec, size, draft.want.elastic) is None:
            continue
        if known is not None and known.is_open:
            draft.elastic.keep(
                replace(
                    known, restart=base.restarts, generation=0, ordered=0, phase=RunPhase.WAITING, why_no_coordinator=""
                )
            )
            continue
        if known is not None and known.ended is not None and base.started is not None and known.ended > base.started:
            continue  # the elastic run ended within this run of its base job
        run = ElasticRun(
            id=id,
            uid=word.uid,
            spec=word.spec,
            base=size,
            restart=base.restarts,
            account=base.account,
            partition=base.partition,
            entered=draft.now,
            begun=draft.now,
            counted=draft.now,
        )
        draft.elastic.keep(run)
        draft.tell("elastic.begun", f"elastic run {id} of {size} nodes may grow ({word.spec})", job=id)


def _follow(
    run: ElasticRun, word: ElasticWord | None, jobs: dict[str, Job], taken: set[NodeName], draft: Draft
) -> None:
    rules = rules_of(run.spec, run.base, draft.want.elastic)
    if rules is None:
        return
    failed = {one.token: one.why for one in word.failed} if word is not None else {}
    run = _note_alone(with_shown_replicas(run, jobs, failed, rules, draft), word, draft)
    run = _note_steerable(run, word, draft)
    base = draft.seen.jobs.get(run.id)
    rivals = _rival_nodes(run, base, jobs, draft)
    scene = RunScene(run=run, rules=rules, base=base, jobs=jobs, word=word, rivals=rivals, draft=draft)
    scene = _RUNS.move(scene) or scene
    _order_change(scene)
    end_useless(scene)
    ask_for_more(scene, taken)
    draft.elastic.keep(scene.run)
    draft.wake(deadline(scene.run, rules, saves=scene.saves))
    draft.wake(scene.run.cool_until)


def _enter(scene: RunScene, fact: RunFact, phase: RunPhase) -> RunScene:
    return replace(scene, run=scene.draft.elastic.keep(enter_phase(scene, fact, phase)))


_RUNS = StateMachine(table=RUN_TABLE, step_of=lambda scene: scene.run.phase, questions=QUESTIONS, enter=_enter)


def _note_alone(run: ElasticRun, word: ElasticWord | None, draft: Draft) -> ElasticRun:
    """Warn once that a run without a coordinator cannot change its size."""
    if word is None or word.alone == run.why_no_coordinator:
        return run
    if word.alone and not run.why_no_coordinator:
        text = f"elastic run {run.id}: stays at its size, it has no coordinator: {word.alone}"
        draft.tell("elastic.alone", text, job=run.id, level=Level.WARNING)
    return replace(run, why_no_coordinator=word.alone)


def _note_steerable(run: ElasticRun, word: ElasticWord | None, draft: Draft) -> ElasticRun:
    """Warn once that a run does not grow, because its program cannot be asked to save."""
    if word is None or word.state is not Activity.RUNNING or word.steerable == run.steerable:
        return run
    if not word.steerable:
        text = f"elastic run {run.id}: does not grow, as its program never asks whether to save (resize_wanted)"
        draft.tell("elastic.mute", text, job=run.id, level=Level.WARNING, once=f"mute:{run.id}")
    return replace(run, steerable=word.steerable)


def _order_change(scene: RunScene) -> None:
    """Order the next generation until the coordinator reports it; or call off a change that is not wanted any more."""
    run, word, draft = scene.run, scene.word, scene.draft
    if word is not None and scene.is_saving and not scene.saves and run.phase in _AT_REST and not word.leaving:
        _call_off(scene, word)
    if run.phase is not RunPhase.DRAINING or word is None or word.generation >= run.ordered or not run.ordered_members:
        return
    grace_s = 0 if run.cause is Cause.FAULT else int(scene.rules.grace_s)
    action = ResizeRun(
        key=Key(f"elastic:resize:{run.id}:{run.restart}:{run.ordered}"),
        why=Why(rule=f"elastic.{run.cause.value}", text=run.why),
        run=run.id,
        node=word.node,
        generation=run.ordered,
        members=run.ordered_members,
        grace_s=grace_s,
        patient=run.is_patient,
    )
    draft.wish(action, RETRY_S)


def _call_off(scene: RunScene, word: ElasticWord) -> None:
    """Order the coordinator to keep its present members, before a rank has begun to save."""
    run = scene.run
    action = ResizeRun(
        key=Key(f"elastic:stay:{run.id}:{run.restart}:{run.ordered}"),
        why=Why(rule="elastic.stay", text="the change of size is called off"),
        run=run.id,
        node=word.node,
        generation=max(run.ordered, word.generation + 1),
        members=word.members,
        grace_s=int(scene.rules.grace_s),
        patient=True,
    )
    scene.draft.wish(action, RETRY_S)


def _rival_nodes(run: ElasticRun, base: Job | None, jobs: dict[str, Job], draft: Draft) -> int:
    """Return how many nodes of its replicas other jobs need beyond idle nodes and nodes that the run is giving back."""
    ending = {one.token for one in run.replicas if one.ending is not None}
    going = {token for token, job in jobs.items() if token in ending or job.is_completing}
    coming = frozenset(node for token in going for node in jobs[token].nodes)
    mine = sum(len(job.nodes) for token, job in jobs.items() if job.is_active and token not in going)
    if base is None or not mine:
        return 0
    given = _just_given(run, len(base.nodes) + mine, draft)
    needed, parts = 0, set(base.partition.split(","))
    for job in draft.overview.waiting:
        since = max(job.submitted or 0.0, job.eligible or 0.0)
        if replica_of(job.comment) is not None or not parts & set(job.partition.split(",")):
            continue
        if draft.now < since + RIVAL_S:
            draft.wake(since + RIVAL_S)
            continue
        # all nodes of a job are in one partition: idle nodes of its other partitions do not add up
        there = max(len(_idle_or_freed(part, coming, draft) - job.excluded) for part in job.partitions)
        lacks = max(job.node_count, 1) - max(there, given) - needed
        if 0 < lacks <= mine - needed:
            needed += lacks
    return needed


def _idle_or_freed(part: str, coming: frozenset[NodeName], draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of a partition that are idle, or will be in a moment."""
    return draft.overview.idle_of(part) | (coming & draft.overview.nodes_of(part))


def _just_given(run: ElasticRun, held: int, draft: Draft) -> int:
    """Return how many nodes the run has just given back to jobs that Slurm may still show as waiting."""
    last = run.events[-1] if run.events else None
    if last is None or last.cause is not Cause.RECLAIMED or held > last.after:
        return 0
    until = max(run.entered if last.done is None else last.done, run.freed) + GIVEN_S
    if draft.now >= until:
        return 0
    draft.wake(until)
    return max(last.before - last.after, 0)
