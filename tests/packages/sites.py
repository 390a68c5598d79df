"""The hand-made clusters on which the admins' quickstart has to work, by name."""

from collections.abc import Mapping
from pathlib import Path

from tests.packages.machines import CPUS, HEAD, LOGIN, ROOT, Cluster, Site, Unproved, await_fact, run

_SETTINGS = "/etc/steward/steward.toml"
_ORDINARY = frozenset({"build", "controller", "user", "uninstall"})
_FAILS = """#!/bin/bash
#SBATCH --output=/shared/fails.txt
exit 3
"""


def refuses_a_reboot(cluster: Cluster) -> None:
    """A site without a reboot command: Action:Reboot is refused at once, and the node goes back by an admin's word."""
    cluster.on(HEAD, "scontrol update nodename=n1 state=fail reason=Action:Reboot")
    told = "steward explain n1; steward events -n 40"
    await_fact("Action:Reboot is refused", lambda: "no command that reboots" in cluster.on(HEAD, told), 30.0)
    cluster.on(HEAD, "scontrol update nodename=n1 state=resume")
    cluster.await_service("n1")


def decides_on_a_failure(cluster: Cluster) -> None:
    """A job that fails by itself asks for a decision, which takes the shim on its node."""
    (cluster.shared / "fails.sh").write_text(_FAILS)
    cluster.on(LOGIN, "cd /shared && sbatch --auto-resume=any:2 fails.sh", user="alice")
    decided = "steward events -n 40 | grep -e 'job.decided.*exit code 3'"
    await_fact("a failed job is decided on", lambda: bool(cluster.on(HEAD, decided, check=False).strip()), 30.0)


_HAS_TWO_GPUS = """
for slot in 10 11; do
    touch /dev/fake-gpu$((slot - 10))
    mkdir -p /proc/driver/nvidia/gpus/0000:$slot:00.0
    echo Model: fake > /proc/driver/nvidia/gpus/0000:$slot:00.0/information
done
echo 'gpus 2' > /var/tmp/gpus
"""
_SHOW_GPUS = f"""
case $(hostname) in n2 | n3)
    mount -t tmpfs none /proc/driver
    {_HAS_TWO_GPUS}
    cp /shared/site/libnvidia-ml.so.1 /usr/lib/ && ldconfig
    mkdir -p /etc/systemd/system.conf.d
    printf '[Manager]\\nDefaultEnvironment=FAKE_NVML=/var/tmp/gpus\\n' > /etc/systemd/system.conf.d/gpus.conf ;;
esac
"""
"""Two GPUs in each of two nodes, made of files and the project's fake NVML."""


def _make_nvml(folder: Path) -> None:
    run("make", "-s", "-C", ROOT / "tests/fake_nvml", f"OUT={folder}")


def _expect_gpus(cluster: Cluster) -> None:
    cluster.on(HEAD, f"printf '[checks.gpu]\\nexpected_count = {{\"n[2-3]\" = 2}}\\n' >> {_SETTINGS}")


def loses_a_gpu(cluster: Cluster) -> None:
    """Each node has to have what Slurm's own Gres, and the site, say of it: a node without GPUs needs none.

    At the end an admin puts the GPUs back and resumes the nodes.
    """
    for node, left in (("n2", "0"), ("n3", "1")):
        gone = "" if left == "0" else "/0000:11:00.0"
        lost = (
            f"rm -r /proc/driver/nvidia/gpus{gone}; echo gpus {left} > /var/tmp/gpus; systemctl restart steward-agent"
        )
        cluster.on(node, lost)
    for node, said in (("n2", "no driver lists a GPU, Slurm's Gres has 2"), ("n3", "1 GPUs, 2 expected")):
        await_fact(f"{node}: {said}", lambda: said in cluster.on(HEAD, f"steward explain {node}"), 60.0)  # noqa: B023
    told = cluster.on(HEAD, "steward nodes --wrong")
    print(told)
    if "n1" in told:
        raise Unproved("a node without GPUs is told to be wrong")
    for node in ("n2", "n3"):
        cluster.on(node, f"{_HAS_TWO_GPUS}\nsystemctl restart steward-agent")
        passed = f"steward checks {node} | grep -cE '^(gpu|slurm.gres) +passed'"
        await_fact(f"{node} has its GPUs", lambda: cluster.on(HEAD, passed, check=False).strip() == "2", 60.0)  # noqa: B023
        cluster.on(HEAD, f"scontrol update nodename={node} state=resume")
        cluster.await_service(node)


_BMC = '#!/bin/sh\necho "$2" >> /var/lib/steward/bmc\n'
"""A power cycle that the test carries out."""


def _write_reboot(cluster: Cluster) -> None:
    (cluster.shared / "power-cycle").write_text(_BMC)
    (cluster.shared / "power-cycle").chmod(0o755)
    text = '[provider.static]\\nreboot = ["/shared/power-cycle", "cycle", "%%n"]\\n'
    cluster.on(HEAD, f"sed -i '/^\\[provider.static\\]/d' {_SETTINGS} && printf '{text}' >> {_SETTINGS}")


def cycles_a_lost_node(cluster: Cluster) -> None:
    """The one repair that fixed machines have is tried on a node that is lost, once, and the node serves again."""

    def cycled() -> int:
        return cluster.on(HEAD, "cat /var/lib/steward/bmc", check=False).split().count("n1")

    before = cycled()
    run("docker", "kill", f"{cluster.name}-n1")
    await_fact("n1 is power cycled", lambda: cycled() > before, 60.0)
    cluster.start("n1")
    cluster.await_service("n1")
    if cycled() != before + 1:
        raise Unproved("n1 was power cycled more than once for one loss")


_TO_OPT = """
mkdir -p /opt/slurm/bin /opt/slurm/libexec /opt/slurm/etc
mv /etc/slurm/*.conf /opt/slurm/etc/
for each in sbatch srun salloc squeue sinfo scontrol scancel sacct sacctmgr; do
    [ ! -e /usr/bin/$each ] || [ -e /opt/slurm/libexec/$each ] || mv /usr/bin/$each /opt/slurm/libexec/
    printf '#!/bin/sh\\nSLURM_CONF=${SLURM_CONF:-/opt/slurm/etc/slurm.conf} exec /opt/slurm/libexec/%s "$@"\\n' $each \\
        > /opt/slurm/bin/$each
    chmod 755 /opt/slurm/bin/$each
done
for each in slurmctld slurmd; do
    word=$(echo $each | tr a-z A-Z)_OPTIONS
    echo "$word='-f /opt/slurm/etc/slurm.conf'" > /etc/default/$each
    sed -i 's!ConditionPathExists=/etc/slurm/!ConditionPathExists=/opt/slurm/etc/!' /lib/systemd/system/$each.service
done
printf '#!/bin/sh\\necho export FROM_TASK_PROLOG=1\\n' > /opt/slurm/etc/task-prolog
chmod 755 /opt/slurm/etc/task-prolog
echo 'OPTIONS="--socket=/run/munge/slurms.socket"' > /etc/default/munge
mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\\nDefaultEnvironment=TZ=NST3:30NDT LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8\\n' \\
    > /etc/systemd/system.conf.d/abroad.conf
"""
"""Slurm's commands and configuration below /opt/slurm, a munged on another socket, another time zone and language."""


SITES: Mapping[str, Site] = {
    "ordinary": Site(story=refuses_a_reboot),
    "root": Site(
        conf={"SlurmUser": "root"},
        prepare="""
# From Debian 13 on the unit of slurmctld names a user.
mkdir -p /etc/systemd/system/slurmctld.service.d
printf '[Service]\nUser=root\nGroup=root\n' > /etc/systemd/system/slurmctld.service.d/root.conf
""",
    ),
    "configless": Site(
        conf={"SlurmctldParameters": "enable_configless"},
        prepare="""
case $(hostname) in n*)
    rm /etc/slurm/slurm.conf /etc/slurm/cgroup.conf
    mkdir -p /etc/systemd/system/slurmd.service.d
    printf '[Unit]\nConditionPathExists=\n' > /etc/systemd/system/slurmd.service.d/configless.conf
    echo 'SLURMD_OPTIONS="--conf-server head:6817"' > /etc/default/slurmd ;;
esac
""",
        pages=_ORDINARY | {"configless"},
    ),
    "mixed": Site(
        conf={"GresTypes": "gpu"},
        nodes=(
            "NodeName=n1 CPUs=2 RealMemory=200 State=UNKNOWN",
            "NodeName=n[2-3] CPUs=2 RealMemory=200 Gres=gpu:2 State=UNKNOWN",
        ),
        files={"gres.conf": "NodeName=n[2-3] Name=gpu File=/dev/fake-gpu[0-1]\n"},
        prepare=_SHOW_GPUS,
        make=_make_nvml,
        people=_expect_gpus,
        story=loses_a_gpu,
    ),
    "elsewhere": Site(
        conf={
            "AuthInfo": "socket=/run/munge/slurms.socket",
            "PrivateData": "jobs,nodes,usage",
            "TaskProlog": "/opt/slurm/etc/task-prolog",
            "ReturnToService": "1",
        },
        nodes=("Include parts.conf",),
        files={"parts.conf": f"{CPUS[0]}\nPlugStackConfig=/opt/slurm/etc/plugins.conf\n"},
        prepare=_TO_OPT,
    ),
    "fixed": Site(people=_write_reboot, story=cycles_a_lost_node),
}
