"""The replica jobs of a run: known by their comment, ended when they are of no use, asked for when nodes are idle."""

from collections.abc import Iterator
from dataclasses import replace

from steward.model.accounting import borrowed_qos
from steward.model.action import CancelReplica, SubmitReplica
from steward.model.elastic import ElasticRun, Phase, Replica, replica_of
from steward.model.events import Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.elastic.book import with_replica
from steward.policy.elastic.rules import RunRules, next_backoff, notice_s, pays_from
from steward.policy.elastic.scene import Scene
from steward.policy.job.leaving import bystander
from steward.policy.quota.turn import in_force
from steward.policy.traits import Trait

RETRY_S = 5.0
UNSEEN_S = 60.0
"""A replica job that was asked for is in Slurm's queue by then, or its submission failed."""
ORPHAN_S = 60.0
"""A replica job whose base Slurm does not know is ended after so long."""
_EARLY_S = 60.0
"""Slurm may tell a job so much sooner than asked that its time limit is near."""
NOT_JOINED = "it did not join in time"


def replica_jobs(draft: Draft) -> dict[JobId, dict[str, Job]]:
    """Run -> token -> its replica job, those that are not over. One of another user is none."""
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


def bind(run: ElasticRun, jobs: dict[str, Job], failed: dict[str, str], rules: RunRules, draft: Draft) -> ElasticRun:
    """With the jobs that Slurm shows; those that are over, or never came, are forgotten."""
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
    if no_use and base is not None and base.is_active and not base.is_completing:  # else they ended with it
        run = _with_pause(run, rules, draft, no_use)
    known = {one.token for one in kept}
    kept += [
        Replica(token=token, nodes=max(job.node_count, len(job.nodes)), asked=draft.now, job=job.id)
        for token, job in sorted(jobs.items())
        if token not in known
    ]
    return replace(run, replicas=tuple(kept), freed=freed)


def _with_pause(run: ElasticRun, rules: RunRules, draft: Draft, what: str) -> ElasticRun:
    """A replica job was of no use: the next one might be the same, over and over."""
    backoff_s = max(next_backoff(run, rules, draft.now, failed=True), 1.0)
    text = f"elastic run {run.id}: a replica job {what}; no growth for {backoff_s:.0f} s"
    draft.tell("elastic.no_use", text, job=run.id, level=Level.WARNING)
    return replace(run, backoff_s=backoff_s, cool_until=max(run.cool_until, draft.now + backoff_s))


def end_useless(scene: Scene) -> None:
    """Give nodes back as soon as the run does without them."""
    for one in scene.run.replicas:
        job = scene.jobs.get(one.token)
        if job is None or job.is_completing:
            continue
        if why := "its base job ends" if scene.is_ending else _useless(one, job, scene):
            cancel(job, scene.run.id, why, scene.draft)
            if why == NOT_JOINED:
                scene.run = _with_pause(scene.run, scene.rules, scene.draft, why.removeprefix("it "))
            if one.ending is None:
                scene.run = with_replica(scene.run, replace(one, ending=scene.draft.now))


def _useless(one: Replica, job: Job, scene: Scene) -> str:
    """Why it is ended; empty: it stays."""
    run, draft = scene.run, scene.draft
    if run.phase in (Phase.WAITING, Phase.ENDED):
        return _before_first_round(job, scene)
    if job.is_pending:
        return _unwanted(one, scene)
    if job.nodes & scene.taken_before(one.token):
        return "another part of the run is on its node"
    if run.phase is Phase.DRAINING or job.nodes & scene.members:
        return ""
    if one.ending is not None:
        return "the run goes on without it"
    if one.token not in scene.staying:
        return "the replica gives way, and the run goes on without it"
    if any(scene.is_lost(node) for node in job.nodes):
        return "its node is lost"
    if len(scene.here) - len(job.nodes) >= scene.most:
        return "the run needs no more nodes than it has"
    until = (job.started or draft.now) + scene.rules.form_s
    if draft.now >= until and not job.nodes & scene.ready:
        return NOT_JOINED
    draft.wake(until)
    return ""


def _before_first_round(job: Job, scene: Scene) -> str:
    """A run that began anew keeps what is there already, for as long as a start may take."""
    if not scene.base_nodes:
        return "its base job does not run"
    until = (job.started or scene.draft.now) + scene.rules.form_s
    scene.draft.wake(until)
    return "the run has not formed in time" if scene.draft.now >= until else ""


def _unwanted(one: Replica, scene: Scene) -> str:
    if scene.run.paused or scene.rivals:
        return "others wait for nodes" if scene.rivals else "a person paused the run"
    if len(scene.here) + one.nodes > scene.most:
        return "the run needs no more nodes than it has"
    if scene.draft.now < one.asked + UNSEEN_S:
        scene.draft.wake(one.asked + UNSEEN_S)
        return ""
    return "" if len(free_nodes(scene)) >= one.nodes else "no idle nodes are left for it"


def cancel(job: Job, run: JobId, text: str, draft: Draft) -> None:
    why = Why(rule="elastic.cancel", text=text)
    draft.wish(CancelReplica(key=Key(f"elastic:cancel:{job.id}"), why=why, run=run, job=job.id), RETRY_S)


def end_orphans(jobs: dict[JobId, dict[str, Job]], draft: Draft) -> None:
    """Replica jobs whose base is gone, or whose run's training is done although its base's script goes on."""
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
                cancel(job, id, "the training of its run is done" if is_done else "its base job is gone", draft)
            else:
                draft.wake(since + ORPHAN_S)


def _orphaned_since(job: Job, draft: Draft) -> float:
    known = bystander(job, draft)
    if known.orphaned is not None:
        return known.orphaned
    draft.bystanders[job.id] = replace(known, orphaned=draft.now)
    return draft.now


def free_nodes(scene: Scene) -> frozenset[NodeName]:
    """Idle, sound, not reserved, and not what the base keeps away from."""
    base, over = scene.base, scene.draft.overview
    if base is None:
        return frozenset()
    idle = over.idle_of(base.partition) - over.held_by.keys() - scene.avoided
    return frozenset(node for node in idle if scene.is_sound(node))


def ask_for_more(scene: Scene, taken: set[NodeName]) -> None:
    """Ask for a replica job for each step in size that idle nodes are there for, where the pause pays."""
    free = free_nodes(scene) - taken
    steps = list(_steps(scene, len(free)))
    picks = list[frozenset[NodeName]]()
    for _, nodes in steps:
        picks.append(frozenset(sorted(free - taken)[:nodes]))
        taken |= picks[-1]
    for (size, nodes), mine in zip(steps, picks, strict=True):
        _submit(scene, nodes, size, others=frozenset().union(*picks) - mine)


def _steps(scene: Scene, free: int) -> Iterator[tuple[int, int]]:
    """(size, nodes more) of each step that fits."""
    if scene.base is None or scene.word is None or scene.word.alone or not may_ask(scene):
        return
    asked = sum(one.nodes for one in scene.run.replicas if one.ending is None)
    have = len(scene.base_nodes) + asked
    free -= wanted_by_others(scene) + sum(one.nodes for one in scene.run.replicas if _is_waited_for(one, scene))
    fits = [size for size in scene.rules.spec.sizes if have < size <= min(scene.most, have + max(free, 0))]
    if not fits or works_s(scene) < pays_from(scene.run, fits[-1], scene.draft.want.elastic):
        return
    for size in fits:
        yield size, size - have
        have = size


def _is_waited_for(one: Replica, scene: Scene) -> bool:
    job = scene.jobs.get(one.token)
    return one.ending is None and (job is None or job.is_pending)


def may_ask(scene: Scene) -> bool:
    """Nothing is in flight, nobody paused it, and it makes steps."""
    run, draft = scene.run, scene.draft
    if run.phase not in (Phase.RUNNING, Phase.SETTLING) or run.paused or draft.paused or not draft.want.elastic.enabled:
        return False
    return scene.is_running and run.steerable and draft.now >= run.cool_until and not scene.rivals


def wanted_by_others(scene: Scene) -> int:
    """Idle nodes that jobs which wait are about to get."""
    base = scene.base
    parts = set(base.partition.split(",")) if base is not None else set()
    waiting = (job for job in scene.draft.overview.waiting if parts & set(job.partition.split(",")))
    return sum(max(job.node_count, 1) for job in waiting if replica_of(job.comment) is None)


def works_s(scene: Scene) -> float:
    """How long new nodes take part: until Slurm tells their job, `grace_s` before its time limit, that it ends."""
    return limit_minutes(scene) * 60.0 - _notice_s(scene)


def _notice_s(scene: Scene) -> float:
    return notice_s(scene.run, scene.rules) + _EARLY_S


def limit_minutes(scene: Scene) -> int:
    """The time limit of new nodes' job: what the site lets them work and the notice before their end, but not beyond
    the base's own end, nor into a reservation to come."""
    draft, base = scene.draft, scene.base
    until = [draft.now + draft.want.elastic.replica_limit_s + _notice_s(scene)]
    if base is not None and base.time_limit_s is not None and base.started is not None:
        until.append(base.started + base.time_limit_s)
    mine = free_nodes(scene)
    until += [each.starts for each in draft.overview.coming if each.nodes & mine]
    return int(max(min(until) - draft.now, 0.0) // 60)


def _submit(scene: Scene, nodes: int, size: int, others: frozenset[NodeName]) -> None:
    """Never on a node of the run itself, nor on one that is meant for another replica (`others`): where nodes are
    shared, Slurm would put it there."""
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
        qos=borrowed_qos(base.account) if base.account in in_force(draft) else "",
        exclude=scene.avoided | scene.nodes | others,
    )
    draft.wish(action)
    draft.tell("elastic.asks", f"elastic run {run.id}: {text}", job=run.id)
    replica = Replica(token=token, nodes=nodes, asked=draft.now)
    scene.run = with_replica(replace(run, next_token=run.next_token + 1), replica)
