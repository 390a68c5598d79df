"""Sites whose owners lent all that is theirs, and who goes when they want it back."""

from steward.model.accounting import Capabilities
from steward.model.action import RequeueJob, SignalJob
from tests.builders.picture import Picture
from tests.builders.quota_site import a_site, done, runs, settled


def all_lent(can: Capabilities) -> Picture:
    """Of two machines team a owns one and has borrowed the other, job by job; team b runs nothing."""
    site = runs(runs(a_site(can), 1, "a", 4), 2, "a", 2, "b", "n2", started=1000.0)
    return settled(runs(site, 3, "a", 2, "b", "n2", started=2000.0))


def gone_in(picture: Picture, turns: int) -> set[int]:
    """The jobs that were signalled or requeued in so many turns of two seconds."""
    gone: set[int] = set()
    for _ in range(turns):
        picture, actions = done(picture.after(1.0))
        gone |= {each.job for each in actions if isinstance(each, SignalJob | RequeueJob)}
    return gone
