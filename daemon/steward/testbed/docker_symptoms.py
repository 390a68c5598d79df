"""Which faults are in force in a docker bed, read from the engine, the units and the files themselves."""

from collections.abc import Iterator

from docker.errors import APIError
from docker.models.containers import Container

from steward.adapters.providers.docker_machine import NODE
from steward.model.ids import NodeName
from steward.testbed.accounting import SLURMDBD
from steward.testbed.bed import Power
from steward.testbed.docker_engine import containers, engine
from steward.testbed.docker_files import Plan
from steward.testbed.docker_layout import DockerLayout
from steward.testbed.fake_gpus import has_fault
from steward.testbed.faults import Fault, FaultKind
from steward.testbed.file_faults import file_faults_in_force, has_failing_check

AGENT = "steward-agent"
HEAD = "stewardd"
SLURMCTLD = "slurmctld"
_POWER = {"running": Power.ON, "paused": Power.FROZEN}


def machines(cluster: str) -> dict[NodeName, Container]:
    """The newest container of each node that has one."""
    with engine() as client:
        found = sorted(containers(client, cluster), key=lambda each: str(each.attrs["Created"]))
    return {NodeName(each.labels[NODE]): each for each in found if NODE in each.labels}


def names_of(plan: Plan) -> tuple[NodeName, ...]:
    """Every node of the bed; where groups come through the API, those that have a machine now."""
    if not plan.spec.groups:
        return (*plan.spec.node_names, *plan.spec.spare_names)
    return tuple(sorted(machines(plan.cluster)))


def power(container: Container | None) -> Power:
    """The state of the node's machine; a node without a container has none."""
    return Power.MISSING if container is None else _POWER.get(container.status, Power.OFF)


def faults_in_force(layout: DockerLayout, plan: Plan) -> Iterator[Fault]:
    """Kernel-log lines are not among them: they have happened, and are over."""
    for node, container in machines(plan.cluster).items():
        for kind in _of_node(layout, plan, node, container):
            yield Fault(kind=kind, node=node)
    yield from _of_head(layout, plan)
    yield from file_faults_in_force(layout)


def is_active(container: Container, unit: str) -> bool:
    return container.exec_run(["systemctl", "is-active", "--quiet", unit]).exit_code == 0


def is_dead(container: Container, unit: str) -> bool:
    """Ended, and not on its way up: while a machine boots, systemd may not even answer, and one that was switched off
    or made anew since it was listed cannot be entered."""
    try:
        said = container.exec_run(["systemctl", "is-active", unit]).output
    except APIError:
        return False
    return said in (b"inactive\n", b"failed\n")


def is_on_network(container: Container) -> bool:
    return bool(container.attrs["NetworkSettings"]["Networks"])


def _of_node(layout: DockerLayout, plan: Plan, node: NodeName, container: Container) -> Iterator[FaultKind]:
    state = power(container)
    if not is_on_network(container):
        yield FaultKind.CUT_NODE
    if state is Power.OFF:
        yield FaultKind.KILL_NODE
    if state is Power.FROZEN:
        yield FaultKind.FREEZE_NODE
    if state is Power.ON and plan.spec.steward and is_dead(container, AGENT):
        yield FaultKind.KILL_AGENT
    if has_failing_check(layout.checks(node)):
        yield FaultKind.FAIL_CHECK
    if has_fault(layout.own(node)):
        yield FaultKind.GPU_FAULT
    if layout.slow_link(node).exists():
        yield FaultKind.SLOW_LINK


def _of_head(layout: DockerLayout, plan: Plan) -> Iterator[Fault]:
    with engine() as client:
        head = client.containers.get(layout.head)
        if is_dead(head, SLURMCTLD):
            yield Fault(kind=FaultKind.KILL_SLURMCTLD)
        if plan.spec.accounting and is_dead(head, SLURMDBD):
            yield Fault(kind=FaultKind.KILL_SLURMDBD)
        if not plan.spec.steward:
            return
        if is_dead(head, HEAD):
            yield Fault(kind=FaultKind.KILL_HEAD)
        elif _is_stopped(head, HEAD):
            yield Fault(kind=FaultKind.STOP_HEAD)


def _is_stopped(container: Container, unit: str) -> bool:
    script = 'grep -q "^State:.T" "/proc/$(systemctl show --property=MainPID --value "$1")/status"'
    return container.exec_run(["sh", "-c", script, "sh", unit]).exit_code == 0
