"""Random small worlds of quotas on one real cluster: several lanes side by side, each with three machines of a type of
its own, a partition and three teams. What a lane's jobs do is held against brute force (`tests/builders/quota_oracle`).
"""

import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

from steward.adapters.process import Failed
from steward.adapters.slurm.words import expand
from steward_bed.bed import BedError
from tests.builders.quota_oracle import Machines, Part, Runs, beyond, may_all_go, ways
from tests.e2e.quota_bed import GRACE_S, QuotaStory

NODES_EACH = 3
SLACK_S = 3.0
"""Beyond its grace: so soon starts the job for which another one had to go, where Steward ends the grace (22.05). Slurm
(23.02 and newer) looks after the end of one from time to time only: there it is told, and not asserted."""
POLL_S = 0.7
STILL_S, LATE_S = 8.0, 40.0
"""A lane is at rest when nothing changed for so long; what is wrong then may be mended for so long."""
TOLD_S = 20.0
"""So long may the nodes of an evicted job take to be free: that it was evicted is told then."""
ALL_AT_ONCE_S = 200.0
"""The first quotas of all lanes are made together: a call of sacctmgr takes a second, and they need sixty."""
BIG = "big"
SCRIPT = "sleeps.sh"
_DEFAULT_MB = 1024
_PLACE = re.compile(r"\bNodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")
_GRES = re.compile(r"gpu(?::([A-Za-z0-9_.]+))?:(\d+)")
_REFUSED = "violates accounting/QOS policy"
_MIXED = "--gpus-per-node and --gres=gpu are mutually exclusive"
"""sbatch of 26.05 says so also where one part of a heterogeneous job has the one, and another part the other."""
_TO = re.compile(r"job (\d+)(?:_\d+)? (?:is to be evicted|was evicted) for job (\d+)")


@dataclass(frozen=True, kw_only=True)
class Lane:
    """`decides`: the kind of resource that its quotas are of. `gres` is empty for machines without accelerators."""

    name: str
    type: str
    decides: str
    gres: str = ""
    cpus: int
    memory_mb: int

    @property
    def each(self) -> int:
        """So much of what decides is on one machine."""
        return int(self.gres.rpartition(":")[2]) if self.gres else self.cpus

    @property
    def word(self) -> str:
        """Slurm's word for its accelerators: gpu:l4."""
        return self.gres.rpartition(":")[0]

    def nodes(self, at: int) -> list[str]:
        return [f"n{at * NODES_EACH + i + 1}" for i in range(NODES_EACH)]

    def hardware(self) -> list[str]:
        """Of each of its nodes; the last is a big one by a feature."""
        words = f"CPUs={self.cpus} RealMemory={self.memory_mb} " + (f"Gres={self.gres} " if self.gres else "")
        return [f"{words}Feature={self.type}{',' + BIG if i == NODES_EACH - 1 else ''}" for i in range(NODES_EACH)]

    def has(self) -> dict[str, int]:
        found = {"cpu": self.cpus, "mem": self.memory_mb}
        return found | ({self.decides: self.each} if self.gres else {})


LANES = (
    Lane(name="a", type="ml.g6.12xlarge", decides="gpu", gres="gpu:l4:4", cpus=48, memory_mb=196608),
    Lane(name="b", type="ml.g5.12xlarge", decides="gpu", gres="gpu:a10g:4", cpus=48, memory_mb=196608),
    Lane(name="c", type="ml.c5.2xlarge", decides="cpu", cpus=8, memory_mb=16384),
    Lane(name="d", type="ml.p4d.24xlarge", decides="gpu:1g.5gb", gres="gpu:1g.5gb:4", cpus=96, memory_mb=1179648),
    Lane(name="e", type="ml.g4dn.12xlarge", decides="gpu", gres="gpu:t4:4", cpus=48, memory_mb=196608),
)


def hardware() -> str:
    return ";".join(chain.from_iterable(lane.hardware() for lane in LANES))


def partitions() -> str:
    rest = f"DefMemPerCPU={_DEFAULT_MB} MaxTime=INFINITE State=UP"
    return "\n".join(
        f"PartitionName={lane.name} Nodes={','.join(lane.nodes(at))} {rest}" for at, lane in enumerate(LANES)
    )


@dataclass(frozen=True, kw_only=True)
class Team:
    """`owned` has what counts towards its limits."""

    name: str
    owned: Mapping[str, int]
    strategy: str
    percent: int

    @property
    def lends(self) -> bool:
        return self.strategy != "DontLend"

    def limit(self, kind: str) -> int:
        more = self.owned[kind] * self.percent // 100 if self.strategy == "LendAndBorrow" else 0
        return self.owned[kind] + more


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a job asked for; `tasks` of an array, `at_once` of them."""

    team: str
    parts: tuple[Part, ...]
    words: tuple[str, ...]
    tasks: int = 0
    at_once: int = 0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A record of Slurm's on a job (a task, a part)."""

    id: str
    key: int
    """The id by which it was submitted."""
    partition: str
    account: str
    state: str
    qos: str
    reason: str
    priority: int
    restarts: int
    started: str
    on: Mapping[str, Mapping[str, int]]
    text: str

    @property
    def is_waiting(self) -> bool:
        return self.state == "PENDING"

    @property
    def order(self) -> tuple[int, int]:
        """Its place in Slurm's queue."""
        return -self.priority, self.key


def parse(line: str, decides: Mapping[str, str]) -> Seen:
    """A line of `scontrol -d -o show job`. `decides`: partition -> the kind of its accelerators."""
    told = dict(re.findall(r"(\w+)=(\S*)", line.partition(" Nodes=")[0]))
    array, task, het = told.get("ArrayJobId", ""), told.get("ArrayTaskId", ""), told.get("HetJobId", "")
    on: dict[str, dict[str, int]] = {}
    for nodes, cpus, memory, gres in _PLACE.findall(line) if told["JobState"] == "RUNNING" else ():
        count = sum(int(high or low) - int(low) + 1 for low, high in re.findall(r"(\d+)(?:-(\d+))?", cpus))
        amounts = {"cpu": count, "mem": int(memory)}
        for _, number in _GRES.findall(gres):
            amounts[decides[told["Partition"]]] = amounts.get(decides[told["Partition"]], 0) + int(number)
        on |= {str(node): amounts for node in expand(nodes)}
    return Seen(
        id=f"{array}_{task}" if array else told["JobId"],
        key=int(array or het or told["JobId"]),
        partition=told["Partition"],
        account=told["Account"],
        state=told["JobState"],
        qos=told["QOS"],
        reason=told["Reason"],
        priority=int(told["Priority"]),
        restarts=int(told["Restarts"]),
        started=told["StartTime"],
        on=on,
        text=line,
    )


class Watch(threading.Thread):
    """Looks at all jobs again and again, so that no lane has to."""

    def __init__(self, story: QuotaStory) -> None:
        super().__init__(daemon=True)
        self._story, self._ends = story, threading.Event()
        self._decides = {lane.name: lane.decides for lane in LANES}
        self.now: Mapping[str, list[Seen]] = {}
        self.begun: dict[int, list[float]] = {}
        """Key of a job -> when some record of it was first seen to run, once a run."""
        self._known: set[tuple[str, str, int]] = set()
        self.count = 0

    def run(self) -> None:
        while not self._ends.wait(POLL_S):
            self.look()

    def look(self) -> None:
        done = self._story.bed.run(["scontrol", "-d", "-o", "show", "job"], check=False)
        if done.returncode != 0:
            return
        at, found = time.time(), dict[str, list[Seen]]()
        for line in done.text.splitlines():
            if not line.startswith("JobId="):
                continue
            seen = parse(line, self._decides)
            found.setdefault(seen.partition, []).append(seen)
            run = seen.id, seen.started, seen.restarts
            if seen.state == "RUNNING" and run not in self._known:
                self._known.add(run)
                self.begun.setdefault(seen.key, []).append(at)
        self.now, self.count = found, self.count + 1

    def end(self) -> None:
        self._ends.set()
        self.join()


@dataclass(kw_only=True)
class World:
    """One world in a lane. `wrong` is what was found wrong, `mended` what was put right while it was looked at, `late`
    jobs that started later than promised after the eviction for them."""

    story: QuotaStory
    watch: Watch
    lane: Lane
    at: int
    seed: int
    ids: dict[str, str]
    """Of the quotas of its teams, which are there from world to world."""
    teams: dict[str, Team] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    scene: list[str] = field(default_factory=list)
    """The queue at the moment at which something was wrong."""
    evictions: list[float] = field(default_factory=list)
    """How long after it was told to go the job for which it went was running."""
    reasons: int = 0
    _announced: set[int] = field(default_factory=set)
    """The jobs of which it was told that they are to be evicted, before they were."""
    _in_parts: list[Asked] = field(default_factory=list)
    """The heterogeneous jobs that were submitted, those that Slurm refused, too."""
    began: float = 0.0
    took_s: float = 0.0

    def play(self) -> None:
        dice = Random(self.seed)
        self._own(dice)
        began = self.began = time.time()
        try:
            first = [name for name in dice.sample(list(self.teams), 2) if self.teams[name].strategy == "LendAndBorrow"]
            for _ in range(dice.randint(7, 12)):
                self._submit(dice, dice.choice(first or list(self.teams)), 2)
            self._rest()
            for _ in range(dice.randint(1, 2)):
                self._submit(dice, *self._poorest())
            self._submit(dice, dice.choice(list(self.teams)), self.lane.each)
            self._rest()
            if dice.random() < 0.3 and (running := self._running()):
                self.story.bed.run(["scancel", str(dice.choice(running).key)], check=False)
                self._rest()
            self._look_back(began)
            if self.wrong and not self.scene:
                self._show_scene()
        finally:
            self._clear()
            self.took_s = time.time() - began

    # What is there

    @property
    def machines(self) -> Machines:
        names = self.lane.nodes(self.at)
        return Machines(has={n: self.lane.has() for n in names}, features={BIG: frozenset(names[-1:])})

    def _own(self, dice: Random) -> None:
        """New quotas for its three teams, of all of its machines or a little less."""
        most = self.lane.each * NODES_EACH
        cuts = sorted(dice.sample(range(1, most), 2))
        sizes = [cuts[0], cuts[1] - cuts[0], most - cuts[1] - (dice.random() < 0.2)]
        for name, size in zip(("x", "y", "z"), sizes, strict=True):
            team = f"{self.lane.name}{name}"
            strategy = dice.choices(["LendAndBorrow", "Lend", "DontLend"], [8, 1, 1])[0]
            percent = dice.choice([50, 100, 300, 300, 1000])
            words, owned = self._resources(dice, max(size, 1))
            self.teams[team] = Team(name=team, owned=owned, strategy=strategy, percent=percent)
            sharing: dict[str, Any] = {"Strategy": strategy}
            if strategy == "LendAndBorrow":
                sharing["BorrowLimit"] = percent
            config = {"ComputeQuotaResources": [words], "ResourceSharingConfig": sharing}
            self._wish(team, config)
        self.story.wait_in_force(*(self.ids[team] for team in self.teams), deadline_s=ALL_AT_ONCE_S)

    def _resources(self, dice: Random, size: int) -> tuple[dict[str, Any], dict[str, int]]:
        lane = self.lane
        words: dict[str, Any] = {"InstanceType": lane.type}
        if lane.decides == "gpu" and size % lane.each == 0 and dice.random() < 0.7:
            count = size // lane.each
            whole = {"gpu": size, "cpu": lane.cpus * count, "mem": lane.memory_mb * count}
            return {**words, "Count": count}, whole
        if lane.decides == "gpu":
            return {**words, "Accelerators": size}, {"gpu": size}
        if lane.decides == "cpu":
            if dice.random() < 0.3:
                return {**words, "VCpu": size, "MemoryInGiB": 2 * size}, {"cpu": size, "mem": 2048 * size}
            return {**words, "VCpu": size}, {"cpu": size}
        part = {"Type": f"mig-{lane.decides.partition(':')[2]}", "Count": size}
        return {**words, "AcceleratorPartition": part}, {lane.decides: size}

    def _wish(self, team: str, config: Mapping[str, Any]) -> None:
        target = {"TeamName": team, "FairShareWeight": 10}
        if team in self.ids:
            version = self.story.described(self.ids[team])["ComputeQuotaVersion"]
            self.story.api.update_compute_quota(
                ComputeQuotaId=self.ids[team],
                TargetVersion=version,
                ComputeQuotaConfig=config,
                ComputeQuotaTarget=target,
            )
            return
        arn = self.story.get("/v1/quotas")["cluster_arn"]
        made = self.story.api.create_compute_quota(
            Name=team, ClusterArn=arn, ComputeQuotaConfig=config, ComputeQuotaTarget=target
        )
        self.ids[team] = str(made["ComputeQuotaId"])

    def _submit(self, dice: Random, team: str, most: int) -> None:
        """`most`: of what decides, on each node."""
        asked = shape(dice, self.lane, self.lane.nodes(self.at), team, most)
        if len(asked.parts) > 1:
            self._in_parts.append(asked)
        words = (f"--partition={self.lane.name}", *asked.words)
        base = (f"--account={team}", "--requeue", "--output=/dev/null")
        try:
            self.asked[self.story.submit(self.story.dir / SCRIPT, *base, *words)] = asked
        except (BedError, Failed) as error:
            is_mixed = len(asked.parts) > 1 and _MIXED in str(error)
            if not is_mixed and not self._is_beyond_what_it_owns(asked, str(error)):
                self.wrong.append(f"refused: {team} {asked.words}: {error}")

    def _is_beyond_what_it_owns(self, asked: Asked, error: str) -> bool:
        """Whether Slurm refused a heterogeneous job for the sum of its parts, as 26.05 does.

        It leaves the part that was too much behind, as a job of its own: that one is cancelled.
        """
        amounts, owned = self._amounts(asked), self.teams[asked.team].owned
        if len(asked.parts) < 2 or _REFUSED not in error or all(amounts.get(k, 0) <= n for k, n in owned.items()):
            return False
        words = ["squeue", "--noheader", f"--partition={self.lane.name}", f"--account={asked.team}", "--format=%A"]
        left = {int(id) for id in self.story.bed.run(words).text.split()} - self.asked.keys()
        for id in left:
            self.story.bed.run(["scancel", str(id)], check=False)
        return True

    def _records(self) -> list[Seen]:
        return [each for each in self.watch.now.get(self.lane.name, ()) if each.key in self.asked]

    def _running(self) -> list[Seen]:
        return [each for each in self._records() if each.state == "RUNNING"]

    def _runs(self) -> list[Runs]:
        """The parts of a heterogeneous job are one."""
        found: dict[str, Runs] = {}
        for each in self._running():
            id = str(each.key) if len(self.asked[each.key].parts) > 1 else each.id
            on = {node: dict(amounts) for node, amounts in (found[id].on if id in found else {}).items()}
            for node, amounts in each.on.items():
                mine = on.setdefault(node, {})
                for kind, amount in amounts.items():
                    mine[kind] = mine.get(kind, 0) + amount
            own = each.qos.partition(",")[0].endswith("-g")
            since = time.mktime(time.strptime(each.started, "%Y-%m-%dT%H:%M:%S"))
            found[id] = Runs(id=id, team=each.account, on=on, own=own, since=since)
        return list(found.values())

    def _poorest(self) -> tuple[str, int]:
        """The team that owns most of what it does not use, and how much of it one of its jobs may have on a node."""
        runs, kind = self._runs(), self.lane.decides
        left = {team: each.owned[kind] - _use(runs, team, kind) for team, each in self.teams.items()}
        poorest = max(left, key=lambda team: left[team])
        return poorest, min(self.lane.each, max(1, left[poorest]))

    # What has to be so

    def _rest(self) -> None:
        """Wait until nothing changes any more, and look whether all is as it should be."""
        self._wait_still()
        until = time.time() + LATE_S
        first = found = self._problems()
        while found and time.time() < until:
            time.sleep(2.0)
            self._wait_still(2.0)
            found = [each for each in self._problems() if each in found]
        self.wrong += found
        self.mended += [each for each in first if each not in found]
        if found:
            self._show_scene()

    def _show_scene(self) -> None:
        argv = ["squeue", "-a", "-t", "all", "-p", self.lane.name, "-S", "-p"]
        self.scene.append(self.story.bed.run([*argv, "-o", "%i %a %q %T %r %D %N pr=%Q %b %C %S"], check=False).text)
        nodes = ["sinfo", "-h", "-N", "-n", ",".join(self.lane.nodes(self.at)), "-o", "%N %T %E"]
        self.scene.append(self.story.bed.run(nodes, check=False).text)
        self.scene += [f"{key}: {' '.join(asked.words)}" for key, asked in self.asked.items()]
        for event in self.story.events("quota.", since=self.began - 1.0):
            if any(f"job {key} " in event["text"] for key in self.asked):
                self.scene.append(f"{event['at'] - self.began:.1f} s {event['kind']}: {event['text']}")

    def _wait_still(self, for_s: float = STILL_S) -> None:
        seen, since = self._stamp(), time.time()
        while time.time() < since + for_s:
            time.sleep(0.3)
            if (now := self._stamp()) != seen:
                seen, since = now, time.time()

    def _stamp(self) -> list[tuple[object, ...]]:
        self._check_limits()
        found = [(each.id, each.state, each.restarts, each.qos) for each in self._records()]
        missing = self.asked.keys() - {each.key for each in self._records()}
        return sorted(found) + [("not there yet", key) for key in sorted(missing)]

    def _check_limits(self) -> None:
        runs = self._runs()
        for team in self.teams.values():
            for kind in team.owned:
                if (used := _use(runs, team.name, kind)) > team.limit(kind) + self._miscounted(team.name, kind):
                    text = f"team {team.name} has {used} {kind}, its limit is {team.limit(kind)}: {runs}"
                    if text not in self.wrong:
                        self.wrong.append(text)

    def _miscounted(self, team: str, kind: str) -> int:
        """What Slurm 26.05 counts too little for the team's heterogeneous jobs, until Steward lowers the limit."""
        mine = (asked for asked in self._in_parts if asked.team == team) if self.story.miscounts_parts else ()
        return sum(part.amounts().get(kind, 0) for asked in mine for part in asked.parts[1:])

    def _problems(self) -> list[str]:
        runs, records = self._runs(), self._records()
        owned = {team.name: team.owned for team in self.teams.values()}
        excess = beyond(runs, owned)
        found = list[str]()
        for key, asked in self.asked.items():
            waiting = [each for each in records if each.key == key and each.is_waiting]
            going = sum(each.key == key and each.state == "RUNNING" for each in records)
            if not waiting or (asked.at_once and going >= asked.at_once):
                continue
            if any(each.reason in ("Dependency", "JobHeldUser", "BeginTime") for each in waiting):
                continue
            others = (
                o for k, o in self.asked.items() if k != key and any(r.key == k and r.is_waiting for r in records)
            )
            goes_before = any(self._starts_beside(each, runs) for each in others)
            found += self._of_waiting(key, asked, runs, excess, waiting[0], goes_before=goes_before)
        return found

    def _of_waiting(
        self, key: int, asked: Asked, runs: list[Runs], excess: list[Runs], seen: Seen, *, goes_before: bool
    ) -> Iterator[str]:
        """`goes_before`: another waiting job could start now: what is free is promised to that one."""
        team, amounts = self.teams[asked.team], self._amounts(asked)
        what = f"job {key} of {asked.team} {' '.join(asked.words)}"
        used = {kind: _use(runs, team.name, kind) for kind in team.owned}
        is_owner = all(used[kind] + amounts.get(kind, 0) <= team.owned[kind] for kind in team.owned)
        others = [each for each in excess if each.team != team.name]
        owned = {each.name: each.owned for each in self.teams.values()}
        first = self._in_parts_before(seen)
        making = next(
            (
                way
                for way in ways(self.machines, asked.parts, runs, others)
                if not way
                or (
                    may_all_go([r for r in others if r.id in way], runs, owned)
                    and self._starts_behind(asked, first, [r for r in runs if r.id not in way])
                )
            ),
            None,
        )
        is_behind = seen.reason == "Priority" or (len(asked.parts) > 1 and not making)
        if is_owner and making is not None and not (is_behind and not making):
            yield f"an owner waits: {what}; {sorted(making) or 'nobody'} would have to go"
        starts_now = self._starts_beside(asked, runs)
        fits = all(amounts.get(kind, 0) <= self._may_have(team, kind, runs) for kind in team.owned)
        try:
            text = self.story.explain(str(key))
        except BedError as error:
            yield f"{what}: nothing is known of it: {error}"
            return
        self.reasons += 1
        is_next = starts_now and fits and not is_behind and not goes_before
        if not is_owner and is_next and "was evicted before, and may borrow" not in text:
            yield f"a job waits beside what is lent: {what}: {text}"
        yield from (
            f"{what}: false reason: {each}" for each in self._false(text, asked, amounts, runs, excess, is_behind)
        )

    def _false(
        self, text: str, asked: Asked, amounts: Mapping[str, int], runs: list[Runs], excess: list[Runs], is_behind: bool
    ) -> Iterator[str]:
        """What `explain` says and is not so."""
        team, line = self.teams[asked.team], next((x for x in text.splitlines() if "uota" in x), "")
        kept = [each for each in runs if each not in excess]
        used = {kind: _use(runs, team.name, kind) + amounts.get(kind, 0) for kind in team.owned}
        most = {kind: min(team.limit(kind), self.lane.has().get(kind, 0) * NODES_EACH) for kind in team.owned}
        starts_now = self._starts_beside(asked, runs)
        is_short = any(amounts.get(kind, 0) > self._may_have(team, kind, runs) for kind in team.owned)
        truths = {
            "no node that it may use would have room": not self._starts_beside(asked, kept),
            "has reached its limit": any(used[kind] > team.limit(kind) for kind in used),
            "never fits": any(amounts.get(kind, 0) > most[kind] for kind in most),
            "others have that or come first": is_short or not starts_now or "waits for nodes for" in line,
            "waits for nodes (": is_behind or not starts_now,
            "to be evicted": False,
            "is about to be raised": False,
            "not ready to run": False,
        }
        if not line:
            yield f"nothing is said: {text!r}"
        yield from (f"{claim} is not so: {line}" for claim, is_true in truths.items() if claim in line and not is_true)
        for other, has in re.findall(r"(?:: |, )(\w+) has (\d+) GPUs?", line):
            if other in self.teams and self.lane.decides == "gpu" and _use(runs, other, "gpu") != int(has):
                yield f"{other} has {_use(runs, other, 'gpu')}: {line}"

    def _in_parts_before(self, seen: Seen) -> list[Asked]:
        """The heterogeneous jobs that wait and come before this one: Slurm keeps nodes for the first of their parts."""
        keys = {each.key for each in self._records() if each.is_waiting and each.order < seen.order}
        return [self.asked[key] for key in keys - {seen.key} if len(self.asked[key].parts) > 1]

    def _starts_behind(self, asked: Asked, first: list[Asked], runs: list[Runs]) -> bool:
        free = self.machines.free(each.on for each in runs)
        return all(self.machines.starts_beside_kept(asked.parts, each.parts, free) for each in first)

    def _starts_beside(self, asked: Asked, runs: list[Runs]) -> bool:
        return self.machines.starts(asked.parts, self.machines.free(each.on for each in runs))

    def _amounts(self, asked: Asked) -> dict[str, int]:
        """As Slurm counts them: all of a machine that nobody else may be on."""
        found: dict[str, int] = {}
        for part in asked.parts:
            mine = {kind: n * part.nodes for kind, n in self.lane.has().items()} if part.exclusive else part.amounts()
            if part.exclusive:
                mine["mem"] = self.lane.cpus * _DEFAULT_MB * part.nodes
            for kind, amount in mine.items():
                found[kind] = found.get(kind, 0) + amount
        return found

    def _may_have(self, team: Team, kind: str, runs: list[Runs]) -> int:
        """By quotas and by what is free in all."""
        pool = free = self.lane.has().get(kind, 0) * NODES_EACH
        pool = 0
        for each in self.teams.values():
            if kind not in each.owned:
                continue
            used, private = _use(runs, each.name, kind), 0 if each.lends else each.owned[kind]
            pool += (each.owned[kind] if each.lends else 0) - max(0, used - private)
            free -= used + (max(0, private - used) if each is not team else 0)
        used, lends = _use(runs, team.name, kind), team.owned[kind] if team.lends else 0
        unused = team.owned[kind] - lends - used
        most = team.limit(kind) - team.owned[kind] + lends + min(unused, 0)
        return min(free, max(unused, 0) + max(min(pool, most), 0))

    def _look_back(self, began: float) -> None:
        """Each eviction has its reason, and somebody started for it soon."""
        until = time.time() + TOLD_S
        while (told := self._told(began)) == {} and self._restarts() and time.time() < until:
            time.sleep(1.0)
        for victim, times in told.items():
            for at, to in times:
                # what Slurm did at once is told after it was seen
                before = 1.0 if victim in self._announced else TOLD_S
                started = [t for t in self.watch.begun.get(to, ()) if t > at - before]
                if not started:
                    self.wrong.append(f"job {victim} went for job {to}, which did not start")
                else:
                    self.evictions.append(started[0] - at)
                    if started[0] - at > GRACE_S + SLACK_S + 2 * POLL_S:
                        took = f"{started[0] - at:.1f} s"
                        self.late.append(f"job {victim} went for job {to}, which started only {took} later")
        if self._restarts() and not told:
            self.wrong.append(f"{self._restarts()} restarts, and nobody was told why")

    def _restarts(self) -> int:
        return sum(each.restarts for each in self._records() if "+" not in each.id)

    def _told(self, began: float) -> dict[int, list[tuple[float, int]]]:
        """Job that was evicted -> when that was told first, and for which job."""
        told: dict[int, list[tuple[float, int]]] = {}
        asked_to: dict[tuple[int, int], float] = {}
        for event in self.story.events("quota.evict", since=began - 1.0):
            match = _TO.search(event["text"])
            if match is None or int(match[2]) not in self.asked:
                continue
            victim, to = int(match[1]), int(match[2])
            if event["kind"] == "quota.evicting":
                self._announced.add(victim)
                asked_to[victim, to] = event["at"]
            elif event["kind"] == "quota.evicted":
                told.setdefault(victim, []).append((asked_to.get((victim, to), event["at"]), to))
        return told

    def _clear(self) -> None:
        jobs = [str(key) for key in self.asked]
        deadline = time.time() + 60.0
        while jobs and time.time() < deadline:
            self.story.bed.run(["scancel", *jobs], check=False)
            argv = ["squeue", "--noheader", f"--partition={self.lane.name}", "--format=%A"]
            if not self.story.bed.run(argv, check=False).text.strip():
                return
            time.sleep(1.0)


def _use(runs: Collection[Runs], team: str, kind: str) -> int:
    return sum(each.amount(kind) for each in runs if each.team == team)


def shape(dice: Random, lane: Lane, nodes: Sequence[str], team: str, most: int) -> Asked:
    """A job of any shape."""
    kinds = ["plain"] * 4 + ["nodes", "required", "excluded", "exclusive", "feature", "total", "array", "het"]
    kind = dice.choice(kinds)
    amount = dice.randint(1, most)
    if kind == "het":
        parts = [_sized(dice, lane, max(1, amount // 2), 1) for _ in range(2)]
        words = (*parts[0][1], ":", *(f"--partition={lane.name}", *parts[1][1]))
        return Asked(team=team, parts=(parts[0][0], parts[1][0]), words=words)
    if kind == "total":
        count = dice.randint(2, 2 * most)
        each = {"cpu": count, "mem": count * _DEFAULT_MB} | ({lane.decides: count} if lane.gres else {})
        words = (f"--ntasks={count}", *([f"--gpus-per-task={lane.word.partition(':')[2]}:1"] if lane.gres else []))
        return Asked(team=team, parts=(Part(each=each, total=True),), words=words)
    many = dice.randint(2, NODES_EACH) if kind == "nodes" else 1
    part, words = _sized(dice, lane, amount, many)
    some = frozenset(dice.sample(nodes, 1))
    more: dict[str, Any] = {}
    match kind:
        case "required":
            more, words = {"required": some}, (*words, f"--nodelist={','.join(some)}")
        case "excluded":
            more, words = {"excluded": some}, (*words, f"--exclude={','.join(some)}")
        case "exclusive":
            more, words = {"exclusive": True}, (*words, "--exclusive")
        case "feature":
            more, words = {"feature": BIG}, (*words, f"--constraint={BIG}")
        case "array":
            tasks, at_once = dice.randint(2, 4), dice.choice([0, 1, 2])
            part, words = _sized(dice, lane, max(1, amount // 2), 1)
            bound = f"%{at_once}" if at_once else ""
            words = (*words, f"--array=0-{tasks - 1}{bound}")
            return Asked(team=team, parts=(part,), words=words, tasks=tasks, at_once=at_once)
    fields = {"each": part.each, "nodes": part.nodes, **more}
    return Asked(team=team, parts=(Part(**fields),), words=words)


def _sized(dice: Random, lane: Lane, amount: int, nodes: int) -> tuple[Part, tuple[str, ...]]:
    """So much on each node, in any spelling."""
    base = (f"--nodes={nodes}", f"--ntasks={nodes}")
    if not lane.gres:
        each = {"cpu": amount, "mem": amount * _DEFAULT_MB}
        return Part(each=each, nodes=nodes), (*base, f"--cpus-per-task={amount}")
    typed = lane.word.partition(":")[2]
    spelled = [f"--gres={lane.word}:{amount}", f"--gpus-per-node={typed}:{amount}"]
    if lane.decides == "gpu":
        spelled += [f"--gres=gpu:{amount}", f"--gpus-per-node={amount}"]
    if nodes == 1:
        spelled += [f"--gpus={typed}:{amount}", f"--gpus-per-task={typed}:{amount}"]
    each = {lane.decides: amount, "cpu": 1, "mem": _DEFAULT_MB}
    return Part(each=each, nodes=nodes), (*base, dice.choice(spelled))
