"""The nodes on which a resumed job can run: its own sound ones, others that are free, and who else waits for them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steward.model.action import DownNode, DrainNode
from steward.model.case import Step
from steward.model.fit import Fit, FitState
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.reservation import HOT_PREFIX, keep_name
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.job.exclude import culprits, needs, own_reservation, users_own
from steward.policy.job.fits import fit_of, is_kept
from steward.policy.node.budget import awaits_yes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaces:
    """The places that one job may take, all in one partition, in one picture. `own` are the sound nodes of its lost run
    that nobody else runs on, `free` those of them that it could take at once; `others` are idle nodes of others; `hot`
    are idle ones that we keep for resumed jobs."""

    need: int
    own: frozenset[NodeName]
    free: frozenset[NodeName]
    others: frozenset[NodeName]
    hot: frozenset[NodeName]
    lost: frozenset[NodeName]
    coming: frozenset[NodeName] = frozenset()
    """Those of the lost nodes that are repaired: kept, too, so that nobody takes them when they are back."""
    fit: Fit | None = None
    """What Slurm says of the job without hot spares; None: nothing, and idle nodes are counted."""

    @property
    def lacks(self) -> int:
        """How many nodes it must wait for, at least, its own that still clean up not counted."""
        counted = max(0, self.need - len(self.own) - len(self.others) - len(self.hot))
        if self.fit is None:
            return counted
        return 0 if self.can_start else max(1, counted)

    @property
    def wants_hot(self) -> int:
        """How many of the hot spares it takes if it starts now."""
        if self.fit is not None:
            return 0 if self.fit.starts else len(self.hot)
        return max(0, self.need - len(self.free) - len(self.others))

    @property
    def can_start(self) -> bool:
        if self.fit is not None:
            return self.fit.starts or bool(self.hot)
        return self.wants_hot <= len(self.hot)


def places_of(job: Job, mem: JobMemory, draft: Draft) -> JobPlaces:
    """Those in the partition in which it can start, or where no more is missing, or where it has most nodes of its
    own: all that it gets are in one. Slurm is asked wherever it can tell: its word counts, not our counting."""
    every = _places_in_each(job, mem, draft)
    best = max(every, key=lambda places: (places.can_start, not places.lacks, len(places.own)))
    if job.het_job_id is not None or job.is_completing or not (job.is_pending or best.need > len(best.own)):
        return best
    fit = fit_of(job, mem, draft)
    is_sure = job.is_pending and not job.is_completing and best.own == best.free
    if fit is None or not (is_sure or fit.state is FitState.NEVER):
        return best  # while its lost run has its nodes Slurm cannot tell when they are free
    return replace(best, fit=fit, hot=frozenset() if fit.starts else _that_help(best, job, mem, draft))


def _that_help(places: JobPlaces, job: Job, mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """The hot spares with which it would start now. Slurm's test sees the nodes of one reservation: where others are
    kept for the job, those count that are like a node of its lost run."""
    if is_kept(mem, draft):
        known = draft.seen.nodes
        shapes = {_shape(known[name]) for name in mem.nodes if name in known}
        alike = sorted(name for name in places.hot if _shape(known[name]) in shapes)
        count = max(1, places.need - len(places.free) - len(places.others))
        return frozenset(alike[:count] if count <= len(alike) else ())
    held = draft.overview.held_by
    names = {name for node in places.hot for name in held.get(node, ()) if name.startswith(HOT_PREFIX)}
    found = (fit_of(job, mem, draft, through=name) for name in sorted(names))
    return next((fit.nodes & places.hot for fit in found if fit is not None and fit.starts), frozenset())


def _shape(node: Node) -> tuple[str, int, int, frozenset[str]]:
    return node.gres, node.cpus, node.memory_mb, node.active_features


def _places_in_each(job: Job, mem: JobMemory, draft: Draft) -> Sequence[JobPlaces]:
    going = _going(draft)
    blamed = culprits(mem, draft)
    lost = {name for name in mem.nodes if name in going or not _is_sound(name, draft)} | (blamed & mem.nodes)
    reserved = _reserved(job, draft)
    own = frozenset(name for name in mem.nodes - lost - reserved if not _is_taken(name, job, draft))
    coming = frozenset(name for name in lost - reserved if name in draft.seen.nodes and _is_repaired(name, draft))
    never, inside = users_own(job, mem) | blamed | going, own_reservation(job, draft)

    def within(part: str) -> JobPlaces:
        idle = draft.overview.idle_of(part) - never
        fits = idle if inside is None else idle & inside
        here = own & draft.overview.nodes_of(part) if len(job.partitions) > 1 else own
        return JobPlaces(
            need=needs(job, mem),
            own=here,
            free=here & fits,
            others=fits.difference(here, reserved, mem.nodes, draft.cases.nodes_in_repair),
            hot=(draft.overview.hot & fits).difference(here, draft.cases.nodes_in_repair),
            lost=frozenset(lost),
            coming=coming,
        )

    return [within(part) for part in job.partitions]


def _going(draft: Draft) -> frozenset[NodeName]:
    """Nodes that this plan takes out of service."""
    known, nodes = draft.found.going
    if known != len(draft.actions):
        nodes = frozenset(each.node for each in draft.actions if isinstance(each, DownNode | DrainNode))
        draft.found.going = (len(draft.actions), nodes)
    return nodes


def _is_sound(name: NodeName, draft: Draft) -> bool:
    node = draft.seen.nodes.get(name)
    return node is not None and node.is_schedulable and draft.cases.in_work(name) is None


def _is_taken(name: NodeName, job: Job, draft: Draft) -> bool:
    """Another job runs on it."""
    return any(id != job.id for id in draft.overview.running_on.get(name, ()))


def _reserved(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Nodes that a reservation has before the job would be over, its own one, and its own one with us, not counted."""
    until = draft.now + job.time_limit_s if job.time_limit_s is not None else math.inf
    mine = {keep_name(job.id), *job.reservation.split(",")}
    held, coming = draft.overview.held_by, draft.overview.coming
    free = {node for name in mine for node in _nodes_of(name, draft) if held.get(node, frozenset()) <= mine}
    later = (each.nodes for each in coming if each.name not in mine and each.starts <= until)
    return frozenset(held.keys() - free).union(*later)


def _nodes_of(reservation: str, draft: Draft) -> frozenset[NodeName]:
    known = draft.seen.reservations.get(reservation)
    return known.nodes if known is not None else frozenset()


def has_hope(places: JobPlaces, draft: Draft) -> bool:
    """Whether something is done about a lost node without a person."""
    return any(_is_repaired(name, draft) for name in places.lost)


def _is_repaired(name: NodeName, draft: Draft) -> bool:
    case = draft.cases.open_of(name)
    return case is not None and case.step is not Step.HELD and not awaits_yes(case, draft)


def rivals(job: Job, nodes: frozenset[NodeName], draft: Draft) -> tuple[Job, ...]:
    """Jobs that wait for nodes and could run if these were theirs, by id."""
    others = (other for alike in _alike_rivals(nodes, draft) for other in alike if other.id != job.id)
    return tuple(sorted(others, key=lambda other: other.id))


def has_rivals(job: Job, nodes: frozenset[NodeName], draft: Draft) -> bool:
    return any(len(alike) > (alike[0].id == job.id) for alike in _alike_rivals(nodes, draft))


def _alike_rivals(nodes: frozenset[NodeName], draft: Draft) -> Iterator[Sequence[Job]]:
    sound = frozenset(n for n in nodes if n in draft.seen.nodes and draft.seen.nodes[n].is_schedulable)
    return (alike for alike in draft.overview.waiting_alike if _fits(alike[0], nodes, sound, draft))


def _fits(other: Job, nodes: frozenset[NodeName], sound: frozenset[NodeName], draft: Draft) -> bool:
    """Whether it could use one of these nodes, and in that one's partition idle ones and these are enough for it."""
    return any(_fits_in(part, other, nodes, sound, draft) for part in other.partitions)


def _fits_in(part: str, other: Job, nodes: frozenset[NodeName], sound: frozenset[NodeName], draft: Draft) -> bool:
    idle, theirs = draft.overview.idle_of(part), sound & draft.overview.nodes_of(part)
    if not ((idle & nodes) | theirs) - other.excluded:
        return False
    more = theirs - idle
    usable = len(idle) - len(idle & other.excluded) + len(more - other.excluded)
    return usable >= max(1, other.node_count)
