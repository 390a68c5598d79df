"""The rules for one run: its own options, else the site's settings."""

from dataclasses import dataclass
from functools import lru_cache

from steward.model.desired import ElasticPolicy
from steward.model.elastic import ElasticRun, ElasticSpec, SizeChange

_PAYS = 2.0
"""New nodes must do so many times the work lost in the pause."""
_PATIENT = 2.0
"""A change without urgency waits for so many of the slowest known save."""
_LASTS = 10.0
"""A growth that lasts for less than this many of its pauses was too short."""
_SLOWER = 1.5
"""A notice lasts for this many of the slowest known save."""
_LATELY = 5
"""How many of the last changes of size count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRules:
    """The rules for one run; times are seconds."""

    spec: ElasticSpec
    grace_s: float
    settle_s: float
    faulty_s: float
    snooze_s: float
    backoff_s: float
    backoff_most_s: float
    form_s: float


@lru_cache(maxsize=1024)
def rules_of(spec: str, base: int, site: ElasticPolicy) -> RunRules | None:
    """Return the rules of a run; None for an invalid spec, which the shim would have refused."""
    try:
        own = ElasticSpec.parse(spec, base)
    except ValueError:
        return None

    def own_or_sites(mine: int | None, sites: float) -> float:
        return sites if mine is None else float(mine)

    backoff_s = own_or_sites(own.backoff_s, site.backoff_s)
    return RunRules(
        spec=own,
        grace_s=own_or_sites(own.grace_s, site.grace_s),
        settle_s=own_or_sites(own.settle_s, site.settle_s),
        faulty_s=own_or_sites(own.faulty_s, site.faulty_s),
        snooze_s=own_or_sites(own.snooze_s, site.snooze_s),
        backoff_s=backoff_s,
        backoff_most_s=max(site.backoff_most_s, backoff_s),
        form_s=site.form_s,
    )


def pause_s(run: ElasticRun, site: ElasticPolicy) -> float:
    """Return the seconds that a change of size costs this run: the mean of its last changes."""
    took = [change.done - change.at for change in run.events if change.done is not None and change.before][-_LATELY:]
    return sum(took) / len(took) if took else site.pause_s


def slowest_save_s(run: ElasticRun) -> float:
    """Return the longest time from the order until all ranks had saved, of its last changes; 0 if none is known."""
    return max((change.saved_s or 0.0 for change in run.events[-_LATELY:]), default=0.0)


def patience_s(run: ElasticRun, rules: RunRules) -> float:
    """Return for how long (s) a change without urgency waits for the first rank to begin saving."""
    return max(rules.grace_s, _PATIENT * slowest_save_s(run))


def notice_s(run: ElasticRun, rules: RunRules) -> float:
    """Return how long (s) before its time limit a replica is warned: enough for saves that outlast the grace."""
    return max(rules.grace_s, _SLOWER * slowest_save_s(run))


def pays_from(run: ElasticRun, size: int, site: ElasticPolicy) -> float:
    """Return how long (s) new nodes must stay to do twice the work that the pause of a growth to `size` costs."""
    have = max(len(run.members), 1)
    return _PAYS * pause_s(run, site) * size / max(size - have, 1)


def next_backoff(run: ElasticRun, rules: RunRules, now: float, *, failed: bool = False) -> float:
    """Return the next back-off (s): doubled after a growth that failed or did not last ten times its pause, else 0."""
    grown = next((change for change in reversed(run.events) if change.after > change.before > 0), None)
    if not failed and (grown is None or not _was_short(grown, now)):
        return 0.0
    return min(max(run.backoff_s * 2.0, rules.backoff_s), rules.backoff_most_s)


def _was_short(grown: SizeChange, now: float) -> bool:
    return grown.done is None or now - grown.done < _LASTS * max(grown.done - grown.at, 1.0)
