"""Ranks of simulated steps: what /proc and NVML would show of them, on a clock that only a test moves."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from steward.adapters.node.step_walk import RankName, StepLook, StepProcess
from steward.adapters.node.stepds import Stepd
from steward.adapters.proc import ProcessKey
from steward.agent.sight import JobSight, NodeLook
from steward.model.ids import JobId, NodeName
from steward.model.job_sight import StepSight
from steward.model.probe import Gpu, GpuProcess

IDLE_W, SPIN_W, WORK_W = 75.0, 120.0, 600.0
TICKS = 100
LOOK_S = 15.0
_J7 = JobId(7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a rank does for a while: cores and bytes a second of its files, the state of its program, and its GPU."""

    cores: float = 0.0
    bytes_per_s: float = 0.0
    carries_per_s: float = 0.0
    """What its TCP connection carries."""
    reconnects: bool = False
    """Whether it has another connection each second."""
    state: str = "S"
    is_there: bool = True
    watts: float = IDLE_W
    busy: int = 0
    memory_busy: int = 0
    reasons: int = 0
    """NVML's bits of the reasons for a lower clock."""
    mhz: int = 1900


TRAINS = Act(cores=1.0, watts=WORK_W, busy=98, memory_busy=40)
BRAKED = Act(cores=1.0, watts=350.0, busy=98, memory_busy=20, reasons=0x40, mhz=1050)
"""Too hot."""
CAPPED = Act(cores=1.0, watts=WORK_W, busy=98, memory_busy=40, reasons=0x4, mhz=1500)
"""At its power limit, as GPUs that work hard are."""
SPINS = Act(cores=1.0, watts=SPIN_W, busy=100, memory_busy=0)
WAITS = Act()
SAVES = Act(cores=0.3, bytes_per_s=200e6)
READS = Act(cores=0.1, bytes_per_s=20e6)
COMPUTES = Act(cores=1.0)
STOPPED = Act(state="T")
BLOCKED = Act(state="D")
DEBUGGED = Act(state="t")
DOWNLOADS = Act(cores=0.02, carries_per_s=1e6)
ASKS_OFTEN = Act(cores=0.02, carries_per_s=1e6, reconnects=True)
"""It downloads pieces, each by a connection of its own."""
STARVES = Act(state="R", cores=0.01)
"""It wants to compute, and others have the node's processors."""
DEAD = Act(is_there=False)


@dataclass(slots=True, kw_only=True)
class FakeRank:
    """A rank. `act` returns what it does at a time (s)."""

    number: int
    act: Callable[[float], Act]
    pid: int
    has_gpu: bool = True
    cpu_s: float = 0.0
    io_bytes: float = 0.0
    carried: float = 0.0
    connection: int = 1
    left: float = 0.0
    """What it carried by connections that are closed."""
    energy_mj: float = 0.0
    at: float = 0.0

    @property
    def key(self) -> ProcessKey:
        return ProcessKey(pid=self.pid, started=int(TICKS))

    def run_to(self, at: float) -> Act:
        """Let time pass in seconds; what happens within one is what its beginning says."""
        while self.at < at:
            act, step = self.act(self.at), min(1.0, at - self.at)
            self.cpu_s += act.cores * step
            self.io_bytes += act.bytes_per_s * step
            self.carried += act.carries_per_s * step
            if act.reconnects:
                self.connection, self.left = self.connection + 1, self.carried
            self.energy_mj += act.watts * 1000.0 * step
            self.at += step
        return self.act(at)

    @property
    def sockets(self) -> Mapping[int, int]:
        """Its TCP sockets by inode, with what they carried."""
        return {1000 * self.pid: 0, 1000 * self.pid + self.connection: int(self.carried - self.left)}


@dataclass(slots=True, kw_only=True)
class FakeStep:
    """A step of a job on one node, with the agent's sight of it; `told` is what the head was last told."""

    node: NodeName
    ranks: list[FakeRank]
    job: JobId = _J7
    step: str = "0"
    network: float = 0.0
    """What others on the machine move (bytes a second), through the kernel."""
    fabric: float = 0.0
    """The same past the kernel."""
    hides_sockets: bool = False
    """Whether the sockets of its processes cannot be seen."""
    asked: int = 0
    """How often sockets of processes were looked at."""
    sight: JobSight = field(init=False)
    told: tuple[StepSight, ...] = ()

    def __post_init__(self) -> None:
        self.sight = JobSight(self.node, waits_in=lambda pid: "futex_wait_queue")

    def look(self, at: float) -> tuple[StepSight, ...]:
        """Return what the ranks do by a look at `at`, taken over as the last one."""
        acts = {rank.pid: rank.run_to(at) for rank in self.ranks}
        look = look_at(self, acts, at)
        asked = self.sight.asks(look)
        self.asked += len(asked)
        sockets = {rank.key: None if self.hides_sockets else rank.sockets for rank in self.ranks if rank.key in asked}
        self.sight.note(replace(look, sockets=sockets))
        return self.sight.told(at)


def look_at(step: FakeStep, acts: Mapping[int, Act], at: float) -> NodeLook:
    """Return a look at the step whose ranks do these things."""
    root = ProcessKey(pid=100, started=0)
    stepd = Stepd(process=root, job=step.job, step=step.step, began=0.0)
    alive = [rank for rank in step.ranks if acts[rank.pid].is_there]
    processes = (
        StepProcess(key=rank.key, parent=100, state=acts[rank.pid].state, cpu_s=rank.cpu_s, io_bytes=int(rank.io_bytes))
        for rank in alive
    )
    names = {rank.key: RankName(number=rank.number, is_task=True, node=step.node) for rank in alive}
    gpus = tuple(_gpu(rank, acts[rank.pid]) for rank in step.ranks if rank.has_gpu)
    look = StepLook(stepd=stepd, processes=tuple(processes))
    network = step.network * at + sum(rank.carried for rank in step.ranks)
    return NodeLook(
        at=at,
        steps=(look,),
        names=names,
        gpus=gpus,
        network_bytes=int(network),
        fabric_bytes=int(step.fabric * at),
    )


def _gpu(rank: FakeRank, act: Act) -> Gpu:
    return Gpu(
        index=rank.number,
        uuid=f"GPU-{rank.number}",
        busy_percent=act.busy,
        memory_busy_percent=act.memory_busy,
        energy_mj=int(rank.energy_mj),
        clock_reasons=act.reasons,
        sm_mhz=act.mhz,
        processes=(GpuProcess(pid=rank.pid),) if act.is_there else (),
    )


def steps_on(
    nodes: Iterable[str], per_node: int, act: Callable[[int], Callable[[float], Act]], *, has_gpu: bool = True
) -> list[FakeStep]:
    """Return a step with `per_node` ranks on each node; `act` returns what a rank of a number does."""
    steps, number = [], 0
    for node in nodes:
        ranks = []
        for _ in range(per_node):
            ranks.append(FakeRank(number=number, act=act(number), pid=1000 + number, has_gpu=has_gpu))
            number += 1
        steps.append(FakeStep(node=NodeName(node), ranks=ranks))
    return steps
