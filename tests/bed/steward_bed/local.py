"""The local bed: real slurmctld, slurmds and munged as processes of this machine, below one directory."""

import getpass
import os
import pwd
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steward.adapters import proc
from steward.adapters.proc import ProcessKey
from steward.adapters.process import Completed, Failed, run
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.ports import PortError, ProviderPort, Retryable
from steward_bed import accounting, local_setup
from steward_bed.accounting import SLURMDBD
from steward_bed.bed import BedError, BedSpec, BedStatus, MachinePower, NodeStatus, Say
from steward_bed.faults import FaultKind, InjectedFault, undoing
from steward_bed.file_faults import file_faults_in_force, file_faults_of_node_in_force
from steward_bed.layout import Layout
from steward_bed.local_controller import Controller, services_of
from steward_bed.local_faults import LocalFaults
from steward_bed.local_setup import Manifest, slurm_env, steward_env
from steward_bed.providers.local import LocalProvider
from steward_bed.providers.local_machine import Machine
from steward_bed.slurm_conf import LOOPBACK
from steward_bed.wait import await_ready, call_silent_nodes, node_states, wait_until


class LocalBed:
    """A Bed (see bed.py) of this machine's own Slurm packages."""

    def __init__(self, spec: BedSpec) -> None:
        self._given = spec
        self._layout = Layout(root=spec.dir)
        self._controller = Controller(self._layout)
        self._provider = LocalProvider(spec.dir)
        self._faults = LocalFaults(self._layout, self._controller, self._provider)

    @property
    def spec(self) -> BedSpec:
        return self._manifest.spec if self._layout.manifest.exists() else self._given

    @property
    def shared(self) -> Path:
        return self._layout.shared

    @property
    def env(self) -> Mapping[str, str]:
        own = {**slurm_env(self._layout), **steward_env(self._layout, self._manifest)}
        return {**own, "STEWARD_TESTBED": str(self._layout.root)}

    def up(self, say: Say) -> None:
        try:
            manifest = local_setup.prepare(self._layout, self._given)
            say(f"Slurm {manifest.slurm} in {self._layout.root}")
            self._start(manifest, say)
        except PortError as error:
            raise BedError(f"the local bed did not come up: {error}") from error

    def down(self) -> None:
        if not self._layout.root.exists():
            return
        if not self._layout.manifest.exists():
            if any(self._layout.root.iterdir()):
                raise BedError(f"{self._layout.root} holds no bed; nothing was touched")
            self._layout.root.rmdir()
            return
        wait_until(f"every machine of {self._layout.root} is off", self._off, _DISK_S)
        shutil.rmtree(self._layout.root)

    def _off(self) -> bool:
        self._controller.stop_all()
        all_off(self._provider)
        end(self._layout.root)
        return True

    def status(self) -> BedStatus:
        manifest = self._manifest
        return BedStatus(
            dir=self._layout.root,
            backend=manifest.spec.backend,
            slurm=manifest.slurm,
            nodes=self._nodes(manifest),
            services={name: self._controller.running(name) is not None for name in services_of(manifest.spec)},
            faults=tuple(str(fault) for fault in self._in_force()),
            env=self.env,
        )

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, user: str = "") -> Completed:
        return run(as_user(user, argv), timeout_s=timeout_s, env=self.env, cwd=self.shared, check=check)

    def inject(self, fault: InjectedFault) -> None:
        known = names_of(self._manifest, self._provider)
        if fault.node is not None and fault.node not in known:
            raise BedError(f"{fault.kind.value}: no node {fault.node} in this bed; it has {', '.join(known)}")
        try:
            self._faults.inject(fault)
        except PortError as error:
            raise BedError(f"{fault.kind.value}: {error}") from error

    def restore(self) -> None:
        for fault in undoing(self._in_force()):
            self.inject(fault)

    def logs(self) -> Mapping[str, Path]:
        return self._layout.logs()

    @property
    def _manifest(self) -> Manifest:
        if not self._layout.manifest.exists():
            raise BedError(f"no bed in {self._layout.root}; `steward-testbed up --dir {self._layout.root}` makes one")
        return local_setup.load(self._layout)

    def _in_force(self) -> list[InjectedFault]:
        return list(faults_in_force(self._layout, self._manifest, self._controller, self._provider))

    def _start(self, manifest: Manifest, say: Say) -> None:
        spec = manifest.spec
        # The head first: an agent that finds it at once need not try again.
        self._controller.start_munged()
        if spec.accounting:
            self._controller.start_accounting((LOOPBACK, manifest.slurmdbd))
        services = {"slurmctld": (LOOPBACK, manifest.slurmctld)}
        self._controller.start(services | ({"stewardd": (LOOPBACK, manifest.http)} if spec.steward else {}))
        for group, names in (("main", spec.node_names), ("spare", spec.spare_names)):
            for name in () if spec.groups else names:
                self._provider.launch(Slot(node=name, group=group), f"bed-{name}")
        say("controller and nodes are started")
        if spec.accounting:
            accounting.let_in(self, [getpass.getuser()])
        call_silent_nodes(self)
        await_ready(self)
        say("every node is idle" + (", every agent connected" if spec.steward else ""))

    def _nodes(self, manifest: Manifest) -> tuple[NodeStatus, ...]:
        try:
            states = node_states(self)
        except Failed:
            states = {}
        ids = {each.node: each.id for each in self._provider.instances().values()}
        return tuple(
            NodeStatus(
                name=name, power=power(self._provider, name), instance=ids.get(name, ""), slurm=states.get(name, "")
            )
            for name in names_of(manifest, self._provider)
        )


def as_user(user: str, argv: Sequence[str]) -> list[str]:
    """argv that runs `argv` as `user`; empty or ourselves: unchanged. Only root may become somebody else."""
    if user == "":
        return list(argv)
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise BedError(f"no user {user} on this machine; choose one of `getent passwd`") from error
    if entry.pw_uid == os.geteuid():
        return list(argv)
    if os.geteuid() != 0:
        raise BedError(f"only root can run a command as {user}; bring the bed up as root")
    who = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return ["setpriv", *who, "env", f"USER={user}", "HOME=/", *argv]


def power(provider: LocalProvider, node: NodeName) -> MachinePower:
    """The state of the node's machine."""
    machine = provider.machine(node)
    if machine is None:
        return MachinePower.MISSING
    if not machine.is_on:
        return MachinePower.OFF
    return MachinePower.FROZEN if _is_stopped(machine) else MachinePower.ON


def names_of(manifest: Manifest, provider: LocalProvider) -> tuple[NodeName, ...]:
    """Every node of the bed; where groups come through the API, those that have a machine now."""
    if not manifest.spec.groups:
        return manifest.spec.machine_names
    return tuple(sorted(instance.node for instance in provider.instances().values()))


def faults_in_force(
    layout: Layout, manifest: Manifest, controller: Controller, provider: LocalProvider
) -> Iterator[InjectedFault]:
    for node in names_of(manifest, provider):
        for kind in _of_node(layout, manifest, provider, node):
            yield InjectedFault(kind=kind, node=node)
    if manifest.spec.steward and controller.running("stewardd") is None:
        yield InjectedFault(kind=FaultKind.KILL_HEAD)
    if controller.running("slurmctld") is None:
        yield InjectedFault(kind=FaultKind.KILL_SLURMCTLD)
    if manifest.spec.accounting and controller.running(SLURMDBD) is None:
        yield InjectedFault(kind=FaultKind.KILL_SLURMDBD)
    if controller.is_stopped("stewardd"):
        yield InjectedFault(kind=FaultKind.STOP_HEAD)
    yield from file_faults_in_force(layout)


def _of_node(layout: Layout, manifest: Manifest, provider: LocalProvider, node: NodeName) -> Iterator[FaultKind]:
    state = power(provider, node)
    machine = provider.machine(node)
    if state is MachinePower.OFF:
        yield FaultKind.KILL_NODE
    if state is MachinePower.FROZEN:
        yield FaultKind.FREEZE_NODE
    if manifest.spec.steward and machine is not None and machine.is_on and machine.program("agent") is None:
        yield FaultKind.KILL_AGENT if machine.program("slurmd") is not None else FaultKind.STOP_SERVICES
    yield from file_faults_of_node_in_force(layout, node)


def _is_stopped(machine: Machine) -> bool:
    slurmd = machine.program("slurmd")
    seen = None if slurmd is None else proc.look(slurmd.pid)
    return seen is not None and seen.stopped


_DISK_S = 60.0


def all_off(provider: ProviderPort) -> None:
    """Every machine is tried. Raises Retryable when processes of one are killed and not gone: the kernel keeps those
    that wait for a disk until it answers."""
    errors = []
    for instance in provider.instances():
        try:
            provider.terminate(instance)
        except Retryable as error:
            errors.append(error)
    if errors:
        raise errors[0]


# Slurm daemons of a bed that lost their machine, for example because somebody killed its first process.

_DAEMONS = ("slurmd", "slurmstepd", "slurmctld", "munged", "mariadbd")
_GONE_S = 5.0


def end(root: Path) -> None:
    """Kill every Slurm daemon that has a file or socket below `root` open, with what runs below it.

    Only daemons: a person's shell or editor in that directory is left alone. Raises Retryable when some stay.
    """
    deadline = time.monotonic() + _GONE_S
    while found := [each for daemon in _daemons(root) for each in _tree(daemon)]:
        for process in found:
            proc.send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Retryable(f"processes do not die: {sorted(each.pid for each in found)}; look at their state in ps")
        time.sleep(0.01)


def _tree(daemon: ProcessKey) -> list[ProcessKey]:
    return [daemon, *(seen.process for seen in proc.descendants(daemon))]


def _daemons(root: Path) -> Iterator[ProcessKey]:
    for seen in proc.all_processes():
        if not seen.dead and _program(seen.process.pid).startswith(_DAEMONS) and _uses(seen.process.pid, root):
            yield seen.process


def _program(pid: int) -> str:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def _uses(pid: int, root: Path) -> bool:
    try:
        targets = [os.readlink(f"/proc/{pid}/cwd")]
        targets += [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(Path(target).is_relative_to(root) for target in targets)
