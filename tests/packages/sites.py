"""The hand-made clusters on which the admins' quickstart has to work, by name."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.packages.machines import HEAD, LOGIN, ROOT, Cluster, Site, Unproved, await_fact, run, say

_SETTINGS = "/etc/steward/steward.toml"
_ORDINARY = frozenset({"build", "controller", "user"})
_FAILS = """#!/bin/bash
#SBATCH --output=/shared/fails.txt
exit 3
"""


def refuses_a_reboot(cluster: Cluster) -> None:
    """A site without a reboot command: Action:Reboot is refused at once, and the node goes back by an admin's word."""
    cluster.on(HEAD, "scontrol update nodename=n1 state=fail reason=Action:Reboot")
    told = "steward explain n1; steward events -n 40"
    await_fact("Action:Reboot is refused", lambda: "reboot command" in cluster.on(HEAD, told), 30.0)
    cluster.on(HEAD, "scontrol update nodename=n1 state=resume")
    cluster.await_service("n1")


def decides_on_a_failure(cluster: Cluster) -> None:
    """A job that fails by itself asks for a decision, which takes the shim on its node."""
    (cluster.shared / "fails.sh").write_text(_FAILS)
    cluster.on(LOGIN, "cd /shared && sbatch --auto-resume=any:2 fails.sh", user="alice")
    decided = "steward events -n 40 | grep -e 'job.decided.*exit code 3'"
    await_fact("a failed job is decided on", lambda: bool(cluster.on(HEAD, decided, check=False).strip()), 30.0)


_SHOW_GPUS = """
case $(hostname) in n2 | n3)
    mount -t tmpfs none /proc/driver
    for slot in 10 11; do
        touch /dev/fake-gpu$((slot - 10))
        mkdir -p /proc/driver/nvidia/gpus/0000:$slot:00.0
        echo Model: fake > /proc/driver/nvidia/gpus/0000:$slot:00.0/information
    done
    cp /shared/site/libnvidia-ml.so.1 /usr/lib/ && ldconfig
    mkdir -p /etc/systemd/system.conf.d
    printf '[Manager]\\nDefaultEnvironment=FAKE_NVML=/var/tmp/gpus\\n' > /etc/systemd/system.conf.d/gpus.conf
    echo 'gpus 2' > /var/tmp/gpus ;;
esac
"""
"""Two GPUs in each of two nodes, made of files and the project's fake NVML."""


def _make_nvml(folder: Path) -> None:
    run("make", "-s", "-C", ROOT / "tests/fake_nvml", f"OUT={folder}")


def _verdicts(cluster: Cluster) -> Mapping[str, str]:
    said = cluster.on(HEAD, "steward --json nodes")
    return {node["name"]: node["verdict"] for node in json.loads(said)}


def loses_a_gpu(cluster: Cluster) -> None:
    """Each node has to have what Slurm's own Gres says of it: one without GPUs needs none."""
    cluster.on("n3", "rm -r /proc/driver/nvidia; echo 'gpus 0' > /var/tmp/gpus; systemctl restart steward-agent")
    say(str(_verdicts(cluster)))
    await_fact("n3 is not FINE", lambda: "Gres" in cluster.on(HEAD, "steward explain n3"), 60.0)
    print(cluster.on(HEAD, "steward explain n3"))
    if (verdicts := _verdicts(cluster))["n1"] != "fine":
        raise Unproved(f"a node without GPUs: {verdicts}")


_BMC = '#!/bin/sh\necho "$2" >> /shared/bmc\n'
"""A power cycle that the test carries out."""


def _write_reboot(cluster: Cluster) -> None:
    (cluster.shared / "power-cycle").write_text(_BMC)
    (cluster.shared / "power-cycle").chmod(0o755)
    (cluster.shared / "bmc").touch()
    (cluster.shared / "bmc").chmod(0o666)
    text = '[provider.static]\\nreboot = ["/shared/power-cycle", "cycle", "%%n"]\\n'
    cluster.on(HEAD, f"sed -i '/^\\[provider.static\\]/d' {_SETTINGS} && printf '{text}' >> {_SETTINGS}")


def cycles_a_lost_node(cluster: Cluster) -> None:
    """The one repair that fixed machines have is tried on a node that is lost, and the node serves again."""
    cluster.await_service("n1")
    run("docker", "kill", f"{cluster.name}-n1")
    await_fact("n1 is power cycled", lambda: "n1" in (cluster.shared / "bmc").read_text(), 240.0)
    cluster.start("n1")
    cluster.await_service("n1")


SITES: Mapping[str, Site] = {
    "ordinary": Site(story=refuses_a_reboot),
    "root": Site(conf={"SlurmUser": "root"}),
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
        story=loses_a_gpu,
    ),
    "fixed": Site(people=_write_reboot, story=cycles_a_lost_node),
}
