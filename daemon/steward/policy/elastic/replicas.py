"""The replica jobs of a run: found by their comment, ended when useless, requested when nodes are idle."""

from collections.abc import Iterator, Set
from dataclasses import replace

from steward.model.accounting import borrowed_qos
from steward.model.action import CancelReplica
from steward.model.agent_action import SubmitReplica
from steward.model.elastic import ElasticRun, Replica, RunPhase, replica_of
from steward.model.events import Level
from steward.model.fit import MISSING, Question
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.why import Why
from steward.policy.books import with_replica
from steward.policy.draft import Draft
from steward.policy.elastic.scene import RunScene
from steward.policy.facts.run_rules import RunRules, next_backoff, notice_s, pays_from
from steward.policy.facts.turn_share import has_share
from steward.policy.guards.run_end import bystander_record
from steward.policy.traits import Trait

RETRY_S = 5.0
UNSEEN_S = 60.0
"""How long a requested replica job may take to appear in Slurm's queue; later, its submission has failed."""
ORPHAN_S = 60.0
"""How long a replica job may stay without a base job in Slurm."""
_EARLY_S = 60.0
"""How much too early Slurm's signal before a time limit may come."""
FIT_S = 10.0
"""How long an answer of Slurm's test counts; each question uses up a job number."""
_OF_BOTH = ("features", "gres", "memory")
"""What a replica asks for like its base job."""
NOT_JOINED = "it did not join in time"


def replica_jobs(draft: Draft) -> dict[JobId, dict[str, Job]]:
    """Return run -> token -> the replica job that Slurm shows, without jobs of other users than the run's."""
    found: dict[JobId, dict[str, Job]] = {}
    for id in sorted(draft.ground.jobs.having(Trait.REPLICA)):
        job = draft.seen.jobs[id]
        known = replica_of(job.comment)
        if known is None:
            continue
        run, base = draft.elastic.get(known[0]), draft.seen.jobs.get(known[0])
        uid = base.user_id if base is not None else run.uid if run is not None else job.user_id
        if job.user_id == uid:
            found.setdefault(known[0], {})[known[1]] = job
    return found


def with_shown_replicas(
    run: ElasticRun, jobs: dict[str, Job], failed: dict[str, str], rules: RunRules, draft: Draft
) -> ElasticRun:
    """Return the run with the replicas that Slurm shows, without those that ended or never appeared."""
    kept = list[Replica]()
    no_use, freed = "", run.freed
    for one in run.replicas:
        job = jobs.get(one.token)
        if job is not None:
            kept.append(replace(one, job=job.id, joined=one.joined or bool(job.nodes & run.members)))
        elif one.token in failed:
            text = f"elastic run {run.id}: a replica job could not be submitted: {failed[one.token]}"
            draft.tell("elastic.refused", text, job=run.id, level=Level.WARNING, once=f"{run.id}:{one.token}")
            no_use = "could not be submitted"
        elif one.job is None and draft.now < one.asked + UNSEEN_S:
            draft.wake(one.asked + UNSEEN_S)
            kept.append(one)
        else:
            no_use = no_use or ("" if one.joined or one.ending else "ended before it took part")
            freed = draft.now
    base = draft.seen.jobs.get(run.id)
    if no_use and base is not None and base.is_active and not base.is_completing:  # else it ended with its base job
        run = _with_backoff(run, rules, draft, no_use)
    known = {one.token for one in kept}
    kept += [
        Replica(token=token, nodes=max(job.node_count, len(job.nodes)), asked=draft.now, job=job.id)
        for token, job in sorted(jobs.items())
        if token not in known
    ]
    return replace(run, replicas=tuple(kept), freed=freed)


def _with_backoff(run: ElasticRun, rules: RunRules, draft: Draft, what: str) -> ElasticRun:
    """Return the run with a back-off after a useless replica job."""
    # the next replica might fail in the same way
    backoff_s = max(next_backoff(run, rules, draft.now, failed=True), 1.0)
    text = f"elastic run {run.id}: a replica job {what}; no growth for {backoff_s:.0f} s"
    draft.tell("elastic.no_use", text, job=run.id, level=Level.WARNING)
    return replace(run, backoff_s=backoff_s, cool_until=max(run.cool_until, draft.now + backoff_s))


def end_useless(scene: RunScene) -> None:
    """End the replica jobs that the run does not need."""
    for one in scene.run.replicas:
        job = scene.jobs.get(one.token)
        if job is None or job.is_completing:
            continue
        if why := "its base job ends" if scene.is_ending else _why_useless(one, job, scene):
            if not cancel_replica(job, scene.run.id, why, scene.draft):
                return
            if why == NOT_JOINED:
                scene.run = _with_backoff(scene.run, scene.rules, scene.draft, why.removeprefix("it "))
            if one.ending is None:
                scene.run = with_replica(scene.run, replace(one, ending=scene.draft.now))


def _why_useless(one: Replica, job: Job, scene: RunScene) -> str:
    """Return why the replica job is to be ended; empty if it stays."""
    run, draft = scene.run, scene.draft
    if run.phase in (RunPhase.WAITING, RunPhase.ENDED):
        return _why_not_formed(job, scene)
    if job.is_pending:
        return _why_unwanted(one, scene)
    if job.nodes & scene.taken_before(one.token):
        return "another part of the run is on its node"
    if run.phase is RunPhase.DRAINING or job.nodes & scene.members:
        return ""
    if one.ending is not None:
        return "the run goes on without it"
    if one.token not in scene.staying:
        return "the replica ends, and the run goes on without it"
    if any(scene.is_lost(node) for node in job.nodes):
        return "its node is lost"
    if len(scene.here) - len(job.nodes) >= scene.most:
        return "the run needs no more nodes than it has"
    until = (job.started or draft.now) + scene.rules.form_s
    if draft.now >= until and not job.nodes & scene.ready:
        return NOT_JOINED
    draft.wake(until)
    return ""


def _why_not_formed(job: Job, scene: RunScene) -> str:
    """Return why the replica of a run that has not formed is to be ended; empty while the run may still form."""
    if not scene.base_nodes:
        return "its base job does not run"
    until = (job.started or scene.draft.now) + scene.rules.form_s
    scene.draft.wake(until)
    return "the run has not formed in time" if scene.draft.now >= until else ""


def _why_unwanted(one: Replica, scene: RunScene) -> str:
    if scene.run.paused or scene.rivals:
        return "others wait for nodes" if scene.rivals else "a person paused the run"
    if len(scene.here) + one.nodes > scene.most:
        return "the run needs no more nodes than it has"
    if scene.draft.now < one.asked + UNSEEN_S:
        scene.draft.wake(one.asked + UNSEEN_S)
        return ""
    return "" if len(free_nodes(scene)) >= one.nodes else "no idle nodes are left for it"


def cancel_replica(job: Job, run: JobId, text: str, draft: Draft) -> bool:
    """Cancel a replica job of the run, with `text` as the reason. Return whether this turn had room for it."""
    if not has_share(CancelReplica, job.user_id, draft):  # any job with such a comment counts as a replica
        return False
    why = Why(rule="elastic.cancel", text=text)
    draft.wish(CancelReplica(key=Key(f"elastic:cancel:{job.id}"), why=why, run=run, job=job.id), RETRY_S)
    return True


def end_orphans(jobs: dict[JobId, dict[str, Job]], draft: Draft) -> None:
    """Cancel replica jobs without a base job, or of a run whose training is done while its base job goes on."""
    for id, found in jobs.items():
        base, run = draft.seen.jobs.get(id), draft.elastic.get(id)
        if run is not None and run.is_open:
            continue
        is_done = run is not None and base is not None and not base.is_over and run.restart == base.restarts
        if base is not None and not base.is_over and not is_done:
            continue
        for job in found.values():
            if job.is_completing:
                continue
            since = _orphaned_since(job, draft)
            if base is not None or draft.now >= since + ORPHAN_S:
                if not cancel_replica(
                    job, id, "the training of its run is done" if is_done else "its base job is gone", draft
                ):
                    break
            else:
                draft.wake(since + ORPHAN_S)


def _orphaned_since(job: Job, draft: Draft) -> float:
    known = bystander_record(job, draft)
    if known.orphaned is not None:
        return known.orphaned
    draft.bystanders[job.id] = replace(known, orphaned=draft.now)
    return draft.now


def free_nodes(scene: RunScene) -> frozenset[NodeName]:
    """Return the nodes for new replicas: idle, sound, not reserved and not avoided by the base job."""
    base, over = scene.base, scene.draft.overview
    if base is None:
        return frozenset()
    idle = over.idle_of(base.partition) - over.held_by.keys() - scene.avoided
    return frozenset(node for node in idle if scene.is_sound(node))


def ask_for_more(scene: RunScene, taken: set[NodeName]) -> None:
    """Request a replica job for each next size for which there are idle nodes, if growing pays."""
    free = free_nodes(scene) - taken
    picks = list[tuple[int, frozenset[NodeName]]]()
    for size, nodes in _next_sizes(scene, len(free)):
        mine = _choose_nodes(scene, nodes, size, free - taken, taken)
        if not mine:
            break
        picks.append((size, mine))
        taken |= mine
    for size, mine in picks:
        _submit(scene, len(mine), size, others=frozenset().union(*(each for _, each in picks)) - mine)


def _choose_nodes(
    scene: RunScene, nodes: int, size: int, free: Set[NodeName], taken: Set[NodeName]
) -> frozenset[NodeName]:
    """Return `nodes` free nodes for a replica, as Slurm would choose; empty if they lack what the base job asks for."""
    # Slurm is asked about a copy of the base job. A replica has its own time limit and QOS, and names no nodes, so a
    # refusal counts only for what both ask for.
    draft, base = scene.draft, scene.base
    first = frozenset(sorted(free)[:nodes])
    if base is None:
        return first
    without = (scene.avoided | scene.nodes | taken) - base.excluded
    fit = draft.ask(Question(job=base.id, nodes=nodes, without=without), since=draft.now - FIT_S)
    if fit is None or fit.missing not in _OF_BOTH:
        is_place = fit is not None and fit.starts and len(fit.nodes) == nodes and fit.nodes <= free
        return fit.nodes if fit is not None and is_place else first
    text = f"elastic run {scene.run.id}: it does not grow to {size}: {MISSING[fit.missing]}"
    draft.tell("elastic.unfit", text, job=scene.run.id, once=f"{scene.run.id}:{size}:{fit.missing}")
    draft.wake(draft.now + FIT_S)
    return frozenset()


def _next_sizes(scene: RunScene, free: int) -> Iterator[tuple[int, int]]:
    """Yield each next size for which there are free nodes, with the number of nodes to add to the size before."""
    if scene.base is None or scene.word is None or scene.word.alone or not may_ask(scene):
        return
    asked = sum(one.nodes for one in scene.run.replicas if one.ending is None)
    have = len(scene.base_nodes) + asked
    free -= wanted_by_others(scene) + sum(one.nodes for one in scene.run.replicas if _is_queued(one, scene))
    fits = [size for size in scene.rules.spec.sizes if have < size <= min(scene.most, have + max(free, 0))]
    if not fits or works_s(scene) < pays_from(scene.run, fits[-1], scene.draft.want.elastic):
        return
    for size in fits:
        yield size, size - have
        have = size


def _is_queued(one: Replica, scene: RunScene) -> bool:
    job = scene.jobs.get(one.token)
    return one.ending is None and (job is None or job.is_pending)


def may_ask(scene: RunScene) -> bool:
    """Return whether the run may request replicas: it makes steps, and is not paused, changing or backing off."""
    run, draft = scene.run, scene.draft
    if (
        run.phase not in (RunPhase.RUNNING, RunPhase.SETTLING)
        or run.paused
        or draft.paused
        or not draft.want.elastic.enabled
    ):
        return False
    return scene.is_running and run.steerable and draft.now >= run.cool_until and not scene.rivals


def wanted_by_others(scene: RunScene) -> int:
    """Return how many idle nodes waiting jobs are about to get."""
    base = scene.base
    parts = set(base.partition.split(",")) if base is not None else set()
    waiting = (job for job in scene.draft.overview.waiting if parts & set(job.partition.split(",")))
    return sum(max(job.node_count, 1) for job in waiting if replica_of(job.comment) is None)


def works_s(scene: RunScene) -> float:
    """Return how long (s) new nodes take part: until Slurm's signal before their job's time limit."""
    return limit_minutes(scene) * 60.0 - _notice_s(scene)


def _notice_s(scene: RunScene) -> float:
    return notice_s(scene.run, scene.rules) + _EARLY_S


def limit_minutes(scene: RunScene) -> int:
    """Return the time limit (min) of a replica job: the site's limit plus the notice before its end.

    The limit does not go beyond the end of the base job, nor into a future reservation.
    """
    draft, base = scene.draft, scene.base
    until = [draft.now + draft.want.elastic.replica_limit_s + _notice_s(scene)]
    if base is not None and base.time_limit_s is not None and base.started is not None:
        until.append(base.started + base.time_limit_s)
    mine = free_nodes(scene)
    until += [each.starts for each in draft.overview.coming if each.nodes & mine]
    return int(max(min(until) - draft.now, 0.0) // 60)


def _submit(scene: RunScene, nodes: int, size: int, others: frozenset[NodeName]) -> None:
    """Request a replica job of `nodes` nodes, by which the run grows to `size`."""
    # the nodes of the run and of other new replicas are excluded: if nodes are shared, Slurm might choose them
    run, draft, base, word = scene.run, scene.draft, scene.base, scene.word
    if base is None or word is None:
        return
    token = f"r{run.next_token}"
    text = f"{nodes} idle node{'s' * (nodes > 1)} let it grow to {size}"
    action = SubmitReplica(
        key=Key(f"elastic:submit:{run.id}:{run.restart}:{token}"),
        why=Why(rule="elastic.grow", text=text),
        run=run.id,
        node=word.node,
        token=token,
        nodes=nodes,
        grace_s=int(notice_s(run, scene.rules)),
        minutes=max(limit_minutes(scene), 1),
        qos=borrowed_qos(base.account) if base.account in draft.quotas_in_force else "",
        exclude=scene.avoided | scene.nodes | others,
    )
    draft.wish(action)
    draft.tell("elastic.asks", f"elastic run {run.id}: {text}", job=run.id)
    replica = Replica(token=token, nodes=nodes, asked=draft.now)
    scene.run = with_replica(replace(run, next_token=run.next_token + 1), replica)
