"""Every configuration file of a docker bed; all containers see them in /bed/etc.

The backend calls `write_files` on the host. A bed brought up by hand (docker/compose.yml) has no backend: its
head runs this module once, with the plan in its environment.
"""

import os
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from steward.adapters.process import run
from steward_bed import accounting, fake_gpus, slurm_versions
from steward_bed.bed import Backend, BedSpec
from steward_bed.layout import PARTITIONS
from steward_bed.slurm_conf import CPUS, NO_PARTITIONS, for_groups, gres_conf, hardware, memory_mb, silent_nodes
from steward_bed.steward_toml import CHECK_INTERVAL_S, FOR_GROUPS, FOR_TESTS, PRETENDED, groups, merge, render

MOUNT = Path("/bed")
ENGINE_SOCKET = "/docker.sock"
HTTP_PORT = 6860
USERS_PORT = 6862
AGENT_PORT = 6861
READY = "ready"
_WRITTEN = "written"
"""Below the mount: what the head writes for Slurm."""
_HEAD_HOST = 2
SECOND, DATABASE = "head2", "db"
"""The machines that a bed with two heads has beside the first one's."""
_DATABASE_URL = f"mysql+pymysql://steward:bed@{DATABASE}/steward?charset=utf8mb4"
_STATE = MOUNT / "state"
"""What two slurmctlds share."""
_FIRST_NODE_HOST = 11
_CGROUP1 = Path("/run/cgroup1")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPlan:
    """The values that the files are made from.

    `cgroup1`: the host has its controllers in cgroup v1. `mounts`: what every container gets, SOURCE:TARGET.
    """

    spec: BedSpec
    cluster: str
    image: str
    network: str
    subnet: IPv4Network
    slurm: str
    cgroup1: bool
    accounting: bool
    mounts: tuple[str, ...]

    @property
    def hosts(self) -> Mapping[str, str]:
        """Name -> address of every machine; a node keeps its address when its instance changes."""
        names = enumerate(self.spec.machine_names, _FIRST_NODE_HOST)
        nodes = {str(name): str(self.subnet[number]) for number, name in names}
        others = {name: str(self.subnet[number]) for number, name in enumerate(self.others, _HEAD_HOST + 1)}
        return {"head": str(self.subnet[_HEAD_HOST]), **others, **nodes}

    @property
    def others(self) -> Sequence[str]:
        """The machines beside the first controller's that are no nodes."""
        return (SECOND, DATABASE) if self.spec.heads > 1 else ()

    @property
    def heads(self) -> Sequence[str]:
        return ("head", SECOND)[: self.spec.heads]

    @property
    def host_words(self) -> tuple[str, ...]:
        return tuple(f"{name}={address}" for name, address in self.hosts.items())

    def environment(self, role: str) -> tuple[str, ...]:
        """The environment of a container's first process; docker/README.md explains the words."""
        flags = {
            "BED_STEWARD": self.spec.steward,
            "BED_ACCOUNTING": self.accounting,
            "BED_DYNAMIC": self.spec.groups,
        }
        return (f"BED_ROLE={role}", *(f"{name}={int(value)}" for name, value in flags.items()))


def write_files(plan: FilesPlan, root: Path) -> None:
    """Write below `root`, which the containers mount; the last file tells them that all others are there."""
    etc = root / "etc"
    for name in ("etc", "log", "shared", "faults", "wrappers", "nodes"):
        (root / name).mkdir(exist_ok=True, mode=0o755)
    (root / "shared").chmod(0o1777)
    (root / "log").chmod(0o1777)
    (etc / "slurm.conf").write_text(_slurm_conf(plan))
    if plan.spec.groups:
        (root / _WRITTEN).mkdir(exist_ok=True)
        (root / _WRITTEN).chmod(0o777)  # SlurmUser, of whom the host knows nothing, replaces the file
        (root / _WRITTEN / PARTITIONS).write_text(NO_PARTITIONS)
    (etc / "node-has").write_text(f"{_has(plan)}\n")
    (etc / "gres.conf").write_text(gres_conf(plan.spec, "/dev/bed-gpu"))
    (etc / "cgroup.conf").write_text(_cgroup_conf(plan))
    shim = "optional /usr/lib/steward/steward.so socket=/run/steward/agent.sock\n"
    (etc / "plugstack.conf").write_text(shim if plan.spec.steward else "")
    (etc / "slurmdbd.conf").write_text(_SLURMDBD_CONF)
    (etc / "steward.toml").write_text(_steward_toml(plan))
    if plan.spec.gpus:
        _write_gpus(plan, root)
    (etc / "munge.key").write_bytes(secrets.token_bytes(128))
    (etc / "munge.key").chmod(0o400)
    (etc / READY).touch()


def _write_gpus(plan: FilesPlan, root: Path) -> None:
    """The pretended GPUs, and what the agents' unit is told of them."""
    fake_gpus.lay_out(root / fake_gpus.FOLDER, plan.spec.gpus)
    told = fake_gpus.environment(MOUNT / fake_gpus.FOLDER, "/etc/steward/own", "/etc/steward/instance-id")
    (root / "etc" / "agent.env").write_text("".join(f"{name}={value}\n" for name, value in told.items()))


def _slurm_conf(plan: FilesPlan) -> str:
    if plan.spec.groups:
        return "\n".join([*_controller(plan), *for_groups(f"{MOUNT}/{_WRITTEN}/{PARTITIONS}"), ""])
    spares = ",".join(plan.spec.spare_names)
    options = f"MaxTime=INFINITE State=UP DefMemPerCPU={memory_mb() // CPUS // 4}"
    lines = [
        *_controller(plan),
        *(_node(plan, name, plan.hosts[name]) for name in plan.spec.machine_names),
        f"PartitionName=main Nodes={','.join(plan.spec.node_names)} Default=YES {options}",
        *([f"PartitionName=spare Nodes={spares} Default=NO {options}"] if spares else []),
        *silent_nodes(plan.spec),
    ]
    return "\n".join([*lines, ""])


def _controller(plan: FilesPlan) -> list[str]:
    return [
        *_CONTROLLER,
        *(f"SlurmctldHost={name}({plan.hosts[name]})" for name in plan.heads),
        *_state(plan),
        plan.spec.slurm_conf,
        *(_CONTAIN if plan.spec.contain else _FREE),
        *_accounting(plan),
    ]


def _state(plan: FilesPlan) -> Iterable[str]:
    if plan.spec.heads == 1:
        return ["StateSaveLocation=/var/lib/slurm/slurmctld"]
    return [f"StateSaveLocation={_STATE}", f"SlurmctldTimeout={_BACKUP_S}"]


def _accounting(plan: FilesPlan) -> Iterable[str]:
    if not plan.accounting:
        return ["JobAcctGatherType=jobacct_gather/none"]
    gather = "JobAcctGatherType=jobacct_gather/linux"
    if not plan.spec.accounting:
        return _ACCOUNTING
    version = slurm_versions.parse(f"slurm {plan.slurm}")
    return [*accounting.slurm_conf(plan.spec, version, host="head"), gather]


def _node(plan: FilesPlan, name: str, address: str) -> str:
    return f"NodeName={name} NodeAddr={address} {_has(plan, name)} State=UNKNOWN"


def _has(plan: FilesPlan, name: str = "") -> str:
    """The node's hardware, for slurm.conf and for a node that registers by itself."""
    # A node that is to bind tasks to cores must have those that are there.
    return hardware(plan.spec, name, cpus=(os.cpu_count() or CPUS) if plan.spec.contain else CPUS)


def _cgroup_conf(plan: FilesPlan) -> str:
    if not plan.spec.contain:
        return slurm_versions.cgroup_conf(slurm_versions.parse(f"slurm {plan.slurm}"))
    # Under v2 slurmd would ask systemd for a scope of its own over D-Bus; its unit's delegated cgroup is enough.
    where = ["CgroupPlugin=cgroup/v1", f"CgroupMountpoint={_CGROUP1}"] if plan.cgroup1 else ["IgnoreSystemd=yes"]
    return "\n".join([*where, "ConstrainCores=yes", "ConstrainRAMSpace=yes", ""])


def _steward_toml(plan: FilesPlan) -> str:
    tables: dict[str, Mapping[str, object]] = {
        "cluster": {"name": plan.cluster},
        "head": {
            "listen": f"0.0.0.0:{AGENT_PORT}",
            "http": f"0.0.0.0:{HTTP_PORT}",
            "users_http": f"0.0.0.0:{USERS_PORT}",
            **({"database": _DATABASE_URL} if plan.spec.heads > 1 else {}),
        },
        "api": {"allow_plain_http": True},  # the bed's bridge has nobody else on it
        "agent": {
            "head": [f"{name}:{AGENT_PORT}" for name in plan.heads],
            "instance_id_file": "/etc/steward/instance-id",
            "board_serial_file": "/etc/steward/own/board-serial",
            "site_checks_dir": "/etc/steward/own/checks.d",
            "kernel_log": "/etc/steward/own/kernel.log",
            "check_interval_s": CHECK_INTERVAL_S,
        },
        **FOR_TESTS,
        "deep": {**FOR_TESTS["deep"], "output": str(MOUNT / "log" / "deep-%j.log")},
        "provider.docker": {
            "image": plan.image,
            "network": plan.network,
            "cluster": plan.cluster,
            "engine": f"unix://{ENGINE_SOCKET}",
            "mounts": plan.mounts,
            "hosts": plan.host_words,
            "environment": plan.environment("node"),
            "faults": str(MOUNT / "faults"),
        },
    }
    if plan.spec.hardware:
        tables |= PRETENDED
    if plan.spec.gpus:
        tables = merge(tables, fake_gpus.settings(MOUNT / fake_gpus.FOLDER))
    if plan.spec.groups:
        include = f"{MOUNT}/{_WRITTEN}/{PARTITIONS}"
        tables["capacity"] = {"provider": "docker", "slurm_include": include, **FOR_GROUPS}
    return render(merge(tables, plan.spec.settings), groups(plan.spec, "docker"))


def plan_from_environment(environ: Mapping[str, str]) -> FilesPlan:
    """The plan of a bed brought up by hand. Raises KeyError or ValueError for a missing or wrong word."""
    spec = BedSpec(
        dir=MOUNT,
        backend=Backend.DOCKER,
        nodes=int(environ["BED_NODES"]),
        steward=environ["BED_STEWARD"] == "1",
        contain=environ["BED_CONTAIN"] == "1",
    )
    return FilesPlan(
        spec=spec,
        cluster=environ["BED_NAME"],
        image=environ["BED_IMAGE"],
        network=environ["BED_NETWORK"],
        subnet=IPv4Network(environ["BED_SUBNET"]),
        slurm=run(["slurmctld", "-V"], timeout_s=10).text.split()[1],
        cgroup1=_CGROUP1.is_dir(),
        accounting=environ["BED_ACCOUNTING"] == "1",
        mounts=(f"{environ['BED_VOLUME']}:{MOUNT}",),
    )


_BACKUP_S = 10
"""After how long the second slurmctld takes control; Slurm's own default is 120 s."""
# Scheduling and other time-outs are Slurm's own defaults, so that figures mean something.
_CONTROLLER = (
    "ClusterName=steward",
    "SlurmUser=slurm",
    "AuthType=auth/munge",
    "CredType=cred/munge",
    "SlurmdSpoolDir=/var/lib/slurm/slurmd",
    f"SlurmctldLogFile={MOUNT}/log/slurmctld.log",
    f"SlurmdLogFile={MOUNT}/log/slurmd-%n.log",
    "SelectType=select/cons_tres",
    "SelectTypeParameters=CR_Core_Memory",
    "GresTypes=gpu",
    "ReturnToService=2",
    "MpiDefault=none",
    "MailProg=/bin/true",
    # The nodes pretend to have more than the machine they share.
    "SlurmdParameters=config_overrides",
)
_FREE = ("ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none")
_CONTAIN = ("ProctrackType=proctrack/cgroup", "TaskPlugin=task/cgroup,task/affinity", "PrologFlags=Alloc,Contain")
_ACCOUNTING = (
    "AccountingStorageTRES=gres/gpu",
    "AccountingStorageType=accounting_storage/slurmdbd",
    "AccountingStorageHost=head",
    "JobAcctGatherType=jobacct_gather/linux",
)
_SLURMDBD_CONF = f"""AuthType=auth/munge
DbdHost=head
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile={MOUNT}/log/slurmdbd.log
"""


if __name__ == "__main__":
    try:
        write_files(plan_from_environment(os.environ), MOUNT)
    except (KeyError, ValueError) as error:
        sys.exit(f"bed: the environment lacks or garbles {error}; docker/README.md lists the words")
