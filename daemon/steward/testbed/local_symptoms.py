"""Which faults are in force in a local bed, read from the processes and files themselves."""

from collections.abc import Iterator

from steward.adapters import proc
from steward.adapters.providers.local import LocalProvider
from steward.adapters.providers.local_machine import Machine
from steward.model.ids import NodeName
from steward.testbed.accounting import SLURMDBD
from steward.testbed.bed import Power
from steward.testbed.broken_scontrol import how_broken
from steward.testbed.fake_gpus import has_fault
from steward.testbed.faults import Fault, FaultKind
from steward.testbed.layout import Layout
from steward.testbed.local_controller import Controller
from steward.testbed.local_setup import Manifest
from steward.testbed.site_check import has_failing_check


def power(provider: LocalProvider, node: NodeName) -> Power:
    """What the node's machine does."""
    machine = provider.machine(node)
    if machine is None:
        return Power.MISSING
    if not machine.is_on:
        return Power.OFF
    return Power.FROZEN if _is_stopped(machine) else Power.ON


def names_of(manifest: Manifest, provider: LocalProvider) -> tuple[NodeName, ...]:
    """Every node of the bed; where groups come through the API, those that have a machine now."""
    if not manifest.spec.groups:
        return (*manifest.spec.node_names, *manifest.spec.spare_names)
    return tuple(sorted(instance.node for instance in provider.instances().values()))


def faults_in_force(
    layout: Layout, manifest: Manifest, controller: Controller, provider: LocalProvider
) -> Iterator[Fault]:
    """Kernel-log lines are not among them: they have happened, and are over."""
    for node in names_of(manifest, provider):
        for kind in _of_node(layout, manifest, provider, node):
            yield Fault(kind=kind, node=node)
    if manifest.spec.steward and controller.running("stewardd") is None:
        yield Fault(kind=FaultKind.KILL_HEAD)
    if controller.running("slurmctld") is None:
        yield Fault(kind=FaultKind.KILL_SLURMCTLD)
    if manifest.spec.accounting and controller.running(SLURMDBD) is None:
        yield Fault(kind=FaultKind.KILL_SLURMDBD)
    if controller.is_stopped("stewardd"):
        yield Fault(kind=FaultKind.STOP_HEAD)
    if (broken := how_broken(layout.wrappers)) is not None:
        yield Fault(kind=broken)
    if layout.refuse_launch.exists():
        yield Fault(kind=FaultKind.REFUSE_LAUNCH)
    if layout.limit_launch.exists():
        yield Fault(kind=FaultKind.LIMIT_LAUNCH, text=layout.limit_launch.read_text())


def _of_node(layout: Layout, manifest: Manifest, provider: LocalProvider, node: NodeName) -> Iterator[FaultKind]:
    state = power(provider, node)
    machine = provider.machine(node)
    if state is Power.OFF:
        yield FaultKind.KILL_NODE
    if state is Power.FROZEN:
        yield FaultKind.FREEZE_NODE
    if manifest.spec.steward and machine is not None and machine.is_on and machine.program("agent") is None:
        yield FaultKind.KILL_AGENT
    if has_failing_check(layout.node(node) / "checks.d"):
        yield FaultKind.FAIL_CHECK
    if has_fault(layout.node(node)):
        yield FaultKind.GPU_FAULT


def _is_stopped(machine: Machine) -> bool:
    slurmd = machine.program("slurmd")
    seen = None if slurmd is None else proc.look(slurmd.pid)
    return seen is not None and seen.stopped
