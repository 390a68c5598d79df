"""Faults of the local bed: signals to processes, and files that its parts look at."""

import signal
import time
import uuid
from collections.abc import Callable

from steward.adapters import proc
from steward.model.ids import NodeName
from steward_bed.accounting import SLURMDBD
from steward_bed.bed import BedError
from steward_bed.faults import FaultKind, InjectedFault
from steward_bed.file_faults import file_faults, file_faults_of_nodes
from steward_bed.layout import Layout
from steward_bed.local_controller import Controller
from steward_bed.providers import local_machine
from steward_bed.providers.local import LocalProvider
from steward_bed.providers.local_machine import Machine
from steward_bed.wait import wait_until

_START_S = 10.0
_HEAD = "stewardd"
_SERVICES = ("slurmd", "agent")
_OF_MACHINES = (FaultKind.KERNEL_LOG, FaultKind.GPU_FAULT, FaultKind.MEND_GPUS)


class LocalFaults:
    """Makes faults happen; each returns when it has."""

    def __init__(self, layout: Layout, controller: Controller, provider: LocalProvider) -> None:
        self._provider = provider
        self._on_node: dict[FaultKind, Callable[[NodeName, str], None]] = {
            FaultKind.KILL_NODE: lambda node, _: local_machine.power_off(self._machine(node)),
            FaultKind.STOP_NODE: lambda node, text: _stop(self._machine(node), text),
            FaultKind.RECLAIM_NODE: lambda node, text: provider.reclaim(node, text or "spot: in two minutes"),
            FaultKind.START_NODE: lambda node, _: self._start_node(node),
            FaultKind.FREEZE_NODE: lambda node, _: self._freeze(node),
            FaultKind.THAW_NODE: lambda node, _: local_machine.thaw(self._machine(node)),
            FaultKind.CUT_NODE: lambda node, _: _refuse(FaultKind.CUT_NODE),
            FaultKind.JOIN_NODE: lambda node, _: _refuse(FaultKind.JOIN_NODE),
            FaultKind.SLOW_LINK: lambda node, _: _refuse(FaultKind.SLOW_LINK),
            FaultKind.MEND_LINK: lambda node, _: _refuse(FaultKind.MEND_LINK),
            FaultKind.KILL_AGENT: lambda node, _: self._kill_agent(node),
            FaultKind.START_AGENT: lambda node, _: self._start_agent(node),
            FaultKind.RESTART_SERVICES: lambda node, _: self._restart_services(node),
            FaultKind.STOP_SERVICES: lambda node, _: self._stop_services(node),
            FaultKind.START_SERVICES: lambda node, _: self._start_services(node),
            **file_faults_of_nodes(layout),
        }
        self._on_bed: dict[FaultKind, Callable[[str], object]] = {
            FaultKind.KILL_HEAD: lambda _: controller.kill(_HEAD),
            FaultKind.START_HEAD: lambda _: controller.restart(_HEAD),
            FaultKind.STOP_HEAD: lambda _: controller.signal(_HEAD, signal.SIGSTOP),
            FaultKind.CONT_HEAD: lambda _: controller.signal(_HEAD, signal.SIGCONT),
            FaultKind.KILL_SLURMDBD: lambda _: controller.kill(SLURMDBD),
            FaultKind.START_SLURMDBD: lambda _: controller.restart(SLURMDBD),
            FaultKind.RESTART_SLURMCTLD: lambda _: controller.renew("slurmctld"),
            FaultKind.KILL_SLURMCTLD: lambda _: controller.kill("slurmctld"),
            FaultKind.START_SLURMCTLD: lambda _: controller.restart("slurmctld"),
            **file_faults(layout),
        }

    def inject(self, fault: InjectedFault) -> None:
        if fault.node is None:
            self._on_bed[fault.kind](fault.text)
        else:
            if fault.kind in _OF_MACHINES:
                self._machine(fault.node)
            self._on_node[fault.kind](fault.node, fault.text)

    def _machine(self, node: NodeName) -> Machine:
        machine = self._provider.machine(node)
        if machine is None:
            raise BedError(f"{node} has no machine now; `steward-testbed status` lists what there is")
        return machine

    def _start_node(self, node: NodeName) -> None:
        if self._machine(node).is_on:
            return
        for instance in self._provider.instances().values():
            if instance.node == node:
                self._provider.reboot(instance.id, f"start-node-{uuid.uuid4()}")

    def _freeze(self, node: NodeName) -> None:
        machine = self._machine(node)
        if not machine.is_on:
            raise BedError(f"{node} is off, nothing to freeze; `inject start-node {node}` switches it on")
        local_machine.freeze(machine)

    def _kill_agent(self, node: NodeName) -> None:
        machine = self._machine(node)
        local_machine.kill_program(machine, "agent")
        wait_until(f"the agent of {node} is dead", lambda: machine.program("agent") is None, _START_S, every_s=0.01)

    def _restart_services(self, node: NodeName) -> None:
        """Both are away for a moment, as when one command of systemctl restarts both."""
        self._stop_services(node)
        self._start_services(node)

    def _stop_services(self, node: NodeName) -> None:
        machine = self._machine(node)
        services = [each for name in _SERVICES if (each := machine.program(name)) is not None]
        for each in services:
            proc.send(each, signal.SIGTERM)
        ended = f"slurmd and the agent of {node} have ended"
        wait_until(ended, lambda: not any(map(proc.is_alive, services)), _START_S, every_s=0.01)

    def _start_services(self, node: NodeName) -> None:
        machine = self._machine(node)
        local_machine.restart_programs(machine)
        wait_until(f"they run on {node}", lambda: all(map(machine.program, _SERVICES)), _START_S, every_s=0.01)

    def _start_agent(self, node: NodeName) -> None:
        machine = self._machine(node)
        local_machine.restart_programs(machine)
        wait_until(f"the agent of {node} runs", lambda: machine.program("agent") is not None, _START_S, every_s=0.01)


def _stop(machine: Machine, text: str) -> None:
    for seen in proc.descendants(machine.init):
        proc.send(seen.process, signal.SIGTERM)
    time.sleep(float(text or 0))
    local_machine.power_off(machine)


def _refuse(kind: FaultKind) -> None:
    raise BedError(f"{kind.value} is not possible locally, all nodes share one loopback network; use --backend docker")
