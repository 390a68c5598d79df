"""The same of the sentences about evictions for quotas: for whom, why, what becomes of the job, and how it ended."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import RequeueJob
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.plan import Plan
from steward.model.quota import CPU, GPU, MEM, Reclaimed, Resource, resource
from steward.policy.draft import Draft
from steward.policy.quota import evict
from steward.policy.quota.places import Wish
from steward.policy.quota.turn import take_turn
from tests.builders.picture import Picture, n
from tests.builders.quota import G6, LISTS, WEAK
from tests.builders.quota_site import a_site, borrowed_and_wanted_back, done, reserved, runs, settled
from tests.builders.sentences import ROOT, lacking

POOL = resource(G6.name, GPU)
Story = Callable[[], str]


def of_plan(plan: Plan) -> str:
    """What is said of evictions in a turn: in events, as reasons of actions, and to the job's owner."""
    events = [event.text for event in plan.events if event.kind.startswith("quota")]
    reasons = [line for action in plan.actions for line in (action.why.text, *action.why.evidence)]
    texts = [each.text for memory in plan.memory.quota_jobs.values() for each in memory.evictions]
    return "\n".join([*events, *reasons, *texts])


def said(picture: Picture) -> str:
    return of_plan(picture.plan())


def chosen(cause: Reclaimed = Reclaimed.RECLAIM, place: Wish | None = None, **job: Any) -> str:
    """Job 3, which borrows, is chosen for job 4 of the owner; for another cause, or for want of such nodes."""
    picture = borrowed_and_wanted_back(WEAK).change_job(3, **job)
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    turn, accounting = take_turn(draft), picture.seen.accounting
    assert turn is not None
    assert accounting is not None
    (one,) = turn.yielding
    evict.begin_evictions([replace(one, cause=cause, place=place)], accounting, draft)
    return draft.quota_jobs[JobId(3)].evictions[-1].text


def wish(count: int = 1, each: int = 0, **fields: Any) -> Wish:
    amounts: dict[Resource, int] = {POOL: each, resource(G6.name, CPU): 8, resource(G6.name, MEM): 1024}
    return Wish(count=count, each=amounts, nodes=frozenset({n("n1"), n("n2")}), **fields)


def on(place: Wish) -> str:
    return chosen(place=place)


def evicted(can: Any = WEAK) -> Picture:
    """Job 3 has its signal, or Slurm is to preempt it."""
    return done(borrowed_and_wanted_back(can))[0]


def ended(state: JobState) -> str:
    picture = evicted().change_job(3, state=state, nodes=frozenset()).after(2.0)
    failures = {f"quota:signal:3:0:{borrowed_and_wanted_back(WEAK).now:.0f}": "stale: job 3 does not run"}
    return said(picture.see(failures=failures).change_job(3, ended=picture.now - 2.0))


def put_back(error: str) -> str:
    picture, actions = done(evicted().after(61))
    (requeue,) = (each for each in actions if isinstance(each, RequeueJob))
    return said(picture.after(6).see(failures={str(requeue.key): error}))


def by_slurm(chosen_job: int) -> str:
    """We expected job 3 to be evicted; Slurm gave this one its grace."""
    picture = evicted(LISTS).after(1.0)
    return said(picture.change_job(chosen_job, preempted=picture.now))


def called_off(**job: Any) -> str:
    """The victim has its signal, then this happens to the owner's job; its grace and as much again goes by."""
    picture = evicted().after(5.0)
    return said(picture.change_job(4, **job).after(120.0))


def no_room() -> str:
    """Its node takes no more jobs."""
    return said(reserved(evicted(), "n2").after(125.0))


def at_once(**fields: Any) -> str:
    """Job 2, which borrowed, waits again, and job 3 of the owner has begun in its place before we looked."""
    picture = settled(runs(runs(a_site(LISTS), 1, "a", 4), 2, "a", 4, "b", "n2"))
    now = picture.now
    back = {"qos": "stw-a-g,stw-a-b", "submitted": now, "eligible": now + 121, **fields}
    return said(runs(picture.requeued(2, **back), 3, "b", 4, "g", "n2", started=now + 1).after(3))


CAUSES: list[tuple[str, Story, Story]] = [
    (
        "is evicted for job 4 of team b, whose quota covers it and lacks 2 GPUs of ml.g6.12xlarge, of which a had "
        "borrowed (share of a ",
        lambda: chosen(),
        lambda: chosen(Reclaimed.PRIORITY),
    ),
    (
        ", its own, which is of a higher priority class and lacks 2 GPUs",
        lambda: chosen(Reclaimed.IN_TEAM),
        lambda: chosen(Reclaimed.PRIORITY),
    ),
    (
        ", which is of a higher priority class and lacks 2 GPUs of ml.g6.12xlarge, of which a had borrowed",
        lambda: chosen(Reclaimed.PRIORITY),
        lambda: chosen(Reclaimed.IN_TEAM),
    ),
    (
        ", which lacks 2 GPUs of ml.g6.12xlarge and will have borrowed less than a",
        lambda: chosen(Reclaimed.REBALANCE),
        lambda: chosen(Reclaimed.PRIORITY),
    ),
    (" (share of a ", lambda: chosen(), lambda: chosen(Reclaimed.IN_TEAM)),
]
LACKS: list[tuple[str, Story, Story]] = [
    ("lacks a node of its own,", lambda: on(wish(whole=True)), lambda: on(wish(2, whole=True))),
    ("lacks 2 nodes of its own,", lambda: on(wish(2, whole=True)), lambda: on(wish(whole=True))),
    (
        "lacks 2 GPUs of ml.g6.12xlarge on nodes that it may use,",
        lambda: on(wish(total={POOL: 2})),
        lambda: on(wish(each=2)),
    ),
    (
        "lacks a node (n1) with 2 GPUs of ml.g6.12xlarge free,",
        lambda: on(wish(each=2, required=frozenset({n("n1")}))),
        lambda: on(wish(each=2)),
    ),
    (
        "lacks 2 nodes with 2 GPUs of ml.g6.12xlarge free on each,",
        lambda: on(wish(2, each=2)),
        lambda: on(wish(each=2)),
    ),
    (
        "lacks nodes of their own for its parts: a node of its own and 2 nodes of its own,",
        lambda: on(wish(parts=(wish(whole=True), wish(2, whole=True)))),
        lambda: on(wish(whole=True)),
    ),
]
FATES: list[tuple[str, Story, Story]] = [
    ("; it is put back into the queue", lambda: chosen(), lambda: chosen(requeue=False)),
    (
        "; it is cancelled, for it may not be requeued",
        lambda: chosen(requeue=False),
        lambda: chosen(requeue=False, is_batch=False),
    ),
    (
        "; it is cancelled, for Slurm requeues batch jobs only",
        lambda: chosen(is_batch=False),
        lambda: chosen(requeue=False),
    ),
    ("; it is cancelled, for ", lambda: chosen(requeue=False), lambda: chosen()),
    ("job 3 is to be evicted for job 4 of team b", lambda: said(borrowed_and_wanted_back(WEAK)), lambda: by_slurm(2)),
    ("job 4 of team b waits for what it has", lambda: said(borrowed_and_wanted_back(WEAK)), lambda: by_slurm(3)),
]
ENDS: list[tuple[str, Story, Story]] = [
    (", and is not run again", lambda: ended(JobState.COMPLETED), lambda: said(evicted())),
    *(
        (f"; {words}, and is not run again", lambda state=state: ended(state), lambda other=other: ended(other))
        for (state, words), other in zip(
            {
                JobState.COMPLETED: "it ended well by itself",
                JobState.CANCELLED: "it was cancelled meanwhile",
                JobState.TIMEOUT: "its time limit ended it",
                JobState.DEADLINE: "its deadline ended it",
                JobState.OUT_OF_MEMORY: "it ran out of memory",
            }.items(),
            [JobState.CANCELLED, *[JobState.COMPLETED] * 4],
            strict=True,
        )
    ),
    (
        "job 3 keeps what it has: Slurm does not put it back into the queue",
        lambda: put_back("refused: Requested operation is presently disabled"),
        lambda: put_back("retry: no answer"),
    ),
    (
        "is evicted for job 4 of team b, whose quota covers it, with what a had borrowed; Slurm chose it, and it is "
        "put back into the queue",
        lambda: by_slurm(2),
        lambda: by_slurm(3),
    ),
    (
        "job 3: Slurm made no room for job 4 in ",
        lambda: said(evicted(LISTS).after(80)),
        lambda: said(evicted(LISTS).after(20)),
    ),
    (
        "job 3 is not to be evicted any more: job 4 ",
        lambda: called_off(state=JobState.CANCELLED),
        lambda: called_off(),
    ),
    (
        "job 3 is not to be evicted any more: job 4 does not wait any more",
        lambda: called_off(state=JobState.CANCELLED),
        lambda: no_room(),
    ),
    (
        "job 3 is not to be evicted any more: job 4 could not start on what it would leave",
        lambda: no_room(),
        lambda: called_off(state=JobState.CANCELLED),
    ),
    (
        "job 2 was evicted for job 3 of team b, whose quota covers it, with what a had borrowed; Slurm made the room "
        "at once, and it is put back into the queue",
        lambda: at_once(),
        lambda: at_once(reason="JobHeldUser"),
    ),
]
ROWS = [*CAUSES, *LACKS, *FATES, *ENDS]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Story, false: Story) -> None:
    assert sentence in true()
    assert sentence not in false()


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    paths = [ROOT / f"policy/quota/{name}.py" for name in ("evict", "unseen")]
    assert lacking(paths, "", ((true(), false()) for _, true, false in ROWS)) == []
