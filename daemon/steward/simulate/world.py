"""The simulated cluster: faults hit machines, jobs fail and start again, people repair what no reboot cures."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.instance import Instance
from steward.model.job import Job, JobState
from steward.model.job_report import Progress
from steward.model.resume_mode import ResumeMode
from steward.simulate.agenda import Agenda
from steward.simulate.faults import FaultEvent, FaultKind, FaultSign
from steward.simulate.machines import Machine, Machines, shows
from steward.simulate.numbers import WorldNumbers
from steward.simulate.slurm import USER, SimulatedSlurm
from steward.simulate.table import ShownTable
from steward.simulate.training import Habits, Training

BEGIN = 1_800_000_000.0
REGISTER_S = 0.5
"""From a machine's agent to the registration of its slurmd."""
_CRASHED = 256
"""The wait status of a script that exits with 1."""


class Operator:
    """What people and programs do about faults. This one does nothing."""

    def faulted(self, machine: Machine) -> None:
        """Take note of a fault of a node."""

    def failed(self, job: JobId) -> None:
        """Take note of a job whose script has failed."""

    def cured(self, machine: Machine) -> None:
        """Take note of a machine that a person has repaired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSetup:
    """The cluster to simulate."""

    nodes: int
    jobs: tuple[Habits, ...]
    hits_jobs: bool
    beat_s: float
    fixed: bool
    """Whether machines are repaired by people; otherwise a provider makes new ones."""
    mode: ResumeMode


@dataclass(slots=True)
class World:
    """The state of the cluster."""

    setup: WorldSetup
    numbers: WorldNumbers
    seed: int
    agenda: Agenda = field(default_factory=lambda: Agenda(BEGIN))
    machines: Machines = field(default_factory=Machines)
    asks: ShownTable[AskId, Ask] = field(default_factory=ShownTable)
    opted: ShownTable[JobId, OptedIn] = field(default_factory=ShownTable)
    trainings: dict[JobId, Training] = field(default_factory=dict)
    out: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds in which so many nodes were out of service."""
    hits: Counter[str] = field(default_factory=Counter)
    """Faults by kind that stopped a job."""
    misses: int = 0
    """Faults that found no sound node."""
    operator: Operator = field(default_factory=Operator)
    slurm: SimulatedSlurm = field(init=False)
    _asked: int = 0
    _broken: set[NodeName] = field(default_factory=set)
    _out_since: float = BEGIN

    def __post_init__(self) -> None:
        dice = random.Random(f"world {self.seed}")
        self.slurm = SimulatedSlurm(self.agenda, self.numbers, dice.random)
        self.slurm.on_start, self.slurm.on_end = self._started, self._ended
        width = max(4, len(str(self.setup.nodes)))
        for number in range(1, self.setup.nodes + 1):
            name = NodeName(f"n{number:0{width}}")
            machine = self.machines.add(name, self.now - 86_400.0)
            self.machines.come_up(machine, self.now)
            self.slurm.add(name, self.now - 86_400.0)
        for habits in self.setup.jobs:
            self._submit(Training(habits=habits, began=self.now))

    @property
    def now(self) -> float:
        return self.agenda.now

    @property
    def is_news(self) -> bool:
        """Return whether anything changed since the last picture."""
        slurm, machines = self.slurm, self.machines
        tables = (slurm.nodes, slurm.jobs, slurm.kept, machines.views, machines.instances, self.asks, self.opted)
        return any(table.is_news for table in tables)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Have `call` made in so many seconds."""
        self.agenda.after(seconds, call)

    # Jobs

    def _submit(self, training: Training) -> None:
        id = self.slurm.submit(training.habits.nodes)
        self.trainings[id] = training
        self.opted.put(id, OptedIn(job=id, uid=USER, mode=self.setup.mode, restart=0, at=self.now))

    def _started(self, job: Job) -> None:
        training = self.trainings[job.id]
        training.start(self.now)
        self.opted.put(job.id, replace(self.opted[job.id], restart=job.restarts, at=self.now))
        bad = [machine for name in sorted(job.nodes) if not (machine := self.machines.of[name]).is_sound]
        for machine in bad[:1]:
            if machine.fault is not None:
                self._stop(job.id, machine.fault.kind)

    def _ended(self, id: JobId) -> None:
        self.trainings[id].end(self.now)
        if (host := self.slurm.jobs[id].batch_host) is not None:
            self.machines.tell(host, ())
        for key in [key for key, ask in self.asks.rows.items() if ask.job == id]:
            self.asks.drop(key)

    def _stop(self, id: JobId, kind: FaultKind) -> None:
        """Let a fault stop a run; its script fails some time later."""
        job, training = self.slurm.jobs[id], self.trainings[id]
        if not job.is_active or training.is_hit:
            return
        training.hit(kind.name, self.now)
        self._tell_saves(job, training)
        self.hits[kind.name] += 1
        seconds = {FaultSign.FOUND: self.numbers.crash_s, FaultSign.CRASH: 1.0, FaultSign.HANG: self.numbers.watchdog_s}
        later = seconds.get(kind.sign, self.numbers.watchdog_s)
        self.after(later, lambda: self._script_fails(id, job.restarts))

    def _tell_saves(self, job: Job, training: Training) -> None:
        """Let the job's host tell of the newest checkpoint, as it has done all the time."""
        if job.batch_host is None or training.saved_at is None:
            return
        told = Progress(
            job=job.id,
            restart=job.restarts,
            node=job.batch_host,
            checkpoint_step=training.saves,
            checkpointed=training.saved_at,
            at=self.now,
        )
        self.machines.tell(job.batch_host, (told,))

    def _script_fails(self, id: JobId, restart: int) -> None:
        job = self.slurm.jobs[id]
        host = job.batch_host
        if not job.is_active or job.restarts != restart or host is None or not self.machines.of[host].is_up:
            return
        self.operator.failed(id)

    def ask(self, id: JobId) -> None:
        """Let the shim of a failed script ask the head."""
        job = self.slurm.jobs[id]
        assert job.batch_host is not None
        self._asked += 1
        ask = Ask(
            id=AskId(f"a{self._asked}"),
            kind=AskKind.BATCH,
            job=id,
            step="batch",
            node=job.batch_host,
            uid=USER,
            mode=self.setup.mode,
            attempt=1,
            restart=job.restarts,
            status=_CRASHED,
            at=self.now,
        )
        self.asks.put(ask.id, ask)

    def end_badly(self, id: JobId) -> None:
        """Let a job's failure stand; its user submits it again."""
        self.slurm.finish(id, JobState.FAILED)
        self.after(self.numbers.submit_s, lambda: self._submit(self.trainings[id]))

    # Faults

    def strike(self, fault: FaultEvent) -> None:
        """Let a fault happen to one of the nodes that it can hit."""
        machine = self._victim(fault)
        if machine is None:
            self.misses += 1
            return
        job = next((id for id, job in self.slurm.jobs.rows.items() if machine.node in job.nodes), None)
        if fault.kind.sign in (FaultSign.SILENT, FaultSign.FOUND):
            self._break(machine, fault)
        if job is not None:
            self._stop(job, fault.kind)

    def _victim(self, fault: FaultEvent) -> Machine | None:
        names = sorted(self.slurm.nodes.rows)
        if fault.node is not None:
            machine = self.machines.of[names[fault.node - 1]]
            return machine if machine.is_sound else None
        if self.setup.hits_jobs:
            busy = {name for job in self.slurm.jobs.rows.values() for name in job.nodes if job.is_active}
            names = sorted(busy) or names
        sound = [name for name in names if self.machines.of[name].is_sound]
        return self.machines.of[sound[int(fault.pick * len(sound))]] if sound else None

    def _break(self, machine: Machine, fault: FaultEvent) -> None:
        machine.fault = fault
        self._count_out(machine.node, is_out=True)
        if fault.kind.sign is FaultSign.FOUND:
            self.after(self.numbers.event_s, lambda: self.machines.report(machine, self.now))
        else:
            machine.is_up, boot = False, machine.incarnation
            late = self.setup.beat_s * fault.phase + self.numbers.ping_s
            self.after(late, lambda: self._found_silent(machine, boot))
            self.after(self.numbers.slurm_notices_s, lambda: self._missed_by_slurm(machine, boot))
        self.operator.faulted(machine)

    def _found_silent(self, machine: Machine, boot: object) -> None:
        if machine.incarnation == boot:
            self.machines.fall_silent(machine, self.now)

    def _missed_by_slurm(self, machine: Machine, boot: object) -> None:
        if machine.incarnation == boot and not machine.is_up:
            self.slurm.silent(machine.node)

    # Repairs

    def reboot(self, node: NodeName, *, cures: bool) -> None:
        """Reboot a machine; it comes up if nothing keeps it down."""
        machine = self.machines.of[node]
        self.machines.hang_up(machine, self.now)
        machine.boot += 1
        boot = machine.incarnation
        if cures:
            machine.fault = None
        if machine.fault is None or shows(machine):
            self.after(self.numbers.reboot_s, lambda: self._up(machine, boot))

    def _up(self, machine: Machine, boot: object) -> None:
        """Let a machine come up, unless it was rebooted again meanwhile."""
        if machine.incarnation != boot or machine.is_up or self.machines.of.get(machine.node) is not machine:
            return
        self.machines.come_up(machine, self.now)
        self.after(REGISTER_S, lambda: self.slurm.register(machine.node, machine.since))
        if machine.fault is None:
            self._count_out(machine.node, is_out=False)

    def renew(self, node: NodeName, token: str) -> Instance:
        """Make a new machine for a node."""
        machine = self.machines.add(node, self.now, token)
        boot = machine.incarnation
        self.after(self.numbers.launch_s, lambda: self._up(machine, boot))
        return self.machines.instances[machine.instance]

    def repair(self, node: NodeName) -> None:
        """Let a person repair a machine, and give its node back to Slurm."""
        machine = self.machines.of[node]
        machine.fault, machine.boot = None, machine.boot + 1
        if machine.is_up:
            self.machines.hang_up(machine, self.now)
        self._up(machine, machine.incarnation)
        self.after(2 * REGISTER_S, lambda: self._given_back(machine))

    def _given_back(self, machine: Machine) -> None:
        if self.slurm.nodes[machine.node].is_drain:
            self.slurm.give_back(machine.node)
        self.operator.cured(machine)

    def _count_out(self, node: NodeName, *, is_out: bool) -> None:
        """Note that a node's machine broke, or is well again."""
        self.out[len(self._broken)] += self.now - self._out_since
        self._out_since = self.now
        (self._broken.add if is_out else self._broken.discard)(node)

    def close(self) -> None:
        """End the simulated time."""
        self.out[len(self._broken)] += self.now - self._out_since
        for training in {id(each): each for each in self.trainings.values()}.values():
            training.close(self.now)
