"""The shipped lifecycle scripts on real machines: users, real units, a node that registers itself."""

import json
import shutil
from pathlib import Path

from tests.e2e.capacity import CLUSTER, EXTRA, PARTITION, Capacity, wish
from tests.e2e.on_node import on_node

SHIPPED = Path(__file__).resolve().parents[2] / "lifecycle-scripts"
NODE = "extra-1"
CONFIG = "/opt/ml/config"
SLURMD = "systemctl show --property=MainPID --value slurmd"
# A step of the site's own, the first to run: the environment is kept for a run by hand, and the image's slurmd, which
# registers by itself, is taken away once. All that is left of it is that Slurm knows the node already, with its GPUs.
BARE = """\
[[ ! -e /root/setup-environment ]] || exit 0
export -p >/root/setup-environment
systemctl disable --quiet --now slurmd
rm /etc/systemd/system/slurmd.service.d/bed.conf
"""
AGAIN = ". /root/setup-environment && cd /var/lib/steward-agent/scripts && ./on_create.sh"
# Whatever the steps may have written, and the process that a needless restart would replace.
PICTURE = f"""\
cat /etc/passwd /etc/group /etc/fstab {CONFIG}/*.json
find /etc/systemd/system /etc/shadow /etc/gshadow {CONFIG} ! -type d -printf '%p %l %T@\\n' | sort
{SLURMD}
"""


def said(capacity: Capacity, script: str) -> str:
    """What bash says on the node's machine."""
    return on_node(capacity.bed, NODE, "bash", "-c", script)


def shipped(capacity: Capacity) -> str:
    """The source of a site that took the scripts as they are, and gave them users and parameters."""
    source = capacity.dir / "lifecycle"
    shutil.copytree(SHIPPED, source)
    shutil.copy(source / "shared_users.example.txt", source / "shared_users.txt")
    (source / "provisioning_parameters.json").write_text(json.dumps({"slurmd_gres": "gpu:8"}))
    (source / "steps" / "05-bare.sh").write_text(BARE)
    return f"file://{source}"


def test_the_shipped_scripts_make_a_node_of_a_machine_and_change_nothing_when_run_again(capacity: Capacity) -> None:
    scripts = {"LifeCycleConfig": {"SourceS3Uri": shipped(capacity), "OnCreate": "on_create.sh"}}
    capacity.create(wish(1, minimum=1, name=EXTRA, **scripts))
    capacity.wait_group("InService", 1, name=EXTRA)
    capacity.wait("it takes jobs", lambda: capacity.idle_nodes() == {NODE})

    log = said(capacity, "cat /var/log/provision/provisioning.log")
    for step in sorted((SHIPPED / "steps").glob("*.sh")):
        assert f"step {step.stem} done" in log
    assert "The lifecycle scripts succeeded." in log
    assert said(capacity, "id -u anna; id -g anna; id -u ben").split() == ["3001", "3001", "3002"]

    described = json.loads(said(capacity, f"cat {CONFIG}/resource_config.json"))
    assert described["ClusterConfig"]["ClusterName"] == CLUSTER
    group = next(each for each in described["InstanceGroups"] if each["Name"] == EXTRA)
    assert group["Instances"][0]["InstanceId"] == capacity.instances(EXTRA)[NODE]
    parameters = json.loads(said(capacity, f"cat {CONFIG}/provisioning_parameters.json"))
    assert parameters["slurmd_gres"] == "gpu:8"
    assert EXTRA in {each["instance_group_name"] for each in parameters["worker_groups"]}

    assert f"-N {NODE} -Z --conf Feature={EXTRA}" in said(capacity, f"tr '\\0' ' ' </proc/$({SLURMD})/cmdline")
    assert said(capacity, "systemctl is-enabled slurmd") == "enabled\n"

    before = said(capacity, PICTURE)
    assert "step 90-slurmd done" in said(capacity, AGAIN)
    assert said(capacity, PICTURE) == before

    job = capacity.submit(capacity.script("hello.sh", "srun id anna\n"), "--gres=gpu:8", "-p", PARTITION)
    assert capacity.wait_end(job).state == "COMPLETED"
    assert capacity.lines("out") == ["uid=3001(anna) gid=3001(anna) groups=3001(anna)"]
