"""Random small worlds against brute force over who could go: an owner waits only where nobody's going would help, and
nobody goes without that owner starting for it. `WORLDS=2000` tries more of them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.accounting import Capabilities
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.machine_types import MachineType
from steward.model.node import NodeBase
from steward.model.quota import Share, Strategy
from steward.policy.draft import Draft
from steward.policy.quota.turn import take_turn
from steward.views.explain_quota import quota_lines
from tests.builders.picture import Picture
from tests.builders.quota import C5, G6, LISTS, MARKS, UNBOUND, WEAK, a_picture, a_quota
from tests.builders.quota_oracle import Machines, Part, Runs, beyond, may_all_go, ways
from tests.builders.quota_site import done, settled
from tests.builders.want import but

WORLDS = int(os.environ.get("WORLDS", "60"))
NODES = ("n1", "n2", "n3")
OWNER, SECOND, HOPELESS, IN_PARTS = 90, 91, 80, 82
BIG = "big"
MIG = "gpu:1g.5gb"
P4 = MachineType(name="ml.p4d.24xlarge", cpus=96, memory_mb=1152 * 1024, gpus=8)
A100 = MachineType(name="ml.p4de.24xlarge", cpus=96, memory_mb=1152 * 1024, gpus=4, gres="gpu:a100:4")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of quota on three machines. `decides`: the resource of which teams own amounts, `each` of it on a machine.
    `odd`: the third machine is of another type, of which a owns all."""

    name: str
    machine: MachineType
    decides: str
    each: int
    gres: str = ""
    whole: bool = False
    odd: MachineType | None = None

    def nodes(self) -> tuple[str, ...]:
        return NODES[:2] if self.odd else NODES

    def has(self) -> dict[str, int]:
        return {"cpu": self.machine.cpus, "mem": self.machine.memory_mb} | {self.decides: self.each}

    def share(self, amount: int) -> Share:
        if self.whole:
            return Share(machine_type=self.machine.name, count=amount // self.each)
        if self.decides == "cpu":
            return Share(machine_type=self.machine.name, vcpu=amount)
        if self.decides == MIG:
            return Share(machine_type=self.machine.name, partition=("1g.5gb", amount))
        return Share(machine_type=self.machine.name, accelerators=amount)

    def tres(self, amounts: Mapping[str, int], nodes: int, *, typed: bool) -> str:
        words = [f"cpu={amounts['cpu']}", f"mem={amounts['mem']}M", f"node={nodes}", "billing=1"]
        if self.gres:
            count, type = amounts[self.decides], self.gres.split(":")[1]
            words += [f"gres/gpu={count}", *([f"gres/gpu:{type}={count}"] if typed or self.decides == MIG else [])]
        return ",".join(words)


KINDS = (
    Kind(name="gpu", machine=G6, decides="gpu", each=4, gres=G6.gres),
    Kind(name="whole", machine=G6, decides="gpu", each=4, gres=G6.gres, whole=True),
    Kind(name="cpu", machine=C5, decides="cpu", each=8),
    Kind(name="mig", machine=P4, decides=MIG, each=4, gres="gpu:1g.5gb:4"),
    Kind(name="two types", machine=G6, decides="gpu", each=4, gres=G6.gres, odd=A100),
)


@dataclass(frozen=True, kw_only=True)
class Running:
    """So much of what decides on each of its nodes. `end`: of its QOS."""

    team: str
    on: tuple[str, ...]
    each: Mapping[str, int]
    end: str


@dataclass(frozen=True, kw_only=True)
class World:
    """All that runs is of teams a and c; the one that waits is of team b, which owns all that they do not. Team c owns
    `idle` beyond what its guaranteed jobs have."""

    kind: Kind
    jobs: Mapping[int, Running]
    big: frozenset[str]
    parts: tuple[Part, ...]
    can: Capabilities
    typed: bool
    idle: int
    strategies: Mapping[str, Strategy]
    before: bool = False
    """A job of four nodes, of the same team, waits before it."""
    first: Part | None = None
    """The first part of a heterogeneous job of the same team that comes before it; its second finds nodes never."""
    bound: tuple[int, int] = (0, 0)
    """It is an array: so many tasks wait, and only so many may run at once."""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def machines(self) -> Machines:
        return Machines(has=dict.fromkeys(self.kind.nodes(), self.kind.has()), features={BIG: self.big})

    @property
    def runs(self) -> list[Runs]:
        return [
            Runs(id=str(id), team=job.team, on=dict.fromkeys(job.on, job.each), own=job.end == "g", since=started(id))
            for id, job in self.jobs.items()
        ]

    @property
    def owned(self) -> dict[str, int]:
        """Team -> so much of what decides."""
        decides, each = self.kind.decides, self.kind.each
        found = {t: sum(r.amount(decides) for r in self.runs if r.own and r.team == t) for t in ("a", "c")}
        left = each * len(self.kind.nodes()) - sum(found.values())
        found["c"] += min(self.idle, left)
        left -= min(self.idle, left)
        return {**found, "b": left // each * each if self.kind.whole else left}

    @property
    def borrowers(self) -> list[Runs]:
        return beyond(self.runs, self._nominal())

    def _nominal(self) -> dict[str, dict[str, int]]:
        return {team: {self.kind.decides: amount} for team, amount in self.owned.items()}

    def ways(self) -> list[set[str]]:
        runs, borrow = self.runs, self.borrowers
        found = [set(way) for way in ways(self.machines, self.parts, runs, borrow)]
        return [way for way in found if may_all_go([r for r in borrow if r.id in way], runs, self._nominal())
                and self._starts_behind(way)]  # fmt: skip

    @property
    def planned(self) -> frozenset[str]:
        """The nodes that Slurm keeps now for the first part of the other job."""
        if self.first is None or self.first.amounts()[self.kind.decides] > self.owned["b"]:
            return frozenset()
        free = self.machines.free(run.on for run in self.runs)
        return min(self.machines.kept_for([self.first], free), key=sorted)

    def _starts_behind(self, gone: set[str]) -> bool:
        """Whether it starts whichever nodes Slurm keeps for the first part of the other, or where it keeps them now."""
        free = self.machines.free(run.on for run in self.runs if run.id not in gone)
        if not gone:
            return self.machines.starts([replace(p, excluded=p.excluded | self.planned) for p in self.parts], free)
        part = self.first
        if part is None or part.amounts()[self.kind.decides] > self.owned["b"]:
            return True
        return self.machines.starts_beside_kept(self.parts, [part], free)

    @property
    def is_covered(self) -> bool:
        """Whether the quota of its team covers it: of machines of this type, and of no other."""
        own = set(self.kind.nodes())
        return (
            bool(self.owned["b"])
            and self.wanted()[self.kind.decides] <= self.owned["b"]
            and all(own & self._left_to(part) for part in self.parts)
        )

    def _left_to(self, part: Part) -> set[str]:
        """The machines that its words leave it; a word that leaves none counts as none."""
        required = part.required if len(part.required) >= part.nodes else frozenset[str]()
        left = set(required) or set(NODES) - part.excluded or set(NODES)
        return (left & self.big if part.feature else left) or left

    def wanted(self) -> dict[str, int]:
        """As Slurm counts it: all of a machine that nobody else may be on."""
        found: dict[str, int] = {}
        for part in self.parts:
            for kind, amount in (self.kind.has() if part.exclusive else part.amounts()).items():
                found[kind] = found.get(kind, 0) + amount
        return found

    def picture(self) -> Picture:
        other = (Share(machine_type=A100.name, accelerators=4),) if self.kind.odd else ()
        parts = replace(self.kind, whole=False)
        shares = {team: (parts.share(amount),) for team, amount in self.owned.items()}
        shares |= {"a": (*shares["a"], *other), "b": (self.kind.share(self.owned["b"]),)}
        unbound: tuple[Share, ...] = (*UNBOUND, Share(machine_type=self.kind.machine.name, accelerators=100, vcpu=999))
        if self.kind.decides == MIG:
            unbound = (Share(machine_type=self.kind.machine.name, partition=("1g.5gb", 99)),)
        quotas = [
            a_quota(team, *own, borrow_absolute=unbound, weight=10, strategy=self.strategies[team])
            for team, own in shares.items()
        ]
        site = a_picture(*quotas, machines=3, can=self.can)
        types = {**site.want.capacity.types, P4.name: P4, A100.name: A100}
        site = replace(site, want=replace(site.want, capacity=but(site.want.capacity, types=types)))
        site = settled(site.see(nodes={name: self._node(name, node) for name, node in site.seen.nodes.items()}))
        for id, job in self.jobs.items():
            site = self._run(site, id, job)
        if self.before:
            site = self._wait(site, HOPELESS, Part(each=self.parts[0].each, nodes=4), site.now - 9)
        for id, part in ((IN_PARTS, self.first), (IN_PARTS + 1, Part(each=self.parts[0].each, nodes=4))):
            if part is not None and self.first is not None:
                site = self._wait(site, id, part, site.now - 8).change_job(id, het_job_id=JobId(IN_PARTS))
                if id == IN_PARTS and self.planned:
                    site = site.change_job(id, planned=frozenset(map(NodeName, self.planned)), started=site.now)
        for id, part in zip((OWNER, SECOND), self.parts, strict=False):
            site = self._wait(site, id, part, site.now)
        return site

    def _node(self, name: NodeName, node: Any) -> Any:
        is_odd = self.kind.odd is not None and name == NODES[2]
        machine = self.kind.odd if is_odd and self.kind.odd else self.kind.machine
        features = frozenset({machine.name} | ({BIG} if name in self.big else set()))
        gres = machine.gres if is_odd else self.kind.gres
        return replace(node, gres=gres, cpus=machine.cpus, memory_mb=machine.memory_mb, features=features)

    def _run(self, site: Picture, id: int, job: Running) -> Picture:
        amounts = {kind: amount * len(job.on) for kind, amount in job.each.items()}
        size = self.kind.tres(amounts, len(job.on), typed=True)
        qos = f"stw-{job.team}-{job.end}"
        fields: dict[str, Any] = {"account": job.team, "requested": size, "allocated": size, "qos": qos}
        site = site.job(id, on=job.on, started=started(id), **fields)
        for name in job.on:
            site = site.node(name, base=NodeBase.MIXED)
        return site

    def _wait(self, site: Picture, id: int, part: Part, submitted: float) -> Picture:
        fields: dict[str, Any] = {
            "account": "b",
            "qos": "stw-b-g",
            "reason": "Resources",
            "submitted": submitted,
            "requested": self.kind.tres(part.amounts(), part.nodes, typed=self.typed),
            "node_count": part.nodes,
            "required": frozenset(map(NodeName, part.required)),
            "excluded": frozenset(map(NodeName, part.excluded)),
            "exclusive": part.exclusive,
            "features": part.feature,
            "is_total": part.total,
            "most_nodes": part.most,
        }
        if len(self.parts) > 1 and id >= OWNER:
            fields["het_job_id"] = JobId(OWNER)
        if self.bound[0] and id not in (IN_PARTS, IN_PARTS + 1):
            fields |= {"array_job_id": JobId(id), "waiting_tasks": self.bound[0], "most_tasks": self.bound[1]}
        return site.job(id, on=(), state=JobState.PENDING, **fields).change_job(id, started=None)


def started(id: int) -> float:
    return 1000.0 + 7 * id % 13


@st.composite
def parts_of(draw: st.DrawFn, kind: Kind) -> Part:
    shape = draw(st.sampled_from(["plain", "nodes", "required", "excluded", "exclusive", "feature", "total"]))
    amount = draw(st.integers(1, kind.each))
    some = frozenset(draw(st.sets(st.sampled_from(NODES), min_size=1, max_size=2)))
    each = amounts_of(draw, kind, amount)
    match shape:
        case "nodes":
            return Part(each=each, nodes=draw(st.integers(2, 3)))
        case "required":
            return Part(each=each, nodes=max(len(some), draw(st.integers(1, 2))), required=some)
        case "excluded":
            return Part(each=each, excluded=some)
        case "exclusive":
            return Part(each=each, exclusive=True)
        case "feature":
            return Part(each=each, feature=BIG)
        case "total":
            nodes, most = draw(st.sampled_from([(1, 0), (1, 1), (1, 2), (2, 2)]))
            count = draw(st.integers(nodes, 2 * kind.each))
            whole = {"cpu": count, "mem": count * 1024, kind.decides: count}
            return Part(each=whole, total=True, nodes=nodes, most=most)
        case _:
            return Part(each=each)


def amounts_of(draw: st.DrawFn, kind: Kind, amount: int) -> dict[str, int]:
    """CPUs and memory follow, but for jobs of CPUs alone: there memory may be what is scarce."""
    gib = draw(st.integers(1, 2 * amount)) if kind.decides == "cpu" else amount
    return {"cpu": amount, "mem": gib * 1024, kind.decides: amount}


@st.composite
def worlds(draw: st.DrawFn, kind: Kind) -> World:
    jobs: dict[int, Running] = {}
    free = {node: kind.has() for node in kind.nodes()}
    for id in range(1, draw(st.integers(0, 8)) + 1):
        on = tuple(sorted(draw(st.sets(st.sampled_from(kind.nodes()), min_size=1, max_size=1 + (id % 4 == 0)))))
        each = amounts_of(draw, kind, draw(st.integers(1, kind.each)))
        if all(free[node][what] >= amount for node in on for what, amount in each.items()):
            jobs[id] = Running(team=draw(st.sampled_from("aac")), on=on, each=each, end=draw(st.sampled_from("gbb")))
            for node in on:
                free[node] = {what: has - each.get(what, 0) for what, has in free[node].items()}
    parts: tuple[Part, ...] = (draw(parts_of(kind)),)
    if draw(st.integers(0, 5)) == 0:
        parts = tuple(replace(draw(parts_of(kind)), total=False, most=0, exclusive=False, nodes=1) for _ in range(2))
        parts = tuple(replace(part, required=frozenset()) for part in parts)
    return World(
        kind=kind,
        jobs=jobs,
        big=frozenset(draw(st.sets(st.sampled_from(NODES), max_size=2))),
        parts=parts,
        can=draw(st.sampled_from([LISTS, MARKS, WEAK])),
        typed=kind.odd is not None or draw(st.booleans()),
        idle=draw(st.sampled_from([0, 0, 1, kind.each])),
        strategies={team: draw(st.sampled_from([*[Strategy.LEND_AND_BORROW] * 3, *Strategy])) for team in "abc"},
        before=draw(st.booleans()),
        first=draw(
            st.none() | parts_of(kind).filter(lambda part: not part.total and part.nodes in (1, len(part.required)))
        ),
        bound=draw(st.sampled_from([(0, 0), (0, 0), (1, 1), (3, 1)])) if len(parts) == 1 else (0, 0),
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=WORLDS, deadline=None)
@given(data=st.data())
def test_who_goes_lets_the_owner_start_and_an_owner_waits_only_where_nobody_helps(
    kind: Kind, data: st.DataObject
) -> None:
    world = data.draw(worlds(kind))
    if not world.is_covered:
        return
    before = world.picture()
    after, _ = done(before)
    going = {str(id) for id, memory in after.memory.quota_jobs.items() if memory.yielding}
    found = world.ways()
    assert going <= {each.id for each in world.borrowers}
    # behind a heterogeneous job no more are evicted than the job needs, though with more it would start wherever Slurm
    # keeps nodes for the other
    if found and set() not in found and (going or world.first is None):
        assert going in found, f"{going} go, of {found}"
        assert not any(way < going for way in found), f"{going} go, fewer would do: {found}"
    else:
        assert not going, f"{going} go in vain"
    _check_told(before, is_hopeless=not found or (world.first is not None and not going and set() not in found))


def _check_told(picture: Picture, *, is_hopeless: bool) -> None:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    turn = take_turn(draft)
    assert turn is not None
    ruling = turn.rulings[JobId(OWNER)]
    assert (ruling.may_run, ruling.hopeless) == (True, is_hopeless)
    text = " ".join(quota_lines(picture.seen.jobs[JobId(OWNER)], draft))
    is_behind = "would keep what is freed for one of them" in text or "Slurm keeps n" in text
    is_behind = is_behind or "too few nodes are free for all of its parts at once" in text
    assert ("no node that it may use would have room" in text or is_behind) == is_hopeless
    assert ("to be evicted" in text) == bool([each for each in turn.yielding if each.to.id == OWNER])
