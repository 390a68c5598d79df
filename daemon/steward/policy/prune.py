"""Keep the memory bounded: forget what is no longer needed."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

from steward.model.case import Case, Mishap, Remedy
from steward.model.ids import JobId, Key
from steward.model.resume import Bystander
from steward.policy.draft import Draft
from steward.policy.facts.lost_case import CASES_KEPT_S
from steward.policy.groups.orphans import prune_strays
from steward.policy.kept import Kept

CASES_KEPT = 1000
DAY_S = 86400.0
WEEK_S = 7 * 86400.0
WISHES_KEPT = 20_000
JOBS_KEPT = 20_000
"""If more jobs are remembered, ended jobs that Slurm does not show any more are forgotten, first those of the user with
the most: one user's short jobs must not make every turn longer."""
TOKENS_KEPT_S = 8 * 3600.0
"""A client token is valid for 8 hours."""

_ONCE_FOR_JOB = re.compile(r"(?:limit|extend|quota:signal):(\d+):|signal:.*:(\d+)")
"""Keys of wishes that a job gets once (a signal, a longer limit): after a forgotten wish it would get another one."""

DEEDS_KEPT_S = 28 * 86400.0
HARDWARE_KEPT = 5000
"""Pieces of hardware whose past is remembered."""

K = TypeVar("K")
Deed = TypeVar("Deed", Remedy, Mishap)


def prune(draft: Draft) -> None:
    """Forget old entries of every table.

    Closed cases go after 7 days or beyond 1000, finished operations after 7 days, client tokens after 8 hours, ended
    jobs after a day (or beyond 20,000). Incidents that are over, wishes and notes go after a day; a wish that a job
    gets once stays as long as the job is there.
    """
    _prune_cases(draft)
    now = draft.now
    operations, jobs, incidents = draft.operations.items(), draft.jobs.items(), draft.incidents.items()
    draft.operations.drop([k for k, op in operations if op.finished is not None and now >= op.finished + WEEK_S])
    draft.client_tokens.drop([k for k, t in draft.client_tokens.items() if now >= t.at + TOKENS_KEPT_S])
    draft.jobs.drop([id for id, mem in jobs if mem.ended is not None and now >= mem.ended + DAY_S])
    _prune_ended_jobs(draft)
    draft.incidents.drop([k for k, i in incidents if i.over is not None and now >= i.over + DAY_S])
    draft.bystanders.drop([id for id, one in draft.bystanders.items() if _is_old_bystander(id, one, draft)])
    _prune_asks(draft)
    _keep_newest(draft.ended, now, lambda owner: False)
    prune_strays(now - DAY_S, draft)
    _prune_resets(draft)
    _prune_deeds(draft.remedies, now)
    _prune_deeds(draft.mishaps, now)
    _keep_newest(draft.asked, now, lambda key: _is_of_present_job(key, draft))
    _keep_newest(draft.noted, now, lambda note: False)
    draft.nodes.prune(now - DAY_S, draft.seen.nodes, draft.ground)
    _prune_history(now - max(WEEK_S, draft.want.repair.node_repairs_window_s), draft)


def _prune_ended_jobs(draft: Draft) -> None:
    """Forget ended jobs beyond `JOBS_KEPT`; each user keeps the newest, up to a number that is the same for all."""
    many = len(draft.jobs) - JOBS_KEPT
    if many <= 0:
        return
    of_user: defaultdict[int, list[tuple[float, JobId]]] = defaultdict(list)
    for id, mem in draft.jobs.items():
        if mem.ended is not None and id not in draft.seen.jobs:
            of_user[mem.uid].append((mem.ended, id))
    room = max(0, sum(map(len, of_user.values())) - many)
    share = bisect_right(range(room + 1), room, key=lambda each: sum(min(len(its), each) for its in of_user.values()))
    for its in of_user.values():
        draft.jobs.drop([id for _, id in sorted(its, reverse=True)[max(0, share - 1) :]])


def _is_old_bystander(id: JobId, one: Bystander, draft: Draft) -> bool:
    return id not in draft.seen.jobs and draft.now >= one.since + DAY_S


def _prune_asks(draft: Draft) -> None:
    draft.asks.drop([id for id, ask in draft.asks.items() if draft.now >= ask.at + DAY_S])
    if len(draft.asks) > WISHES_KEPT:
        draft.asks.drop(sorted(draft.asks, key=lambda id: draft.asks[id].at)[:-WISHES_KEPT])


def _prune_resets(draft: Draft) -> None:
    """Forget resets that no longer matter."""
    # a reset matters while a repair from before it goes on, or a failure from before it is remembered
    open_since = min((case.opened for case in draft.cases.values() if case.is_open), default=draft.now)
    old = {scope for scope, at in draft.breaker_resets.items() if draft.now >= at + DAY_S and at < open_since}
    if old:
        kept = {scope: at for scope, at in draft.breaker_resets.items() if scope not in old}
        draft.breaker_resets = MappingProxyType(kept)


def _prune_history(since: float, draft: Draft) -> None:
    for node, times in list(draft.history.items()):
        if not times or times[0] <= since:
            draft.history[node] = tuple(at for at in times if at > since)
    draft.history.drop([node for node, times in draft.history.items() if not times])


def _prune_deeds(kept: Kept[str, tuple[Deed, ...]], now: float) -> None:
    """Keep four weeks of each piece of hardware; beyond the limit, forget the pieces whose newest deed is oldest."""
    if all(now < many[0].at + DEEDS_KEPT_S for many in kept.values()) and len(kept) <= HARDWARE_KEPT:
        return
    recent = {piece: tuple(one for one in many if now < one.at + DEEDS_KEPT_S) for piece, many in kept.items()}
    newest = sorted((piece for piece in recent if recent[piece]), key=lambda piece: (recent[piece][-1].at, piece))
    kept.clear()
    kept.update({piece: recent[piece] for piece in newest[-HARDWARE_KEPT:]})


def _prune_cases(draft: Draft) -> None:
    closed = sorted((c for c in draft.cases.values() if not c.is_open), key=_closed_at, reverse=True)
    old = [c for c in closed if draft.now >= _closed_at(c) + CASES_KEPT_S] + closed[CASES_KEPT:]
    for case in old:
        draft.cases.forget(case)


def _closed_at(case: Case) -> float:
    return case.closed if case.closed is not None else case.entered


def _is_of_present_job(key: Key, draft: Draft) -> bool:
    """Return whether the wish is for a job once, and the job may still be there."""
    found = _ONCE_FOR_JOB.match(key)
    if found is None:
        return False
    job = draft.seen.jobs.get(JobId(int(found[1] or found[2])))
    return not job.is_over if job is not None else not draft.slurm_is_fresh


def _keep_newest(times: Kept[K, float], now: float, is_needed: Callable[[K], bool]) -> None:
    """Forget times older than a day, except of needed keys; beyond the limit keep needed keys, then the newest."""
    if now >= min(times.values(), default=now) + DAY_S:
        times.drop([key for key, at in times.items() if now >= at + DAY_S and not is_needed(key)])
    if len(times) > WISHES_KEPT:
        times.drop(sorted(times, key=lambda key: (is_needed(key), times[key]))[:-WISHES_KEPT])
