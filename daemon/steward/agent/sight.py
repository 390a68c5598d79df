"""What the ranks of this node's steps do: worked out of two looks at their processes and GPUs, for all jobs.

Pure: the looks come from `agent/sight_watch.py`, and what the ranks of all nodes do together is judged by the head
(`policy/facts/standing_still.py`). What cannot be told is not guessed.
"""

import statistics
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from steward.adapters.node.step_walk import RankName, StepLook, StepProcess
from steward.adapters.proc import ProcessKey
from steward.agent.rank_network import QUIET_BYTES_PER_S, MachineTraffic, RankNetwork, Sockets, is_busy
from steward.model.ids import NodeName
from steward.model.job_sight import ACTIVE, STILL, Doing, RankGroup, SlowRank, StepSight
from steward.model.probe import Gpu

TELL_S = 30.0
"""A rank that has done no work for less time than this still counts as working."""
STEADY_S = 300.0
"""For so long after it surely worked, a rank that uses CPU counts as working: else each look would be news."""
WORKED_CPU_S = 0.5
"""A rank that had used this much CPU when it was first seen has worked before."""
QUIET_CORES = 0.05
"""The CPU use up to which a rank does nothing: what threads need that look after a waiting rank."""
FULL_PERCENT, IDLE_MEMORY_PERCENT = 95, 5
"""A GPU that waits in a kernel: in use to at least the first, its memory to at most the second."""
WORKING_SHARE = 0.25
"""A GPU works that draws more than this share of the way from its least to the job's most power."""
KNOWN_RANGE = 1.5
"""How far a GPU's most power is above its least, if it was seen both to work and not to."""
HALF_LIFE_S = 4 * 3600.0
"""In this time half of a longest pause is forgotten."""
BLIND_S = 150.0
"""What a rank did between two looks that are further apart than this is not known."""
SLOW_S = 600.0
"""So long a rank's GPU is slowed down by its hardware before that is told."""
SLOW_SHARE = 0.75
"""In this share of the looks of that time: hardware lets go and slows down again within a second."""
BRAKES = {0x8: "hardware slowdown", 0x20: "too hot", 0x40: "too hot", 0x80: "power brake"}
"""NVML's bits of the reasons for lower clocks that are no choice of a person or a job."""
MOST_RANKS = 1024
"""The most ranks of a step on a node that are followed."""

_RankKey = tuple[bool, int]
"""Whether it is a task of Slurm's, and its number."""
_StepKey = ProcessKey


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLook:
    """One look at the steps of this node, at `at` (s since the machine's boot).

    `gpus` is None if NVML did not answer. `network_bytes` (through the kernel) and `fabric_bytes` (past it) only grow,
    and are of the whole machine; `sockets` are those of the processes that `JobSight.asks` named.
    """

    at: float
    steps: Sequence[StepLook]
    names: Mapping[ProcessKey, RankName | None] = field(default_factory=dict)
    gpus: Sequence[Gpu] | None = ()
    network_bytes: int = 0
    fabric_bytes: int = 0
    sockets: Sockets = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Rank:
    """A rank, and what it does since when (s)."""

    number: int
    at: float
    last: dict[ProcessKey, StepProcess] = field(default_factory=dict)
    doing: Doing = Doing.UNKNOWN
    since: float = 0.0
    free_since: float = 0.0
    """Since when it is not stopped by a signal, as far as was seen."""
    still_since: float | None = None
    usual_s: float = 0.0
    has_worked: bool
    active: Doing = Doing.UNKNOWN
    """How it was last seen to be active; UNKNOWN: not yet."""
    works_until: float = 0.0
    """Until when it counts as working, because it surely did a while ago."""
    pid: int = 0
    network: RankNetwork = field(default_factory=RankNetwork)
    gpu_looks: deque[tuple[float, Gpu]] = field(default_factory=deque)
    """The looks since `SLOW_S` and a little more at its most braked GPU, while that was in use."""

    def note_gpus(self, gpus: Sequence[Gpu], at: float) -> None:
        """Take a look at its GPUs; one that is not in use tells nothing, and ends what was known."""
        used = [gpu for gpu in gpus if gpu.busy_percent]
        if not used or (self.gpu_looks and at - self.gpu_looks[-1][0] > BLIND_S):
            self.gpu_looks.clear()
        if used:
            self.gpu_looks.append((at, max(used, key=lambda gpu: bool(_brakes(gpu)))))
        while len(self.gpu_looks) > 1 and self.gpu_looks[1][0] < at - SLOW_S - 2 * TELL_S:
            self.gpu_looks.popleft()

    def slow(self) -> tuple[float, Gpu] | None:
        """Return for how long (s) hardware has slowed its GPU down, and that; None if it is not `SLOW_S`."""
        braked = [(at, gpu) for at, gpu in self.gpu_looks if _brakes(gpu)]
        if len(braked) < max(SLOW_SHARE * len(self.gpu_looks), 1):
            return None
        for_s, gpu = self.at - braked[0][0], braked[-1][1]
        return (for_s, gpu) if for_s >= SLOW_S else None

    def begin_anew(self, at: float) -> None:
        """Forget since when it does what it does: no look was made meanwhile."""
        self.doing, self.at, self.still_since, self.free_since = Doing.UNKNOWN, at, None, at
        self.network.forget()

    def set_doing(self, doing: Doing, began: float) -> None:
        """Set what it does since the look at `began`; learn the longest pause that ended by itself."""
        if self.doing is Doing.STOPPED is not doing:
            self.free_since = self.at
        if doing is not self.doing:
            self.doing, self.since = doing, began
        had_worked, self.has_worked = self.has_worked, self.has_worked or doing in ACTIVE
        self.active = doing if doing in ACTIVE else self.active
        if doing is Doing.WORKS:
            self.works_until = began + STEADY_S
        if doing in STILL:
            self.still_since = began if self.still_since is None else self.still_since
        elif self.still_since is not None and doing in ACTIVE:
            pause, self.still_since = began - self.still_since, None
            if had_worked:  # what comes before its first work is no pause
                self.usual_s = max(pause, self.usual_s * 0.5 ** (pause / HALF_LIFE_S))


@dataclass(slots=True, kw_only=True)
class _Step:
    look: StepLook
    ranks: dict[_RankKey, _Rank] = field(default_factory=dict)
    peak_w: dict[str, float] = field(default_factory=dict)
    """The most power that each GPU drew for this step, by its UUID."""


class JobSight:
    """What the ranks of this node's steps do. `waits_in` returns where a process waits in the kernel."""

    def __init__(self, node: NodeName, *, waits_in: Callable[[int], str]) -> None:
        self._node, self._waits_in = node, waits_in
        self._steps: dict[_StepKey, _Step] = {}
        self._last: NodeLook | None = None
        self._floor_w: dict[str, float] = {}

    def asks(self, look: NodeLook) -> frozenset[ProcessKey]:
        """Return the processes whose sockets `note` needs to see: of ranks that would else be told as waiting."""
        machine = _machine(look, self._last, sockets={})
        steps = ((step, self._steps.get(step.stepd.process)) for step in look.steps)
        return frozenset(key for step, known in steps if known is not None for key in _in_doubt(step, known, machine))

    def note(self, look: NodeLook) -> None:
        """Take a look; what a rank does is known from its second one on."""
        last, self._last = self._last, look
        here = [step for step in look.steps if _is_judged(step) and self._is_ours(step, look)]
        keys = {step.stepd.process for step in here}
        self._steps = {key: step for key, step in self._steps.items() if key in keys}
        gpus = _GpuSense(look, last, self._floor_w)
        belongs: dict[_StepKey, Mapping[ProcessKey, _RankKey]] = {}
        for step in here:
            self._steps.setdefault(step.stepd.process, _Step(look=step)).look = step
            belongs[step.stepd.process] = _ranks_of(step, look.names)
        pids = {key.pid for ranks in belongs.values() for key in ranks}
        machine = _machine(look, last, is_unsure=gpus.is_unsure(pids), sockets=look.sockets)
        for step in here:
            key = step.stepd.process
            self._note_step(self._steps[key], belongs[key], gpus, machine)

    def told(self, now: float) -> tuple[StepSight, ...]:
        """Return what the ranks of each step do at `now`, newest step last."""
        steps = sorted(self._steps.items(), key=lambda one: (one[0].started, one[0].pid))
        return tuple(self._sight_of(step, now) for _, step in steps if step.ranks)

    def _is_ours(self, step: StepLook, look: NodeLook) -> bool:
        """Return whether the step is this node's: several slurmds may share a machine."""
        names = (look.names.get(one.key) for one in step.processes)
        nodes = {name.node for name in names if name is not None and name.node}
        return not nodes or self._node in nodes

    def _note_step(
        self, step: _Step, belongs: Mapping[ProcessKey, _RankKey], gpus: "_GpuSense", machine: MachineTraffic
    ) -> None:
        at = machine.at
        of_rank: defaultdict[_RankKey, list[StepProcess]] = defaultdict(list)
        for one in step.look.processes:
            if (rank := belongs.get(one.key)) is not None:
                of_rank[rank].append(one)
        gpus.learn({key.pid for key in belongs}, step.peak_w)
        for key in of_rank.keys() | step.ranks.keys():
            known = step.ranks.get(key)
            if known is None:
                if len(step.ranks) <= MOST_RANKS:
                    step.ranks[key] = _first_seen(key, of_rank[key], at)
                continue
            now = of_rank.get(key, [])
            gpu = gpus.of({one.key.pid for one in now}, step.peak_w)
            doing = _doing(known, now, gpu, machine)
            if at - known.at > BLIND_S:
                known.begin_anew(at)
            known.set_doing(doing, at if doing is Doing.GONE else known.at)  # it did something until it ended
            known.at, known.last = at, {one.key: one for one in now}
            known.note_gpus(gpus.seen_of({one.key.pid for one in now}), at)
        if any(not is_task for is_task, _ in step.ranks):  # launchers wait for the ranks that they started
            step.ranks = {key: rank for key, rank in step.ranks.items() if not key[0]}

    def _sight_of(self, step: _Step, now: float) -> StepSight:
        return StepSight(
            job=step.look.stepd.job,
            step=step.look.stepd.step,
            node=self._node,
            step_s=max(now - step.look.stepd.process.began_s, 0.0),
            groups=self._groups(step, now),
            slow=_slow_ranks(step.ranks.values()),
        )

    def _groups(self, step: _Step, now: float) -> tuple[RankGroup, ...]:
        of_doing: defaultdict[Doing, list[_Rank]] = defaultdict(list)
        is_full = step.look.is_crowded or len(step.ranks) > MOST_RANKS
        for rank in step.ranks.values():
            of_doing[Doing.UNKNOWN if is_full else _shown(rank, now)].append(rank)
        is_open = next((doing for doing in (Doing.WORKS, Doing.UNKNOWN, Doing.BUSY) if doing in of_doing), None)
        if is_open is not None and Doing.STOPPED not in of_doing:
            # nothing follows while a rank may work: how many do, changes all the time
            of_doing = defaultdict(list, {is_open: [rank for ranks in of_doing.values() for rank in ranks]})
        return tuple(self._group(doing, of_doing[doing], now) for doing in Doing if doing in of_doing)

    def _group(self, doing: Doing, ranks: Sequence[_Rank], now: float) -> RankGroup:
        first, is_still = min(ranks, key=lambda one: one.number), doing in STILL
        return RankGroup(
            doing=doing,
            ranks=len(ranks),
            for_s=max(now - max(one.since if is_still else one.free_since for one in ranks), 0.0),
            rank=first.number,
            pid=first.pid if is_still else 0,
            waits_in=self._waits_in(first.pid) if is_still and first.pid else "",
            usual_s=max(one.usual_s for one in ranks),
        )


def _brakes(gpu: Gpu) -> str:
    """Return why the GPU's hardware slows it down; empty if it does not."""
    return ", ".join(dict.fromkeys(why for bit, why in BRAKES.items() if (gpu.clock_reasons or 0) & bit))


def _slow_ranks(ranks: Iterable[_Rank]) -> tuple[SlowRank, ...]:
    """Return the ranks that their GPUs hold back, beside others that are not held back: they are what is slow here."""
    every = sorted((rank for rank in ranks if rank.gpu_looks), key=lambda one: one.number)
    found = {rank.number: slow for rank in every if (slow := rank.slow()) is not None}
    clocks = [
        gpu.sm_mhz for rank in every if rank.number not in found for _, gpu in (rank.gpu_looks[-1],) if gpu.sm_mhz
    ]
    return tuple(
        SlowRank(
            rank=rank.number,
            gpu=gpu.uuid,
            for_s=for_s,
            why=_brakes(gpu),
            mhz=gpu.sm_mhz or 0,
            others_mhz=int(statistics.median(clocks)) if clocks else 0,
        )
        for rank in every
        if rank.number in found
        for for_s, gpu in (found[rank.number],)
    )


def _is_judged(step: StepLook) -> bool:
    """Return whether ranks run in such a step: not in the one that Slurm keeps for a job, nor in a person's shell."""
    return step.stepd.step == "batch" or step.stepd.step.isdigit()


def _shown(rank: _Rank, now: float) -> Doing:
    """Return what is told of the rank: a rank that never worked has not begun, and a short pause is none."""
    doing = rank.doing
    if doing in STILL and (rank.still_since is None or now - rank.still_since < TELL_S):
        doing = rank.active
    if doing in STILL:
        return doing if rank.has_worked else Doing.UNKNOWN
    return Doing.WORKS if doing is Doing.BUSY and now < rank.works_until else doing


def _first_seen(key: _RankKey, processes: Sequence[StepProcess], at: float) -> _Rank:
    has_worked = sum(one.cpu_s for one in processes) >= WORKED_CPU_S
    return _Rank(
        number=key[1], at=at, since=at, free_since=at, last={one.key: one for one in processes}, has_worked=has_worked
    )


def _ranks_of(step: StepLook, names: Mapping[ProcessKey, RankName | None]) -> dict[ProcessKey, _RankKey]:
    """Return the rank to which each process of the step belongs; a process without a number belongs to its parent's."""
    keys = {one.key.pid: one for one in step.processes}
    found: dict[ProcessKey, _RankKey] = {}
    for one in step.processes:
        chain: list[StepProcess] = []
        above: StepProcess | None = one
        while above is not None and above.key not in found and len(chain) <= len(keys):
            chain.append(above)
            above = keys.get(above.parent)
        rank = None if above is None else found.get(above.key)
        for each in reversed(chain):
            rank = _rank_of(each, rank, names.get(each.key))
            found[each.key] = rank
    return found


def _rank_of(one: StepProcess, above: _RankKey | None, name: RankName | None) -> _RankKey:
    """Return the rank of a process, below one of rank `above`; a task that names no number has that of its process."""
    if name is not None and not (name.is_task and above is not None):
        return (name.is_task, name.number)
    return above if above is not None else (True, one.key.pid)


_TOLD_BY_STATE = (("T", Doing.STOPPED), ("D", Doing.BLOCKED), ("R", Doing.UNKNOWN))
"""What a process does that uses no CPU, by the state in which two looks found it."""


def _doing(rank: _Rank, now: Sequence[StepProcess], gpu: Doing | None, machine: MachineTraffic) -> Doing:
    """Return what a rank did since the last look. Its `pid` is set to the process to look at.

    `gpu` is what its GPUs do; None: it has none.
    """
    alive = [one for one in now if one.state not in "ZX"]
    doing, process = _doing_by_itself(rank, alive, machine.at - rank.at, gpu)
    rank.pid = 0 if process is None else process.pid
    if doing is not Doing.WAITS:
        rank.network.forget()
        return doing
    by_network = rank.network.note((one.key for one in alive), machine)
    return by_network if gpu is not Doing.UNKNOWN or by_network is Doing.WORKS else Doing.UNKNOWN


def _doing_by_itself(
    rank: _Rank, alive: Sequence[StepProcess], seconds: float, gpu: Doing | None
) -> tuple[Doing, ProcessKey | None]:
    """Return what a rank did without regard to its network, and the process to look at; None: none is left."""
    if not alive:
        return Doing.GONE, None
    seconds, busiest = max(seconds, 1e-3), _busiest(alive)
    cores = sum(_more(one.cpu_s, rank.last.get(one.key), lambda was: was.cpu_s) for one in alive) / seconds
    flow = sum(_more(one.io_bytes, rank.last.get(one.key), lambda was: was.io_bytes) for one in alive) / seconds
    uses = gpu is Doing.WORKS or flow > QUIET_BYTES_PER_S
    if uses or any(one.state == "t" for one in alive):  # a person debugs it
        return Doing.WORKS, busiest
    is_quiet = cores <= QUIET_CORES
    # what wants a processor and gets none does not wait: another user's processes may have them all
    for state, doing in _TOLD_BY_STATE if is_quiet else ():
        stuck = [one for one in alive if one.state == state and _state_before(one, rank) == state]
        if stuck:
            return doing, _busiest(stuck)
    if gpu is Doing.SPINS or not is_quiet:
        return Doing.SPINS if gpu is Doing.SPINS else Doing.BUSY, busiest
    return Doing.WAITS, busiest


def _more(value: float, before: StepProcess | None, of: Callable[[StepProcess], float]) -> float:
    """Return by how much a counter of a process grew; all of it for a new process."""
    return max(value - (0.0 if before is None else of(before)), 0.0)


def _state_before(one: StepProcess, rank: _Rank) -> str:
    before = rank.last.get(one.key)
    return "" if before is None else before.state


def _busiest(processes: Iterable[StepProcess]) -> ProcessKey:
    """Return the process that has used most CPU: a rank's own program, not the shell above it or a helper below it."""
    return max(processes, key=lambda one: (one.cpu_s, -one.key.pid)).key


def _machine(look: NodeLook, last: NodeLook | None, *, sockets: Sockets, is_unsure: bool = False) -> MachineTraffic:
    before = look if last is None else last
    network, fabric = (
        is_busy((was, before.at), (now, look.at))
        for was, now in ((before.network_bytes, look.network_bytes), (before.fabric_bytes, look.fabric_bytes))
    )
    return MachineTraffic(at=look.at, is_busy=network, is_unsure=is_unsure or fabric, sockets=sockets)


def _in_doubt(look: StepLook, step: _Step, machine: MachineTraffic) -> Iterator[ProcessKey]:
    """Yield the processes of ranks of which only their sockets tell whether they wait; none if another rank works."""
    if machine.is_unsure or any(
        rank.network.idle_since is None and rank.doing not in STILL for rank in step.ranks.values()
    ):
        return
    of_other: set[ProcessKey] = set()
    is_asked = False
    for rank in step.ranks.values():
        is_idle = rank.has_worked and rank.network.idle_since is not None
        if is_idle and (machine.is_busy or rank.network.lacks_first_look(machine.at)):
            is_asked = True
        else:
            of_other |= rank.last.keys()
    if is_asked:  # a new process may belong to any rank
        yield from (one.key for one in look.processes if one.key not in of_other)


_GPU_FIRST = (Doing.WORKS, Doing.UNKNOWN, Doing.SPINS, Doing.WAITS)


class _GpuSense:
    """What the GPUs did between two looks, by the power that they drew.

    `floor_w` is the least power of each GPU so far; it is kept from look to look.
    """

    def __init__(self, look: NodeLook, last: NodeLook | None, floor_w: dict[str, float]) -> None:
        self._gpus, self._floor_w = look.gpus, floor_w
        seconds = 0.0 if last is None else look.at - last.at
        before = {gpu.uuid: gpu.energy_mj for gpu in (last.gpus or ()) if gpu.uuid} if last is not None else {}
        self._watts: dict[str, float] = {}
        for gpu in look.gpus or ():
            was = before.get(gpu.uuid)
            if gpu.energy_mj is not None and was is not None and gpu.energy_mj >= was and seconds > 0.0:
                watts = self._watts[gpu.uuid] = (gpu.energy_mj - was) / 1000.0 / seconds
                floor_w[gpu.uuid] = min(watts, floor_w.get(gpu.uuid, watts))

    def learn(self, pids: Collection[int], peak_w: dict[str, float]) -> None:
        """Note the most power that the GPUs of these processes drew."""
        for gpu in self.seen_of(pids):
            if (watts := self._watts.get(gpu.uuid)) is not None:
                peak_w[gpu.uuid] = max(watts, peak_w.get(gpu.uuid, 0.0))

    def of(self, pids: Collection[int], peak_w: Mapping[str, float]) -> Doing | None:
        """Return what the GPUs of these processes do; None if they have none."""
        found = {self._doing(gpu, peak_w) for gpu in self.seen_of(pids)}
        return next((doing for doing in _GPU_FIRST if doing in found), None)

    def is_unsure(self, pids: Collection[int]) -> bool:
        """Return whether NVML did not answer, or a GPU is in use and not known to be in use by these processes."""
        if self._gpus is None:
            return True
        return any(not self._is_of(gpu, pids) and gpu.busy_percent != 0 for gpu in self._gpus)

    def seen_of(self, pids: Collection[int]) -> list[Gpu]:
        """Return the GPUs of these processes, as they were seen."""
        return [gpu for gpu in self._gpus or () if self._is_of(gpu, pids)]

    def _is_of(self, gpu: Gpu, pids: Collection[int]) -> bool:
        return any(one.pid in pids for one in gpu.processes or ())

    def _doing(self, gpu: Gpu, peak_w: Mapping[str, float]) -> Doing:
        watts, floor = self._watts.get(gpu.uuid), self._floor_w.get(gpu.uuid)
        peak = peak_w.get(gpu.uuid, 0.0)
        if gpu.busy_percent is None or gpu.memory_busy_percent is None or watts is None or floor is None:
            return Doing.UNKNOWN
        if watts > floor + WORKING_SHARE * (peak - floor) or gpu.memory_busy_percent > IDLE_MEMORY_PERCENT:
            return Doing.WORKS
        if gpu.busy_percent == 0:
            return Doing.WAITS
        is_known = peak >= KNOWN_RANGE * floor  # else it has not worked yet since it was first seen
        return Doing.SPINS if gpu.busy_percent >= FULL_PERCENT and is_known else Doing.WORKS
