"""A docker bed before its first container starts, and the facts that later commands must know of it."""

import json
from dataclasses import asdict
from ipaddress import IPv4Network
from typing import Any

import docker

from steward.adapters.providers.docker import BED, Machine, create
from steward.model.settings.providers import DockerProvider as DockerSettings
from steward.testbed.bed import BedError, BedSpec, Say, plain, spec_of
from steward.testbed.docker_engine import DEFAULT_SLURM, engine_url, image_for, make_network, must_have_room, slurm_of
from steward.testbed.docker_files import ENGINE_SOCKET, MOUNT, Plan, write_files
from steward.testbed.layout import DockerLayout

_COMMANDS = (
    *("sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo"),
    *("sprio", "squeue", "sreport", "srun", "sshare", "sstat", "steward", "strigger"),
)
_COMMAND = """#!/bin/sh
# Made by `steward testbed up`.
case $PWD/ in
    {shared}/*) where=$PWD ;;
    *) where={shared} ;;
esac
tty=
if [ -t 0 ] && [ -t 1 ]; then tty=-t; fi
exec docker exec -i $tty -w "$where" {head} {name} "$@"
"""


def prepare(client: docker.DockerClient, layout: DockerLayout, spec: BedSpec, say: Say) -> Plan:
    """Image, network, directory and every file. Raises BedError."""
    if layout.root.exists() and any(layout.root.iterdir()):
        raise BedError(f"{layout.root} is not empty; bring its bed down first, or choose another --dir")
    must_have_room(client, 1 + len(spec.machine_names))
    # By id: a build for another bed moves the tag, and a bed's machines stay all alike.
    image = str(client.images.get(image_for(spec.slurm or DEFAULT_SLURM, say)).id)
    plan = Plan(
        spec=spec,
        cluster=layout.cluster,
        image=image,
        network=layout.cluster,
        subnet=make_network(client, layout.cluster),
        slurm=slurm_of(client, image),
        cgroup1=client.info()["CgroupVersion"] == "1",
        accounting=True,
        mounts=(f"{layout.root}:{MOUNT}", f"{layout.shared}:{layout.shared}"),
    )
    layout.root.mkdir(parents=True, exist_ok=True)
    layout.root.chmod(0o755)
    save(layout, plan)
    write_commands(layout)
    for node in spec.machine_names:
        layout.checks(node).mkdir(parents=True)
        layout.kernel_log(node).touch()
    write_files(plan, layout.root)
    return plan


def start_head(client: docker.DockerClient, layout: DockerLayout, plan: Plan) -> None:
    """The controller's machine; it may speak to the engine, because there Steward makes the nodes."""
    socket = engine_url().removeprefix("unix://")
    machine = Machine(
        name=layout.head,
        hostname="head",
        image=plan.image,
        network=plan.network,
        address=plan.hosts["head"],
        hosts=plan.hosts,
        environment=plan.environment("head"),
        mounts=(*plan.mounts, f"{socket}:{ENGINE_SOCKET}"),
        labels={BED: plan.cluster},
    )
    create(client, machine).start()


def provider_settings(plan: Plan) -> DockerSettings:
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


def load(layout: DockerLayout) -> Plan:
    """The plan of a bed that was brought up here. Raises BedError when there is none."""
    try:
        entry: dict[str, Any] = json.loads(layout.manifest.read_text())
    except FileNotFoundError:
        remedy = f"`steward testbed up --backend docker --dir {layout.root}` makes one"
        raise BedError(f"no bed in {layout.root}; {remedy}") from None
    subnet, mounts = IPv4Network(entry["subnet"]), tuple(entry["mounts"])
    return Plan(**{**entry, "spec": spec_of(entry["spec"]), "subnet": subnet, "mounts": mounts})


def save(layout: DockerLayout, plan: Plan) -> None:
    """For `load`."""
    layout.manifest.write_text(json.dumps(asdict(plan), indent=1, default=plain))


def write_commands(layout: DockerLayout) -> None:
    layout.commands.mkdir()
    for name in _COMMANDS:
        script = layout.commands / name
        script.write_text(_COMMAND.format(shared=layout.shared, head=layout.head, name=name))
        script.chmod(0o755)
