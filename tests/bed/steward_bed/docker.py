"""The docker bed: a controller and nodes as containers with systemd, on a bridge of their own."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import docker

from steward.adapters.process import Completed, Failed, run
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.ports import PortError
from steward_bed import accounting, slurm_versions
from steward_bed.bed import BedError, BedSpec, BedStatus, NodeStatus, Say, plain, spec_of
from steward_bed.docker_engine import (
    DEFAULT_SLURM,
    engine,
    engine_url,
    image_for,
    make_network,
    must_have_room,
    remove_all,
    slurm_of,
)
from steward_bed.docker_faults import DockerFaults, faults_in_force, is_active, machines, names_of, power
from steward_bed.docker_files import ENGINE_SOCKET, HTTP_PORT, MOUNT, FilesPlan, write_files
from steward_bed.faults import FaultKind, InjectedFault, undoing
from steward_bed.layout import DockerLayout
from steward_bed.providers.docker import BED, ContainerSpec, DockerProvider, create, instance_id
from steward_bed.providers.settings import DockerSettings
from steward_bed.wait import NotInTime, await_ready, call_silent_nodes, node_states, wait_until

_TIMED_OUT = 124
_GRACE_S = 10.0
_AT_ONCE = 4
_CLEAN_S = 60.0
_ANSWER_S = 30.0
_USERS = ("root", "alice", "bob")


class DockerBed:
    """A Bed (see bed.py) of containers; any Slurm version that has an image."""

    def __init__(self, spec: BedSpec) -> None:
        self._given = spec
        self._layout = DockerLayout(root=spec.dir)

    @property
    def spec(self) -> BedSpec:
        return self._plan.spec if self._layout.manifest.exists() else self._given

    @property
    def shared(self) -> Path:
        return self._layout.shared

    @property
    def env(self) -> Mapping[str, str]:
        """The commands in `bin` enter the controller's container: this machine needs no Slurm and no MUNGE key."""
        plan, layout = self._plan, self._layout
        own = {"SLURM_CONF": str(layout.slurm_conf), "STEWARD_TESTBED": str(layout.root)}
        own["PATH"] = f"{layout.commands}:{os.environ.get('PATH', os.defpath)}"
        if plan.spec.steward:
            own["STEWARD_CONFIG"] = str(layout.steward_toml)
            own["STEWARD_URL"] = f"http://{plan.hosts[self._head]}:{HTTP_PORT}"
        return own

    def up(self, say: Say) -> None:
        try:
            with engine() as client:
                plan = prepare(client, self._layout, self._given, say)
                say(f"Slurm {plan.slurm} in {self._layout.root}")
                for name in (*plan.others[::-1], "head"):
                    start_machine(client, self._layout, plan, name)
            if plan.spec.accounting:
                accounting.let_in(self, _USERS)
            if slurm_versions.parse(f"slurm {plan.slurm}").wants_all_files:
                self._have_files_written()
            if not plan.spec.groups:
                self._launch_nodes(plan)
                say(f"{len(self._names)} nodes started")
            call_silent_nodes(self)
            await_ready(self)
            say("every node is idle")
        except (PortError, NotInTime) as error:
            raise BedError(f"the docker bed did not come up: {error}; logs in {self._layout.root}/log") from error

    def down(self) -> None:
        root = self._layout.root
        if not root.exists():
            return
        if any(root.iterdir()) and not self._layout.manifest.exists():
            raise BedError(f"{root} holds no bed; nothing was touched")
        with engine() as client:
            remove_all(client, self._layout.cluster)
        self._remove_files(root)

    def status(self) -> BedStatus:
        plan = self._plan
        return BedStatus(
            dir=self._layout.root,
            backend=plan.spec.backend,
            slurm=plan.slurm,
            nodes=self._nodes(plan),
            services=self._services(plan),
            faults=tuple(str(fault) for fault in faults_in_force(self._layout, plan)),
            env=self.env,
        )

    def run(self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, user: str = "") -> Completed:
        who = ["--user", user, "--env", f"USER={user}", "--env", "HOME=/"] if user else []
        enter = ["docker", "exec", "--workdir", str(self.shared), *who, self._layout.machine(self._head)]
        # The client's end does not end what it started over there: a time limit of its own does.
        limited = ["timeout", "--signal=KILL", f"{timeout_s:g}", *argv]
        done = run([*enter, *limited], timeout_s=timeout_s + _GRACE_S, check=False)
        if done.returncode in (_TIMED_OUT, 128 + 9) and done.seconds >= timeout_s:
            raise Failed(f"no end within {timeout_s:g} s, killed: {done.line()}", done)
        if check and done.returncode != 0:
            raise Failed(done.line(), done)
        return done

    def inject(self, fault: InjectedFault) -> None:
        try:
            DockerFaults(self._layout, self._plan).inject(fault)
        except PortError as error:
            raise BedError(f"{fault.kind.value}: {error}") from error

    def restore(self) -> None:
        for fault in undoing(faults_in_force(self._layout, self._plan)):
            self.inject(fault)

    def logs(self) -> Mapping[str, Path]:
        return self._layout.logs()

    @property
    def _plan(self) -> FilesPlan:
        return load_plan(self._layout)

    @property
    def _head(self) -> str:
        """The first controller whose machine runs: there commands are given."""
        heads = self._plan.heads
        if len(heads) == 1:
            return heads[0]
        with engine() as client:
            found = {str(each.name) for each in client.containers.list(filters={"name": self._layout.cluster})}
        return next((name for name in heads if self._layout.machine(name) in found), heads[0])

    @property
    def _names(self) -> tuple[NodeName, ...]:
        return names_of(self._plan)

    def _have_files_written(self) -> None:
        """So that a controller that is killed starts again, as one does that has run for longer than minutes."""

        def answers() -> bool:
            return "is UP" in self.run(["scontrol", "ping"], check=False).text

        wait_until("slurmctld answers", answers, _ANSWER_S)
        self.inject(InjectedFault(kind=FaultKind.RESTART_SLURMCTLD))
        wait_until("slurmctld answers again", answers, _ANSWER_S)

    def _launch_nodes(self, plan: FilesPlan) -> None:
        provider = DockerProvider(provider_settings(plan))
        slots = [Slot(node=node, group="main") for node in plan.spec.node_names]
        slots += [Slot(node=node, group="spare") for node in plan.spec.spare_names]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda slot: provider.launch(slot, f"bed-{slot.node}"), slots))

    def _nodes(self, plan: FilesPlan) -> tuple[NodeStatus, ...]:
        try:
            states = node_states(self)
        except Failed:
            states = {}
        found = machines(plan.cluster)
        ids = {node: instance_id(str(container.id)) for node, container in found.items()}
        return tuple(
            NodeStatus(name=name, power=power(found.get(name)), instance=ids.get(name, ""), slurm=states.get(name, ""))
            for name in self._names
        )

    def _services(self, plan: FilesPlan) -> Mapping[str, bool]:
        wanted: Iterable[str] = ["munge", "mariadb", "slurmdbd", "slurmctld"]
        wanted = [*wanted, "stewardd"] if plan.spec.steward else wanted
        with engine() as client:
            head = client.containers.get(self._layout.head)
            return {name: is_active(head, name) for name in wanted}

    def _remove_files(self, root: Path) -> None:
        """Remove the files of the bed. Those that containers wrote belong to their users: who is not root removes them
        through a container."""
        try:
            shutil.rmtree(root)
        except PermissionError:
            image = self._plan.image
            clean = ["docker", "run", "--rm", "--volume", f"{root}:{MOUNT}", "--entrypoint", "find", image]
            run([*clean, str(MOUNT), "-mindepth", "1", "-delete"], timeout_s=_CLEAN_S)
            root.rmdir()


# The bed before its first container starts, and the facts that later commands must know of it.

_COMMANDS = (
    *("sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo"),
    *("sprio", "squeue", "sreport", "srun", "sshare", "sstat", "steward", "strigger"),
)
_COMMAND = """#!/bin/sh
# Made by `steward-testbed up`.
case $PWD/ in
    {shared}/*) where=$PWD ;;
    *) where={shared} ;;
esac
tty=
if [ -t 0 ] && [ -t 1 ]; then tty=-t; fi
exec docker exec -i $tty -e TZ -e SLURM_TIME_FORMAT -e SQUEUE_FORMAT2 -w "$where" {head} {name} "$@"
"""


def prepare(client: docker.DockerClient, layout: DockerLayout, spec: BedSpec, say: Say) -> FilesPlan:
    """Image, network, directory and every file. Raises BedError."""
    if layout.root.exists() and any(layout.root.iterdir()):
        raise BedError(f"{layout.root} is not empty; bring its bed down first, or choose another --dir")
    must_have_room(client, 1 + len(spec.machine_names))
    # By id: a build for another bed moves the tag, and a bed's machines stay all alike.
    image = str(client.images.get(image_for(spec.slurm or DEFAULT_SLURM, say)).id)
    plan = FilesPlan(
        spec=spec,
        cluster=layout.cluster,
        image=image,
        network=layout.cluster,
        subnet=make_network(client, layout.cluster),
        slurm=slurm_of(client, image),
        cgroup1=client.info()["CgroupVersion"] == "1",
        accounting=spec.heads == 1,
        mounts=(f"{layout.root}:{MOUNT}", f"{layout.shared}:{layout.shared}"),
    )
    layout.root.mkdir(parents=True, exist_ok=True)
    layout.root.chmod(0o755)
    save_plan(layout, plan)
    write_commands(layout)
    for node in spec.machine_names:
        layout.checks(node).mkdir(parents=True)
        layout.kernel_log(node).touch()
    write_files(plan, layout.root)
    return plan


def start_machine(client: docker.DockerClient, layout: DockerLayout, plan: FilesPlan, name: str) -> None:
    """A machine that is no node. A controller's may speak to the engine, because there Steward makes the nodes."""
    role = "head" if name in plan.heads else "database"
    socket = engine_url().removeprefix("unix://")
    machine = ContainerSpec(
        name=layout.machine(name),
        hostname=name,
        image=plan.image,
        network=plan.network,
        address=plan.hosts[name],
        hosts=plan.hosts,
        environment=plan.environment(role),
        mounts=(*plan.mounts, *([f"{socket}:{ENGINE_SOCKET}"] if role == "head" else [])),
        labels={BED: plan.cluster},
    )
    create(client, machine).start()


def provider_settings(plan: FilesPlan) -> DockerSettings:
    """The provider that stewardd has, as seen from here."""
    return DockerSettings(
        image=plan.image,
        network=plan.network,
        cluster=plan.cluster,
        engine=engine_url(),
        mounts=plan.mounts,
        hosts=plan.host_words,
        environment=plan.environment("node"),
    )


def load_plan(layout: DockerLayout) -> FilesPlan:
    """The plan of a bed that was brought up here. Raises BedError when there is none."""
    try:
        entry: dict[str, Any] = json.loads(layout.manifest.read_text())
    except FileNotFoundError:
        remedy = f"`steward-testbed up --backend docker --dir {layout.root}` makes one"
        raise BedError(f"no bed in {layout.root}; {remedy}") from None
    subnet, mounts = IPv4Network(entry["subnet"]), tuple(entry["mounts"])
    return FilesPlan(**{**entry, "spec": spec_of(entry["spec"]), "subnet": subnet, "mounts": mounts})


def save_plan(layout: DockerLayout, plan: FilesPlan) -> None:
    """For `load_plan`."""
    layout.manifest.write_text(json.dumps(asdict(plan), indent=1, default=plain))


def write_commands(layout: DockerLayout) -> None:
    layout.commands.mkdir()
    for name in _COMMANDS:
        script = layout.commands / name
        script.write_text(_COMMAND.format(shared=layout.shared, head=layout.head, name=name))
        script.chmod(0o755)
