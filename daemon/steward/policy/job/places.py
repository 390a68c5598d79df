"""The nodes on which a resumed job can run: its own sound nodes, other free nodes, and the jobs that want them, too."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steward.model.case import CaseStep
from steward.model.fit import Fit, FitState
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.reservation import HOT_PREFIX, keep_name
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.blame import culprits, users_own
from steward.policy.guards.approval import needs_approval
from steward.policy.job.exclude import needs, own_reservation
from steward.policy.job.fits import fit_of, is_kept, leaving_service


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaces:
    """The places that one job may take, all in one partition, in one picture.

    `own` are the sound nodes of its lost run on which no other job runs, `free` those of them that are idle now;
    `others` are other idle nodes; `hot` are idle hot spares, which Steward keeps for resumed jobs.
    """

    need: int
    own: frozenset[NodeName]
    free: frozenset[NodeName]
    others: frozenset[NodeName]
    hot: frozenset[NodeName]
    lost: frozenset[NodeName]
    coming: frozenset[NodeName] = frozenset()
    """The lost nodes under repair: they are kept, too, so that no other job takes them when they are back."""
    fit: Fit | None = None
    """Slurm's answer whether the job can start without hot spares; None: no answer, so idle nodes are counted."""

    @property
    def lacks(self) -> int:
        """Return how many nodes the job must at least wait for, besides its own that still clean up."""
        counted = max(0, self.need - len(self.own) - len(self.others) - len(self.hot))
        if self.fit is None:
            return counted
        return 0 if self.can_start else max(1, counted)

    @property
    def wants_hot(self) -> int:
        """Return how many of the hot spares the job takes if it starts now."""
        if self.fit is not None:
            return 0 if self.fit.starts else len(self.hot)
        return max(0, self.need - len(self.free) - len(self.others))

    @property
    def can_start(self) -> bool:
        """Return whether the job can start now."""
        if self.fit is not None:
            return self.fit.starts or bool(self.hot)
        return self.wants_hot <= len(self.hot)


def places_of(job: Job, mem: JobMemory, draft: Draft) -> JobPlaces:
    """Return the places in the best partition: where the job can start, lacks no node, or has most nodes of its own."""
    # all nodes of a job are in one partition; where Slurm can tell, its answer replaces our counting
    every = _places_in_each(job, mem, draft)
    best = max(every, key=lambda places: (places.can_start, not places.lacks, len(places.own)))
    if job.het_job_id is not None or job.is_completing or not (job.is_pending or best.need > len(best.own)):
        return best
    fit = fit_of(job, mem, draft)
    is_sure = job.is_pending and not job.is_completing and best.own == best.free
    if fit is None or not (is_sure or fit.state is FitState.NEVER):
        return best  # while the lost run still has its nodes, Slurm cannot tell when they are free
    return replace(best, fit=fit, hot=frozenset() if fit.starts else _hot_spares_that_help(best, job, mem, draft))


def _hot_spares_that_help(places: JobPlaces, job: Job, mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """Return the hot spares with which the job would start now; empty if there are none."""
    # Slurm's test considers only one reservation. If nodes are kept for the job, that one is asked about; so count the
    # hot spares that equal a node of its lost run.
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
    """Return the properties in which a spare must equal a lost node."""
    return node.gres, node.cpus, node.memory_mb, node.active_features


def _places_in_each(job: Job, mem: JobMemory, draft: Draft) -> Sequence[JobPlaces]:
    """Return the places in each partition of the job."""
    going = leaving_service(draft)
    blamed = culprits(mem, draft)
    lost = {name for name in mem.nodes if name in going or not _is_sound(name, draft)} | (blamed & mem.nodes)
    reserved = _reserved(job, draft)
    own = frozenset(name for name in mem.nodes - lost - reserved if not _is_taken(name, job, draft))
    coming = frozenset(name for name in lost - reserved if name in draft.seen.nodes and _is_under_repair(name, draft))
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


def _is_sound(name: NodeName, draft: Draft) -> bool:
    """Return whether the node is schedulable and not under repair."""
    node = draft.seen.nodes.get(name)
    return node is not None and node.is_schedulable and draft.cases.in_work(name) is None


def _is_taken(name: NodeName, job: Job, draft: Draft) -> bool:
    """Return whether another job runs on the node."""
    return any(id != job.id for id in draft.overview.running_on.get(name, ()))


def _reserved(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that other reservations hold now, or will hold before the job's time limit is over."""
    until = draft.now + job.time_limit_s if job.time_limit_s is not None else math.inf
    mine = {keep_name(job.id), *job.reservation.split(",")}
    held, coming = draft.overview.held_by, draft.overview.coming
    free = {node for name in mine for node in _nodes_of(name, draft) if held.get(node, frozenset()) <= mine}
    later = (each.nodes for each in coming if each.name not in mine and each.starts <= until)
    return frozenset(held.keys() - free).union(*later)


def _nodes_of(reservation: str, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of a reservation; empty if it is unknown."""
    known = draft.seen.reservations.get(reservation)
    return known.nodes if known is not None else frozenset()


def has_hope(places: JobPlaces, draft: Draft) -> bool:
    """Return whether a lost node is under repair that needs no person."""
    return any(_is_under_repair(name, draft) for name in places.lost)


def _is_under_repair(name: NodeName, draft: Draft) -> bool:
    """Return whether the node is under repair that waits for no person."""
    case = draft.cases.open_of(name)
    return case is not None and case.step is not CaseStep.HELD and not needs_approval(case, draft)


def rivals(job: Job, nodes: frozenset[NodeName], draft: Draft) -> tuple[Job, ...]:
    """Return the waiting jobs that could run on these nodes, by id."""
    others = (other for alike in _alike_rivals(nodes, draft) for other in alike if other.id != job.id)
    return tuple(sorted(others, key=lambda other: other.id))


def has_rivals(job: Job, nodes: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether another waiting job could run on these nodes."""
    return any(len(alike) > (alike[0].id == job.id) for alike in _alike_rivals(nodes, draft))


def _alike_rivals(nodes: frozenset[NodeName], draft: Draft) -> Iterator[Sequence[Job]]:
    """Yield the groups of alike waiting jobs that could run on these nodes."""
    sound = frozenset(n for n in nodes if n in draft.seen.nodes and draft.seen.nodes[n].is_schedulable)
    return (alike for alike in draft.overview.waiting_alike if _fits(alike[0], nodes, sound, draft))


def _fits(other: Job, nodes: frozenset[NodeName], sound: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether the job could use one of these nodes, with enough idle nodes in its partition."""
    return any(_fits_in(part, other, nodes, sound, draft) for part in other.partitions)


def _fits_in(part: str, other: Job, nodes: frozenset[NodeName], sound: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether the job could use these nodes in this partition."""
    idle, theirs = draft.overview.idle_of(part), sound & draft.overview.nodes_of(part)
    if not ((idle & nodes) | theirs) - other.excluded:
        return False
    more = theirs - idle
    usable = len(idle) - len(idle & other.excluded) + len(more - other.excluded)
    return usable >= max(1, other.node_count)
