"""The words about quotas in a job's comment: few, and rarely changed, because each change is a call to Slurm.

They say only that the job never fits, why it waits, or that it was evicted. A job that starts at once gets no comment.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from steward.model.comment import own_part
from steward.model.ids import JobId
from steward.model.quota import QuotaJob, Resource
from steward.policy.draft import Draft
from steward.policy.quota.decide import UnitRuling, UnitStanding
from steward.policy.quota.turn import Turn
from steward.policy.quota.words import amounts_text

AT_ONCE = 10
"""The most new comments in one turn."""
PATIENCE_S = 10.0
"""A job that has waited for less gets no comment."""
_WORD = "quota: "
_RUNS = "quota lets it run"


def quota_words(turn: Turn, draft: Draft) -> dict[JobId, str]:
    """Return the new words for each job whose comment about quotas must change."""
    found: dict[JobId, str] = {}
    for id, word in _words(turn, draft):
        job = draft.seen.jobs.get(id)
        if job is not None and word not in job.admin_comment:
            found[id] = word
            if len(found) == AT_ONCE:
                break
    return found


def _words(turn: Turn, draft: Draft) -> Iterator[tuple[JobId, str]]:
    """Yield the words for each job about which there is something to say, or which has an old comment of ours."""
    alike: dict[tuple[str, UnitStanding, int, tuple[Resource, ...]], str] = {}
    for number, ruling in turn.rulings.items():
        unit = ruling.unit
        if draft.now >= unit.since + PATIENCE_S:
            key = unit.team, ruling.standing, id(unit.options), tuple(ruling.short)
            if key not in alike:
                alike[key] = _waits(ruling, turn)
            word = alike[key]
            if eviction_words := _words_of_eviction(draft.quota_jobs.get(number), draft):
                word = f"{word}; {eviction_words}" if word else eviction_words
            if word or _speaks_of_quota(number, draft):
                yield number, word or _RUNS
    for units in turn.running.values():
        for unit in units:
            if _speaks_of_quota(unit.id, draft):
                yield unit.id, _words_of_eviction(draft.quota_jobs.get(unit.id), draft) or _RUNS


def _waits(ruling: UnitRuling, turn: Turn) -> str:
    """Return why a job waits, without figures that change from turn to turn; empty if there is nothing to say."""
    unit = ruling.unit
    match ruling.standing:
        case UnitStanding.NEVER:
            return f"{_WORD}never fits{_most_allowed(ruling, turn)}"
        case UnitStanding.WAITS if ruling.hopeless:
            return f"{_WORD}team {unit.team} waits for nodes"
        case UnitStanding.WAITS:
            names = ", ".join(sorted(ruling.short))
            return f"{_WORD}team {unit.team} waits for {names}" if names else f"{_WORD}team {unit.team} waits"
        case UnitStanding.BACKS_OFF:
            return f"{_WORD}was evicted before, borrows again later"
        case UnitStanding.BEHIND:
            return f"{_WORD}behind an earlier job of team {unit.team}"
        case _:
            return ""


def _most_allowed(ruling: UnitRuling, turn: Turn) -> str:
    """Return, in words, the most of the requested resources that the team may have."""
    unit = ruling.unit
    for amounts in unit.options:
        beyond: Mapping[Resource, int] = turn.ledger.over_limit(unit.team, amounts)
        if beyond:
            return f", at most {amounts_text({name: amounts[name] - more for name, more in beyond.items()})}"
    return ": no such machine here"


def _words_of_eviction(memory: QuotaJob | None, draft: Draft) -> str:
    """Return the words for the job's last eviction; empty if there is none."""
    over = [each for each in memory.evictions if each.over is not None] if memory is not None else []
    if not over:
        return ""
    last = over[-1]
    clock, owners = datetime.fromtimestamp(last.at, UTC).strftime("%H:%MZ"), draft.shown_id(JobId(last.to_job))
    return f"{_WORD}was evicted for job {owners} of {last.to_team} {clock} ({last.cause.value})"


def _speaks_of_quota(id: JobId, draft: Draft) -> bool:
    """Return whether the job's comment has words of ours about quotas."""
    job = draft.seen.jobs.get(id)
    return job is not None and _WORD in job.admin_comment and _WORD in own_part(job.admin_comment)
