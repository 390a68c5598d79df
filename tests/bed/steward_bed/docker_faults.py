"""Faults of the docker bed: power, pause and network cable of a container, units in it, and files its parts look at;
and which of them are in force, read from the engine, the units and the files themselves."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

from docker.errors import APIError, ContainerError, NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from steward.model.ids import NodeName
from steward_bed.accounting import SLURMDBD
from steward_bed.bed import BedError, MachinePower
from steward_bed.docker_engine import containers, engine
from steward_bed.docker_files import FilesPlan
from steward_bed.faults import FaultKind, InjectedFault
from steward_bed.file_faults import (
    file_faults,
    file_faults_in_force,
    file_faults_of_node_in_force,
    file_faults_of_nodes,
)
from steward_bed.layout import DockerLayout
from steward_bed.providers.docker import BED, NODE
from steward_bed.wait import wait_until

AGENT = "steward-agent"
HEAD = "stewardd"
SLURMCTLD = "slurmctld"
SLURMD = "slurmd"
_POWER = {"running": MachinePower.ON, "paused": MachinePower.FROZEN}


def machines(cluster: str) -> dict[NodeName, Container]:
    """The newest container of each node that has one."""
    with engine() as client:
        found = sorted(containers(client, cluster), key=lambda each: str(each.attrs["Created"]))
    return {NodeName(each.labels[NODE]): each for each in found if NODE in each.labels}


def names_of(plan: FilesPlan) -> tuple[NodeName, ...]:
    """Every node of the bed; where groups come through the API, those that have a machine now."""
    if not plan.spec.groups:
        return plan.spec.machine_names
    return tuple(sorted(machines(plan.cluster)))


def power(container: Container | None) -> MachinePower:
    """The state of the node's machine; a node without a container has none."""
    return MachinePower.MISSING if container is None else _POWER.get(container.status, MachinePower.OFF)


def faults_in_force(layout: DockerLayout, plan: FilesPlan) -> Iterator[InjectedFault]:
    for node, container in machines(plan.cluster).items():
        for kind in _of_node(layout, plan, node, container):
            yield InjectedFault(kind=kind, node=node)
    yield from _of_head(layout, plan)
    yield from file_faults_in_force(layout)


def is_active(container: Container, unit: str) -> bool:
    return container.exec_run(["systemctl", "is-active", "--quiet", unit]).exit_code == 0


def is_dead(container: Container, unit: str) -> bool:
    """Ended, and not on its way up: while a machine boots, systemd may not even answer, and one that was switched off
    or made anew since it was listed cannot be entered. Told by the exit status: `exec_run` loses some output."""
    script = 'case "$(systemctl is-active "$1")" in inactive|failed) exit 0 ;; *) exit 1 ;; esac'
    try:
        return container.exec_run(["sh", "-c", script, "sh", unit]).exit_code == 0
    except APIError:
        return False


def is_on_network(container: Container) -> bool:
    return bool(container.attrs["NetworkSettings"]["Networks"])


def _of_node(layout: DockerLayout, plan: FilesPlan, node: NodeName, container: Container) -> Iterator[FaultKind]:
    state = power(container)
    if not is_on_network(container):
        yield FaultKind.CUT_NODE
    if state is MachinePower.OFF:
        yield FaultKind.KILL_NODE
    if state is MachinePower.FROZEN:
        yield FaultKind.FREEZE_NODE
    if state is MachinePower.ON and plan.spec.steward and is_dead(container, AGENT):
        yield FaultKind.STOP_SERVICES if is_dead(container, SLURMD) else FaultKind.KILL_AGENT
    yield from file_faults_of_node_in_force(layout, node)
    if layout.slow_link(node).exists():
        yield FaultKind.SLOW_LINK


def _of_head(layout: DockerLayout, plan: FilesPlan) -> Iterator[InjectedFault]:
    with engine() as client:
        head = client.containers.get(layout.head)
        if is_dead(head, SLURMCTLD):
            yield InjectedFault(kind=FaultKind.KILL_SLURMCTLD)
        if plan.spec.accounting and is_dead(head, SLURMDBD):
            yield InjectedFault(kind=FaultKind.KILL_SLURMDBD)
        if not plan.spec.steward:
            return
        if is_dead(head, HEAD):
            yield InjectedFault(kind=FaultKind.KILL_HEAD)
        elif _is_stopped(head, HEAD):
            yield InjectedFault(kind=FaultKind.STOP_HEAD)


def _is_stopped(container: Container, unit: str) -> bool:
    script = 'grep -q "^State:.T" "/proc/$(systemctl show --property=MainPID --value "$1")/status"'
    return container.exec_run(["sh", "-c", script, "sh", unit]).exit_code == 0


_START_S = 20.0
_STOP_S = 60
USUAL_MBPS = 20.0
_DEVICE = "eth0"
_SLOW = (
    f"tc qdisc replace dev {_DEVICE} root netem rate $1 2>/dev/null || "
    f"tc qdisc replace dev {_DEVICE} root tbf rate $1 burst 32kb latency 50ms"
)
_MEND = f"! tc qdisc show dev {_DEVICE} | grep -Eq 'netem|tbf' || tc qdisc del dev {_DEVICE} root"


class DockerFaults:
    """Makes faults; `faults_in_force` tells which there are."""

    def __init__(self, layout: DockerLayout, plan: FilesPlan) -> None:
        self._layout = layout
        self._plan = plan
        self._on_node: dict[FaultKind, Callable[[NodeName, str], None]] = {
            FaultKind.KILL_NODE: lambda node, _: self._on_container(node, _kill),
            FaultKind.STOP_NODE: lambda node, _: self._on_container(node, _stop),
            FaultKind.RECLAIM_NODE: lambda node, _: _refuse(FaultKind.RECLAIM_NODE),
            FaultKind.START_NODE: lambda node, _: self._on_container(node, Container.start),
            FaultKind.FREEZE_NODE: lambda node, _: self._on_container(node, _freeze),
            FaultKind.THAW_NODE: lambda node, _: self._on_container(node, _thaw),
            FaultKind.CUT_NODE: lambda node, _: self._on_container(node, self._cut),
            FaultKind.JOIN_NODE: lambda node, _: self._on_container(node, self._join),
            FaultKind.SLOW_LINK: self._slow_link,
            FaultKind.MEND_LINK: lambda node, _: self._mend_link(node),
            FaultKind.KILL_AGENT: lambda node, _: self._on_container(node, lambda each: _kill_unit(each, AGENT)),
            FaultKind.START_AGENT: lambda node, _: self._on_container(node, lambda each: _start_unit(each, AGENT)),
            FaultKind.RESTART_SERVICES: lambda node, _: self._on_container(node, partial(_services, "restart")),
            FaultKind.STOP_SERVICES: lambda node, _: self._on_container(node, partial(_services, "stop")),
            FaultKind.START_SERVICES: lambda node, _: self._on_container(node, partial(_services, "start")),
            **file_faults_of_nodes(layout),
        }
        self._on_bed: dict[FaultKind, Callable[[str], object]] = {
            FaultKind.KILL_HEAD: lambda _: self._on_head(lambda each: _kill_unit(each, HEAD)),
            FaultKind.START_HEAD: lambda _: self._on_head(lambda each: _start_unit(each, HEAD)),
            FaultKind.STOP_HEAD: lambda _: self._on_head(lambda each: _freeze_unit(each, HEAD)),
            FaultKind.CONT_HEAD: lambda _: self._on_head(lambda each: _thaw_unit(each, HEAD)),
            FaultKind.KILL_SLURMDBD: lambda _: self._on_head(lambda each: _kill_unit(each, SLURMDBD)),
            FaultKind.START_SLURMDBD: lambda _: self._on_head(lambda each: _start_unit(each, SLURMDBD)),
            FaultKind.RESTART_SLURMCTLD: lambda _: self._on_head(_restart_slurmctld),
            FaultKind.KILL_SLURMCTLD: lambda _: self._on_head(lambda each: _kill_unit(each, SLURMCTLD)),
            FaultKind.START_SLURMCTLD: lambda _: self._on_head(lambda each: _start_unit(each, SLURMCTLD)),
            **file_faults(layout),
        }

    def inject(self, fault: InjectedFault) -> None:
        if fault.node is None:
            self._on_bed[fault.kind](fault.text)
            return
        nodes = names_of(self._plan)
        if fault.node not in nodes:
            raise BedError(f"no node {fault.node} in this bed; it has {', '.join(nodes)}")
        self._on_node[fault.kind](fault.node, fault.text)

    def _on_container(self, node: NodeName, act: Callable[[Container], None]) -> None:
        container = machines(self._plan.cluster).get(node)
        if container is None:
            raise BedError(f"{node} has no machine now; `steward-testbed status` lists the nodes")
        with engine() as client:
            act(client.containers.get(str(container.id)))

    def _on_head(self, act: Callable[[Container], None]) -> None:
        with engine() as client:
            act(client.containers.get(self._layout.head))

    def _cut(self, container: Container) -> None:
        if is_on_network(container):
            self._network().disconnect(container, force=True)

    def _join(self, container: Container) -> None:
        """With a new link, which is not slow."""
        if not is_on_network(container):
            self._layout.slow_link(NodeName(container.labels[NODE])).unlink(missing_ok=True)
            self._network().connect(container, ipv4_address=self._plan.hosts[container.labels[NODE]])

    def _slow_link(self, node: NodeName, text: str) -> None:
        rate = rate_of(text)
        self._on_container(node, lambda each: slow_down(each, rate))
        self._layout.slow_link(node).write_text(f"{rate:g} Mbit/s\n")

    def _mend_link(self, node: NodeName) -> None:
        self._on_container(node, mend_link)
        self._layout.slow_link(node).unlink(missing_ok=True)

    def _network(self) -> Network:
        with engine() as client:
            return client.networks.get(self._plan.network)


def _refuse(kind: FaultKind) -> None:
    raise BedError(f"{kind.value} is not possible here: the engine takes no machine away; use --backend local")


def _kill(container: Container) -> None:
    """Steward may end and remove a machine that died sooner than its death was waited for."""
    with contextlib.suppress(NotFound):
        if container.status in ("running", "paused"):
            container.kill()
            container.wait(timeout=_START_S)


def _stop(container: Container) -> None:
    """As its systemd does it. Steward may end and remove the machine meanwhile."""
    with contextlib.suppress(NotFound):
        container.stop(timeout=_STOP_S)


def _freeze(container: Container) -> None:
    if container.status == "running":
        container.pause()


def _thaw(container: Container) -> None:
    if container.status == "paused":
        container.unpause()


def _kill_unit(container: Container, unit: str) -> None:
    """systemd would start it again after a second; stopping the unit in that second keeps it dead."""
    _systemctl(container, "kill", "--signal=KILL", "--kill-whom=main", unit)
    _systemctl(container, "stop", unit)
    wait_until(f"{unit} is dead", lambda: is_dead(container, unit), _START_S)


def _start_unit(container: Container, unit: str) -> None:
    wait_until("systemd answers", lambda: container.exec_run(["systemctl", "show"]).exit_code == 0, _START_S)
    _systemctl(container, "start", "--no-block", unit)
    wait_until(f"{unit} runs again", lambda: is_active(container, unit), _START_S)


def _freeze_unit(container: Container, unit: str) -> None:
    _systemctl(container, "kill", "--signal=STOP", "--kill-whom=main", unit)


def _thaw_unit(container: Container, unit: str) -> None:
    """Its watchdog may have ended it while it stood still; then systemd starts it again within a second."""
    container.exec_run(["systemctl", "kill", "--signal=CONT", "--kill-whom=main", unit])
    wait_until(f"{unit} runs", lambda: is_active(container, unit), _START_S)


def _services(verb: str, container: Container) -> None:
    _systemctl(container, verb, SLURMD, AGENT)


def _restart_slurmctld(container: Container) -> None:
    _systemctl(container, "restart", SLURMCTLD)


def _systemctl(container: Container, *words: str) -> None:
    answer = container.exec_run(["systemctl", *words])
    if answer.exit_code != 0:
        said = answer.output.decode("utf-8", "replace").strip() if isinstance(answer.output, bytes) else ""
        raise BedError(f"{container.name}: systemctl {' '.join(words)}: {said}; look at its journal")


# Not every kernel has netem; tbf alone slows just as well.


def rate_of(text: str) -> float:
    """Mbit/s; no text means the usual. Raises BedError for what is no rate."""
    try:
        rate = float(text or USUAL_MBPS)
    except ValueError:
        rate = 0.0
    if not 0.1 <= rate <= 1e5:
        raise BedError(f"slow-link takes Mbit/s from 0.1 to 100000, for example 20; not {text!r}")
    return rate


def slow_down(container: Container, mbps: float) -> None:
    """Limit the node's sending to `mbps`, until its machine is switched off or its cable is pulled."""
    if container.status != "running":
        raise BedError(f"{container.name} is {container.status}: only a machine that runs has a link to slow down")
    in_network(container, _SLOW, f"{mbps * 1000:.0f}kbit")


def mend_link(container: Container) -> None:
    """As fast as before. A link that is not slow stays as it is, and a machine that is off has none."""
    if container.status == "running":
        in_network(container, _MEND)


def in_network(container: Container, script: str, *words: str) -> None:
    """Run a script that may change the machine's network. Raises BedError."""
    with engine() as client:
        try:
            client.containers.run(
                container.attrs["Image"],
                ["-c", script, "sh", *words],
                entrypoint="sh",
                network_mode=f"container:{container.id}",
                cap_add=["NET_ADMIN"],
                labels={BED: container.labels[BED]},
                remove=True,
            )
        except ContainerError as error:
            said = error.stderr.decode("utf-8", "replace") if isinstance(error.stderr, bytes) else str(error.stderr)
            remedy = "a slow link needs sch_netem or sch_tbf in the kernel; the engine must grant NET_ADMIN"
            raise BedError(f"{container.name}: {said.strip()}; {remedy}") from error
