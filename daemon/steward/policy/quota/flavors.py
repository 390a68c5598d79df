"""The machine type of each node, the resources of nodes that take jobs, and Slurm's names for them (TRES)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from steward.model.gres import gpus_of
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.machine_types import MachineType
from steward.model.node import Node, NodeBase
from steward.model.quota import CPU, GPU, MEM, ComputeQuota, Resource, profile_of, resource
from steward.model.reservation import Reservation
from steward.policy.draft import Draft
from steward.policy.quota.constraint import satisfies

_READY = (NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED)


class Flavors:
    """The machine types of a picture's nodes.

    `type_of` has the nodes of a known machine type, `usable` the nodes of these that take jobs: not those under repair,
    hot spares or reserved nodes, but powered-down nodes, which Slurm powers up for jobs. A node with accelerators has a
    type even if no quota names that type: Slurm counts its accelerators against a team's limit.
    """

    def __init__(self, draft: Draft, quotas: Mapping[str, ComputeQuota]) -> None:
        self._draft = draft
        self._types = draft.want.capacity.types
        named = {share.machine_type for quota in quotas.values() for share in quota.shares}
        described = {name for name, each in self._types.items() if each.features or each.gres}
        self.named = frozenset(named)
        self._order = sorted(named | described, key=lambda name: (name not in named, name))
        self._known: dict[tuple[frozenset[str], str], str] = {}
        self._shapes: dict[str, Counter[tuple[str, frozenset[str]]]] = {}
        """For each list of partitions: the types of their nodes, each with the features of such nodes, and how many."""
        self._of_jobs: dict[tuple[str, str, frozenset[NodeName], frozenset[NodeName]], tuple[str, ...]] = {}
        self.type_of = {name: found for name, node in draft.seen.nodes.items() if (found := self._type(name, node))}
        self.present = frozenset(self.type_of.values())
        """The machine types of which the cluster has nodes."""
        apart = _set_apart(draft)
        self.reserved_later = tuple(
            each for each in draft.seen.reservations.values() if each.starts > draft.now and _is_of_others(each, draft)
        )
        """The reservations whose nodes only jobs that name them can use from a later time on."""
        self.usable = frozenset(n for n in self.type_of if n not in apart and takes_jobs(draft.seen.nodes[n]))
        self.in_service = frozenset(self.type_of[name] for name in self.usable)
        """The machine types with a node that takes jobs."""
        self.capacity, self.words, self.largest = self._sum_up()
        self.threads: dict[str, int] = {}
        """The CPUs of a core, by machine type."""
        for name, kind in self.type_of.items():
            self.threads[kind] = max(draft.seen.nodes[name].threads, self.threads.get(kind, 1))

    def is_like(self, other: "Flavors") -> bool:
        """Return whether the requests and amounts of every job are the same with both."""
        return (
            (self.type_of, self.usable, self.capacity, self.words, self.largest, self.threads, self._types)
            == (other.type_of, other.usable, other.capacity, other.words, other.largest, other.threads, other._types)
        ) and all(self._types_for(*key) == found for key, found in other._of_jobs.items())

    def _type(self, name: NodeName, node: Node) -> str:
        """Return the node's machine type; empty if it is unknown."""
        record = self._draft.slots.get(name)
        group = self._draft.groups.get(record.group) if record is not None else None
        if group is not None and group.types:
            return group.types[0]
        key = node.features, node.gres
        if key not in self._known:
            by_name = (each for each in self._order if _is_named(each, node))
            by_parts = (each for each in self._order if self._fits(each, node))
            self._known[key] = next(by_name, "") or next(by_parts, "") or self._named_by(node)
        return self._known[key]

    def _named_by(self, node: Node) -> str:
        """Return the type with accelerators that one of the node's features names; empty if there is none."""
        names = {name for feature in node.features for name in (feature, f"ml.{feature}")} & self._types.keys()
        return min((name for name in names if self._types[name].gpus), default="")

    def _fits(self, name: str, node: Node) -> bool:
        """Return whether the node is of this type by its features and Gres."""
        each = self._types.get(name, MachineType(name=name))
        if not (each.features or each.gres):
            return False
        has_gpus = not each.gres or sorted(gpus_of(each.gres)) == sorted(gpus_of(node.gres))
        return has_gpus and node.features.issuperset(each.features)

    def _sum_up(self) -> tuple[Mapping[Resource, int], Mapping[str, frozenset[str]], Mapping[Resource, int]]:
        """Return the cluster's amounts, each type's names of accelerators in Slurm, and the most that one node has."""
        sums: defaultdict[Resource, int] = defaultdict(int)
        words: defaultdict[str, set[str]] = defaultdict(set)
        most: dict[Resource, int] = {}
        shapes: defaultdict[tuple[str, str, int, int, bool], int] = defaultdict(int)
        for name, kind in self.type_of.items():
            node = self._draft.seen.nodes[name]
            shapes[kind, node.gres, node.cpus, node.memory_mb, name in self.usable] += 1
        for (kind, gres, cpus, memory_mb, is_usable), count in shapes.items():
            words[kind] |= {each.type for each in gpus_of(gres)}
            for unit, amount in self._of_node(kind, gres, cpus, memory_mb).items():
                what = resource(kind, unit)
                sums[what] += amount * count * is_usable
                most[what] = max(amount, most.get(what, 0))
        return sums, {kind: frozenset(found) for kind, found in words.items()}, most

    def of_node(self, name: NodeName) -> Mapping[Resource, int]:
        """Return the amounts of one node of a known machine type."""
        node, kind = self._draft.seen.nodes[name], self.type_of[name]
        found = self._of_node(kind, node.gres, node.cpus, node.memory_mb)
        return {resource(kind, unit): amount for unit, amount in found.items()}

    def _of_node(self, kind: str, gres: str, cpus: int, memory_mb: int) -> dict[str, int]:
        """Return the amounts of a node with these properties, by kind."""
        found = {CPU: cpus, MEM: memory_mb, GPU: 0}
        for each in gpus_of(gres):
            unit = f"{GPU}:{profile}" if (profile := profile_of(each.type)) else GPU
            found[unit] = found.get(unit, 0) + each.amount
        if not gres and kind in self._types:
            found[GPU] = self._types[kind].gpus
        return found

    def has_gpus(self, kind: str) -> bool:
        """Return whether this machine type has accelerators, which then decide in place of CPUs."""
        return bool(self.capacity.get(resource(kind, GPU))) or bool(kind in self._types and self._types[kind].gpus)

    def gpu_words(self, kind: str) -> frozenset[str]:
        """Return Slurm's types for its whole accelerators: `l4` of `gres/gpu:l4`."""
        found = self.words.get(kind) or frozenset(
            each.type for each in gpus_of(self._types[kind].gres if kind in self._types else "")
        )
        return frozenset(word for word in found if word and not profile_of(word))

    def mig_words(self, kind: str, profile: str) -> frozenset[str]:
        """Return Slurm's types for its MIG slices of this profile."""
        return frozenset(word for word in self.words.get(kind, ()) if profile_of(word) == profile) or frozenset(
            {profile}
        )

    def types_for(self, job: Job) -> tuple[str, ...]:
        """Return the machine types on which a job may run, sorted, with "" for unknown ones last.

        They are those of its partitions, narrowed down by its `--constraint` and by nodes that it requires or excludes.
        """
        required = job.required if len(job.required) >= max(job.node_count, 1) else frozenset[NodeName]()
        key = job.partition, job.features, required, job.excluded
        if key not in self._of_jobs:
            self._of_jobs[key] = self._types_for(*key)
        return self._of_jobs[key]

    def _types_for(
        self, partitions: str, features: str, required: frozenset[NodeName], excluded: frozenset[NodeName]
    ) -> tuple[str, ...]:
        """Work out the machine types; a condition that no node satisfies counts as none."""
        nodes = self._draft.overview.nodes_of(partitions)
        if partitions not in self._shapes:
            self._shapes[partitions] = self._shapes_of(nodes)
        all_shapes = self._shapes[partitions]
        shapes = self._shapes_of(required) or all_shapes - self._shapes_of(excluded & nodes) or all_shapes
        found = {kind for kind, has in shapes if not features or satisfies(features, has)}
        return tuple(sorted(found or {kind for kind, _ in shapes}, key=_last_if_none))

    def _shapes_of(self, nodes: Iterable[NodeName]) -> Counter[tuple[str, frozenset[str]]]:
        """Count the nodes of each type and set of features; nodes that Slurm does not know are left out."""
        known = self._draft.seen.nodes
        return Counter((self.type_of.get(name, ""), known[name].features) for name in nodes if name in known)

    def without_type(self) -> Mapping[NodeName, int]:
        """Return the nodes of unknown machine type that take jobs and have accelerators, with their number."""
        there = ((node.name, node.gres) for node in self._of_no_type() if node.gres and takes_jobs(node))
        found = {name: sum(each.amount for each in gpus_of(gres)) for name, gres in there}
        return {name: amount for name, amount in found.items() if amount}

    def cpus_without_type(self) -> int:
        """Return the CPUs of all nodes of unknown machine type that take jobs."""
        return sum(node.cpus for node in self._of_no_type() if takes_jobs(node))

    def _of_no_type(self) -> Iterator[Node]:
        """Yield the nodes of unknown machine type."""
        # a node whose machine went has no type any more, and nothing to give
        return (node for name, node in self._draft.seen.nodes.items() if name not in self.type_of)


def _set_apart(draft: Draft) -> frozenset[NodeName]:
    """Return hot spares and nodes that are reserved now: only jobs that name the reservation run there."""
    # nodes kept for a lost run are not set apart: its team uses them
    found = (each for each in draft.seen.reservations.values() if each.hot_group or _is_closed(each, draft))
    return frozenset(node for each in found for node in each.nodes)


def _is_closed(each: Reservation, draft: Draft) -> bool:
    """Return whether only jobs that name the reservation can use its nodes now."""
    return each.starts <= draft.now < each.ends and _is_of_others(each, draft)


def _is_of_others(each: Reservation, draft: Draft) -> bool:
    """Return whether only jobs that name the reservation can use its nodes while it lasts."""
    if each.kept_for is not None or each.is_magnetic:
        return False
    # other jobs use the rest of the nodes of a partial reservation; jobs of a magnetic reservation need not name it
    nodes = draft.seen.nodes
    return not 0 < each.cpus < sum(nodes[name].cpus for name in each.nodes if name in nodes)


def _is_named(kind: str, node: Node) -> bool:
    """Return whether a feature of the node names the machine type."""
    return kind in node.features or kind.removeprefix("ml.") in node.features


def _last_if_none(kind: str) -> tuple[bool, str]:
    """Return the sort key of a machine type, the unknown one last."""
    return not kind, kind


def takes_jobs(node: Node) -> bool:
    """Return whether Slurm would start a job on the node, now or once it is free or powered up."""
    return node.base in _READY and not node.is_drain and (node.responding or not node.is_powered)
