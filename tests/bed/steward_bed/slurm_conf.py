"""Slurm's configuration of a local bed; scheduling and time-outs are Slurm's defaults: figures mean something."""

import getpass
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from steward.model.ids import NodeName
from steward_bed import accounting
from steward_bed.bed import BedError, BedSpec
from steward_bed.layout import PARTITIONS, Layout
from steward_bed.slurm_versions import SlurmVersion, cgroup_conf

GPUS = 8
LOOPBACK = "127.0.0.1"
NO_PARTITIONS = "# Written by Steward; no partition yet.\n"
CPUS = 8
_MEMORY_MB = 4096
_GPUS = re.compile(r"(?:\bGres=|,)gpu:(?:(?P<kind>[A-Za-z0-9_.-]+):)?(?P<count>[1-8])\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPlan:
    """The values that slurm.conf is made from. `shim` None leaves SPANK out."""

    spec: BedSpec
    version: SlurmVersion
    controller_port: int
    slurmdbd_port: int
    node_ports: tuple[int, ...]
    shim: Path | None


def write_slurm_conf(layout: Layout, plan: SlurmPlan) -> None:
    etc = layout.slurm_conf.parent
    layout.slurm_conf.write_text(_slurm_conf(layout, plan))
    if plan.spec.groups:
        layout.partitions.write_text(NO_PARTITIONS)
    (etc / "cgroup.conf").write_text(cgroup_conf(plan.version))
    (etc / "gres.conf").write_text(gres_conf(plan.spec, f"{layout.gpu_devices}/gpu"))
    shim = "" if plan.shim is None else f"optional {plan.shim} socket={layout.agent_socket}\n"
    (etc / "plugstack.conf").write_text(shim)
    _make_gpus(layout)


def _make_gpus(layout: Layout) -> None:
    """Slurm drops a GPU without a device file, and the file must be a device: eight other names of /dev/null."""
    for number in range(GPUS):
        (layout.gpu_devices / f"gpu{number}").symlink_to("/dev/null")


def _slurm_conf(layout: Layout, plan: SlurmPlan) -> str:
    spec = plan.spec
    return "\n".join(
        [
            *_controller(layout, plan),
            *accounting.slurm_conf(
                spec, plan.version, host=LOOPBACK, port=plan.slurmdbd_port, munge_socket=layout.munge_socket
            ),
            spec.slurm_conf,
            *_nodes(plan),
            *silent_nodes(spec),
            *(for_groups(PARTITIONS) if spec.groups else _partitions(spec)),
            "",
        ]
    )


def _controller(layout: Layout, plan: SlurmPlan) -> list[str]:
    user = getpass.getuser()
    return [
        f"ClusterName=bed{plan.controller_port}",
        f"SlurmctldHost={socket.gethostname()}({LOOPBACK})",
        f"SlurmctldPort={plan.controller_port}",
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        f"StateSaveLocation={layout.controller}/slurmctld",
        f"SlurmdSpoolDir={layout.node()}/spool",
        f"SlurmctldPidFile={layout.root}/run/slurmctld.pid",
        f"SlurmdPidFile={layout.root}/run/slurmd-%n.pid",
        f"SlurmctldLogFile={layout.log('slurmctld')}",
        f"SlurmdLogFile={layout.log('slurmd-%n')}",
        f"PlugStackConfig={layout.slurm_conf.parent}/plugstack.conf",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "GresTypes=gpu",
        "ReturnToService=2",
        "MpiDefault=none",
        "MailProg=/bin/true",
        *_listening(),
        # The nodes pretend to have more than the machine they share.
        "SlurmdParameters=config_overrides",
    ]


def _listening() -> list[str]:
    """On loopback only, where that works: told so, Slurm listens where the host's own name leads, and with 127.0.1.1
    (Debian's habit) its slurmstepds do not find srun."""
    return ["CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"] if resolved_host() == LOOPBACK else []


def resolved_host() -> str:
    """Raises BedError when the machine's own name leads nowhere: Slurm would not start."""
    name = socket.gethostname()
    try:
        return socket.gethostbyname(name)
    except OSError as error:
        remedy = f"echo 127.0.1.1 {name} >> /etc/hosts"
        raise BedError(f"the host name {name} does not resolve, Slurm needs it: {remedy}") from error


def _nodes(plan: SlurmPlan) -> list[str]:
    host = socket.gethostname()
    return [
        f"NodeName={name} NodeHostname={host} NodeAddr={LOOPBACK} Port={port} {hardware(plan.spec, name)} State=UNKNOWN"
        for name, port in zip(plan.spec.machine_names, plan.node_ports, strict=True)
    ]


def _partitions(spec: BedSpec) -> list[str]:
    options = f"MaxTime=INFINITE State=UP DefMemPerCPU={memory_mb() // CPUS // 4}"
    main = spec.machine_names if spec.fixed else spec.node_names
    lines = [f"PartitionName=main Nodes={','.join(main)} Default=YES {options}"]
    if spec.spare_names and not spec.fixed:
        lines.append(f"PartitionName=spare Nodes={','.join(spec.spare_names)} Default=NO {options}")
    return lines


def silent_nodes(spec: BedSpec) -> list[str]:
    """FUTURE until `ready.call_silent_nodes`: slurmctld would spend its first minute on calling thousands of nodes that
    do not answer."""
    if not spec.silent:
        return []
    return [
        f"NodeName={spec.silent_names} NodeAddr={LOOPBACK} Port=9 {hardware(spec)} State=FUTURE",
        f"PartitionName=far Nodes={spec.silent_names} Default=NO MaxTime=INFINITE State=UP",
    ]


def for_groups(include: str) -> list[str]:
    """Nodes may register that are not named here; every partition but an empty one is Steward's to write."""
    return ["MaxNodeCount=64", "TreeWidth=65533", "PartitionName=main Default=YES State=UP", f"include {include}"]


def hardware(spec: BedSpec, name: str = "", cpus: int = CPUS) -> str:
    """The node's hardware, for slurm.conf and for a node that registers by itself. Where the bed has several kinds of
    machines, its nodes n1, n2 ... take turns; any other node is of the first kind."""
    if not spec.hardware:
        return f"CPUs={cpus} RealMemory={memory_mb()} Gres=gpu:{GPUS}"
    kinds, names = spec.hardware.split(";"), list(spec.node_names)
    return kinds[names.index(NodeName(name)) % len(kinds) if name in names else 0].strip()


def gres_conf(spec: BedSpec, device: str) -> str:
    """The GPUs of a node; their device files are `device` with a number."""
    kinds = spec.hardware.split(";")
    names = [
        f"NodeName={','.join(spec.node_names[at :: len(kinds)])} " if kinds[1:] else "" for at in range(len(kinds))
    ]
    lines = (_gres(who, hardware(spec, spec.node_names[at]), device) for at, who in enumerate(names))
    return "AutoDetect=off\n" + "".join(lines)


def _gres(who: str, words: str, device: str) -> str:
    lines, first = "", 0
    for found in _GPUS.finditer(words):
        kind, last = f" Type={found['kind']}" if found["kind"] else "", first + int(found["count"]) - 1
        lines += f"{who}Name=gpu{kind} File={device}[{first}-{last}]\n"
        first = last + 1
    return lines


def memory_mb() -> int:
    """A node's memory: small enough that no health check finds less than Slurm was told."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return min(_MEMORY_MB, there // 2)
