"""Where a resumed job can run: which of its nodes are sound, which others are free, and who else waits for them."""

from dataclasses import dataclass

from steward.model.action import DownNode, DrainNode
from steward.model.case import Step
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.reservation import Reservation, keep_name
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.exclude import culprits, own_reservation, users_own


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Of one job in one picture. `own` are the sound nodes of its lost run that nobody else runs on, `free` those of
    them that it could take at once; `others` are idle nodes of others; `hot` are idle ones that we keep for resumed
    jobs."""

    need: int
    own: frozenset[NodeName]
    free: frozenset[NodeName]
    others: frozenset[NodeName]
    hot: frozenset[NodeName]
    lost: frozenset[NodeName]
    coming: frozenset[NodeName] = frozenset()
    """Those of the lost nodes that are repaired: kept, too, so that nobody takes them when they are back."""

    @property
    def lacks(self) -> int:
        """How many nodes it must wait for, its own that still clean up not counted."""
        return max(0, self.need - len(self.own) - len(self.others) - len(self.hot))

    @property
    def wants_hot(self) -> int:
        """How many of the hot spares it takes if it starts now."""
        return max(0, self.need - len(self.free) - len(self.others))

    @property
    def can_start(self) -> bool:
        return self.wants_hot <= len(self.hot)


def places_of(job: Job, mem: JobMemory, draft: Draft) -> Places:
    going = {a.node for a in draft.actions if isinstance(a, DownNode | DrainNode)}
    blamed = culprits(mem, draft)
    lost = {name for name in mem.nodes if name in going or not _is_sound(name, draft)} | (blamed & mem.nodes)
    reserved = _reserved(job, draft)
    own = frozenset(name for name in mem.nodes - lost - reserved if not _is_taken(name, job, draft))
    fits = draft.overview.idle_of(job.partition).difference(users_own(job, mem), blamed, going)
    if (inside := own_reservation(job, draft)) is not None:
        fits &= inside
    hot = frozenset(node for each in draft.seen.reservations.values() if each.hot_group for node in each.nodes & fits)
    return Places(
        need=max(1, job.node_count, len(mem.nodes)),
        own=own,
        free=own & fits,
        others=fits.difference(own, reserved, mem.nodes, draft.nodes_in_repair),
        hot=hot.difference(own, draft.nodes_in_repair),
        lost=frozenset(lost),
        coming=frozenset(name for name in lost - reserved if name in draft.seen.nodes and _is_repaired(name, draft)),
    )


def _is_sound(name: NodeName, draft: Draft) -> bool:
    node = draft.seen.nodes.get(name)
    return node is not None and node.is_schedulable and draft.case_in_work(name) is None


def _is_taken(name: NodeName, job: Job, draft: Draft) -> bool:
    """Another job runs on it."""
    return any(id != job.id for id in draft.overview.running_on.get(name, ()))


def _reserved(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Nodes that a reservation has before the job would be over, its own one, and its own one with us, not counted."""
    until = draft.now + job.time_limit_s if job.time_limit_s is not None else None
    mine = {keep_name(job.id), *job.reservation.split(",")}
    return frozenset(
        node
        for each in draft.seen.reservations.values()
        if each.name not in mine and _is_in_the_way(each, until, draft.now)
        for node in each.nodes
    )


def _is_in_the_way(reservation: Reservation, until: float | None, now: float) -> bool:
    return now < reservation.ends and (until is None or reservation.starts <= until)


def has_hope(places: Places, draft: Draft) -> bool:
    """Whether something is done about a lost node without a person."""
    return any(_is_repaired(name, draft) for name in places.lost)


def _is_repaired(name: NodeName, draft: Draft) -> bool:
    case = draft.open_case(name)
    return case is not None and case.step is not Step.HELD


def rivals(job: Job, nodes: frozenset[NodeName], draft: Draft) -> tuple[Job, ...]:
    """Jobs that wait for nodes and could run if these were theirs."""
    sound = frozenset(n for n in nodes if n in draft.seen.nodes and draft.seen.nodes[n].is_schedulable)
    fit: dict[tuple[str, int, frozenset[NodeName]], bool] = {}
    """By all that is asked of a job here: many that wait are alike."""
    found = []
    for other in draft.overview.waiting:
        alike = (other.partition, other.node_count, other.excluded)
        if alike not in fit:
            fit[alike] = _fits(other, nodes, sound, draft)
        if fit[alike] and other.id != job.id:
            found.append(other)
    return tuple(found)


def _fits(other: Job, nodes: frozenset[NodeName], sound: frozenset[NodeName], draft: Draft) -> bool:
    theirs = draft.overview.nodes_of(other.partition)
    usable = (draft.overview.idle_of(other.partition) | (sound & theirs)) - other.excluded
    return bool(usable & nodes) and len(usable) >= max(1, other.node_count)
