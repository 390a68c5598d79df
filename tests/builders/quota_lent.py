"""Sites whose owners lent all that is theirs, and who goes when they want it back."""

from dataclasses import replace
from typing import Any

from steward.model.accounting import Capabilities
from steward.model.action import RequeueJob, SignalJob
from steward.model.ids import JobId
from tests.builders.picture import Picture, n
from tests.builders.quota import WEAK
from tests.builders.quota_site import a_site, done, own, runs, settled, waits


def all_lent(can: Capabilities) -> Picture:
    """Of two machines team a owns one and has borrowed the other, job by job; team b runs nothing."""
    site = runs(runs(a_site(can), 1, "a", 4), 2, "a", 2, "b", "n2", started=1000.0)
    return settled(runs(site, 3, "a", 2, "b", "n2", started=2000.0))


NEW: dict[str, Any] = {"priority": 5, "reason": "Priority", "time_limit_s": 600.0}


def beside_a_new_job(**second: Any) -> Picture:
    """Of n2 one GPU is free and team a borrowed the others. Job 8 wants the node, and job 9 came after it."""
    site = runs(a_site(replace(WEAK, backfill_s=30.0), own("a", 4), own("b", 8)), 1, "a", 4)
    site = settled(runs(site, 2, "a", 3, "b", "n2"))
    whole = {"required": frozenset({n("n2")}), "priority": 5, "reason": "Resources", "eligible": site.now}
    site = waits(site, 8, "b", 4, **whole)
    return waits(site, 9, "b", 1, **{**NEW, "eligible": site.now, **second})


def gone_in(picture: Picture, turns: int) -> set[int]:
    """The jobs that were signalled or requeued in so many turns of two seconds."""
    gone: set[int] = set()
    for _ in range(turns):
        picture, actions = done(picture.after(1.0))
        gone |= {each.job for each in actions if isinstance(each, SignalJob | RequeueJob)}
    return gone


FIRST, SECOND, BEHIND = 10, 11, 20


def of_two_parts(picture: Picture, team: str, first: int = 1, second: int = 1, **fields: Any) -> Picture:
    """It waits and comes before all others."""
    given = {"het_job_id": JobId(FIRST), "priority": 9, "reason": "Resources", **fields}
    return waits(waits(picture, FIRST, team, first, **given), SECOND, team, second, **given)


def one_node_lent(machines: int = 3) -> Picture:
    """Only what team a borrowed on n2 (and on n4, where there is one) can be taken back."""
    site = a_site(WEAK, own("a", 4), own("b", 4), own("c", 4), machines=machines)
    site = runs(runs(site, 1, "a", 4), 4, "c", 4, on="n3")
    for id in (2, 3):
        site = runs(site, id, "a", 2, "b", "n2", started=1000.0 * id)
        if machines > 3:
            site = runs(site, id + 4, "a", 2, "b", "n4", started=1000.0 * id - 500.0)
    return settled(site)


def one_node_free(can: Capabilities = WEAK) -> Picture:
    """Team a has n1 by its quota and team c borrowed n2; n3 is free, and is team b's, too."""
    site = a_site(can, own("a", 4), own("b", 8), own("c", 0), machines=3)
    return settled(runs(runs(site, 1, "a", 4), 2, "c", 4, "b", "n2"))
