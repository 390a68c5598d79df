"""The shipped lifecycle scripts, each run for real with pretended system programs and a folder that stands for /."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steward.adapters.process import Completed, run

SHIPPED = Path(__file__).resolve().parents[3] / "lifecycle-scripts"
CONFIG = {"ClusterConfig": {"ClusterName": "lab"}, "SlurmConfig": {"PrimaryControllerIp": "127.0.0.1"}}

PROGRAMS = {
    "getent": 'case $1 in ahosts) exec /usr/bin/getent "$@" ;; esac; grep "^$2:" "$ROOT/etc/$1" || exit 2',
    "useradd": 'echo "${@: -1}:x:$2:$2::/home:/bin/bash" >> "$ROOT/etc/passwd"',
    "groupadd": 'echo "$3:x:$2:" >> "$ROOT/etc/group"',
    "findmnt": 'cat "$ROOT/mounts${@: -1}" 2>/dev/null || exit 1',
    "mount": 'while read -r what where rest; do if [[ $where == "$1" ]]; then mkdir -p "$(dirname "$ROOT/mounts$1")"; '
    'echo "$what" > "$ROOT/mounts$1"; fi; done < "$ROOT/etc/fstab"',
    "mount.nfs": "true",
    "mount.lustre": "true",
    "slurmd": "true",
    "pgrep": 'grep -q "^slurmd" "$ROOT/calls"',
    "scontrol": 'case "$2 $3" in "slurmd "|"node known") ;; "node seen") echo "State=IDLE+DRAIN+DYNAMIC_NORM" ;; '
    "*) exit 1 ;; esac",
    "systemctl": "true",
    "apt-get": 'if [[ "$*" == *" install "* ]]; then ln -sf /bin/true "$ROOT/bin/docker"; fi',
}


@dataclass
class Machine:
    root: Path
    parameters: dict[str, object] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("etc", "bin"):
            (self.root / folder).mkdir()
        for name in ("passwd", "group", "fstab"):
            (self.root / "etc" / name).touch()
        for name, body in PROGRAMS.items():
            self.program(name, body)
        self.scripts = self.root / "scripts"
        shutil.copytree(SHIPPED, self.scripts)

    def program(self, name: str, body: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> "$ROOT/calls"\n{body}\n')
        path.chmod(0o755)

    def run(self, *steps: str, check: bool = True) -> Completed:
        config = self.root / "config"
        config.mkdir(exist_ok=True)
        (config / "resource_config.json").write_text(json.dumps(CONFIG))
        (config / "provisioning_parameters.json").write_text(json.dumps(self.parameters))
        env = {
            "ROOT": str(self.root),
            "SLURM_CONF": "",
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "SAGEMAKER_RESOURCE_CONFIG_PATH": str(config / "resource_config.json"),
            "STEWARD_NODE": "worker-1",
            "STEWARD_GROUP": "worker",
            "STEWARD_FEATURES": "worker,steward",
            "STEWARD_ROLE": "Compute",
            **self.env,
        }
        return run(["bash", str(self.scripts / "on_create.sh"), *steps], env=env, timeout_s=60, check=check)

    def calls(self, name: str) -> list[str]:
        file = self.root / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.removeprefix(f"{name} ") for line in lines if line.split(" ")[0] == name]

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def picture(self) -> dict[str, bytes]:
        """Every file of the machine but for what the pretended programs note."""
        return {str(p): p.read_bytes() for p in self.root.rglob("*") if p.is_file() and p.name != "calls"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "machine").mkdir()
    return Machine(tmp_path / "machine")


def everything(machine: Machine) -> None:
    machine.parameters = {
        "nfs_server": "nfs1",
        "nfs_export": "/srv",
        "fsx_dns_name": "fs1",
        "fsx_mountname": "abc",
        "containers": ["docker"],
    }
    (machine.scripts / "shared_users.txt").write_text("# ours\nanna, 3001, /home/anna\n\nben,3002,/home/ben\n")
    (machine.root / "etc/fstab").write_text("# static\n/dev/sda1 / ext4 defaults 0 1\nold:/x /shared nfs ro 0 0\n")
    (machine.root / "run/systemd/system").mkdir(parents=True)


def test_a_second_run_changes_nothing(machine: Machine) -> None:
    everything(machine)
    machine.run()
    once = machine.picture()
    assert "step 90-slurmd done" in machine.run().text
    assert machine.picture() == once
    assert len(machine.calls("useradd")) == 2
    assert len(machine.calls("mount")) == 2
    assert machine.calls("systemctl").count("restart slurmd") == 1
    assert machine.calls("systemctl").count("start slurmd") == 1


def test_a_machine_for_which_nothing_is_asked_only_gets_its_slurmd(machine: Machine) -> None:
    machine.run()
    assert machine.read("etc/fstab") == ""
    assert machine.calls("useradd") == machine.calls("mount") == machine.calls("apt-get") == []
    assert len(machine.calls("slurmd")) == 1


def test_the_first_step_that_fails_ends_it_with_its_status(machine: Machine) -> None:
    (machine.scripts / "steps/15-broken.sh").write_text("exit 9\n")
    done = machine.run(check=False)
    assert done.returncode == 9
    assert "step 15-broken failed with status 9" in done.text
    assert machine.calls("slurmd") == []


def test_a_cluster_that_is_not_described_in_time_is_told(machine: Machine) -> None:
    machine.env = {"SAGEMAKER_RESOURCE_CONFIG_PATH": "/nowhere/resource_config.json", "WAIT_FOR_CONFIG_S": "1"}
    done = machine.run("10-wait-for-config", check=False)
    assert done.returncode == 1
    assert "not within 1 s: /nowhere/resource_config.json" in done.error_text


def test_users_are_made_with_their_ids(machine: Machine) -> None:
    everything(machine)
    machine.run("20-users")
    assert machine.calls("useradd") == [
        "--uid 3001 --gid anna --no-create-home --home-dir /home/anna --shell /bin/bash anna",
        "--uid 3002 --gid ben --no-create-home --home-dir /home/ben --shell /bin/bash ben",
    ]


def test_a_user_who_has_another_id_here_is_an_error(machine: Machine) -> None:
    everything(machine)
    (machine.root / "etc/passwd").write_text("ben:x:1500:1500::/home/ben:/bin/bash\n")
    done = machine.run("20-users", check=False)
    assert done.returncode == 1
    assert "ben has uid 1500 here and 3002" in done.error_text


@pytest.mark.parametrize("line", ["root,0,/root", "a b;c,3001,/home/x", "anna,3001", "anna,3001,/home/anna,more"])
def test_a_line_that_is_no_user_is_an_error(machine: Machine, line: str) -> None:
    (machine.scripts / "shared_users.txt").write_text(line + "\n")
    assert machine.run("20-users", check=False).returncode == 1
    assert machine.calls("useradd") == []


def test_file_systems_are_mounted_and_remembered_once(machine: Machine) -> None:
    everything(machine)
    machine.run("30-shared-filesystem")
    lines = machine.read("etc/fstab").splitlines()
    assert lines[:2] == ["# static", "/dev/sda1 / ext4 defaults 0 1"]
    assert [line.split()[:3] for line in lines[2:]] == [
        ["fs1@tcp:/abc", "/fsx", "lustre"],
        ["nfs1:/srv", "/shared", "nfs"],
    ]
    assert sorted(machine.calls("mount")) == ["/fsx", "/shared"]


def test_a_mount_point_that_is_taken_is_not_mounted_over(machine: Machine) -> None:
    everything(machine)
    (machine.root / "mounts").mkdir()
    (machine.root / "mounts/fsx").write_text("other:/y\n")
    done = machine.run("30-shared-filesystem", check=False)
    assert "/fsx is taken by other:/y" in done.error_text


def test_an_image_without_the_client_is_told(machine: Machine) -> None:
    everything(machine)
    (machine.root / "bin/mount.lustre").unlink()
    assert "no Lustre client" in machine.run("30-shared-filesystem", check=False).error_text


def test_containers_are_installed_only_where_they_are_missing(machine: Machine) -> None:
    machine.parameters = {"containers": ["enroot"]}
    machine.program("enroot", "true")
    assert "enroot is there" in machine.run("40-containers").text
    assert machine.calls("apt-get") == []


def test_a_word_that_is_no_container_runtime_is_an_error(machine: Machine) -> None:
    machine.parameters = {"containers": ["rkt"]}
    assert "'rkt' is neither" in machine.run("40-containers", check=False).error_text


def test_slurmd_registers_as_a_drained_dynamic_node_of_its_group(machine: Machine) -> None:
    machine.parameters = {"slurmctld_port": 7001, "slurmd_gres": "gpu:2"}
    machine.run("90-slurmd")
    assert machine.calls("slurmd") == [
        "-N worker-1 --conf-server 127.0.0.1:7001 -Z --conf Feature=worker,steward State=DRAIN Gres=gpu:2"
    ]


def test_slurmd_of_a_node_that_slurm_conf_names_is_started_plainly(machine: Machine) -> None:
    (machine.root / "etc/slurm").mkdir()
    (machine.root / "etc/slurm/slurm.conf").touch()
    machine.env = {"STEWARD_NODE": "known"}
    machine.run("90-slurmd")
    assert machine.calls("slurmd") == ["-N known"]


def test_slurmd_of_a_node_that_registered_itself_before_does_so_again(machine: Machine) -> None:
    (machine.root / "etc/slurm").mkdir()
    (machine.root / "etc/slurm/slurm.conf").touch()
    machine.env = {"STEWARD_NODE": "seen"}
    machine.run("90-slurmd")
    assert machine.calls("slurmd") == ["-N seen -Z --conf Feature=worker,steward State=DRAIN"]


def test_a_configless_cluster_with_static_nodes_says_so(machine: Machine) -> None:
    machine.parameters = {"dynamic_nodes": False}
    machine.run("90-slurmd")
    assert machine.calls("slurmd") == ["-N worker-1 --conf-server 127.0.0.1:6817"]


@pytest.mark.parametrize("role", ["Login", "Controller"])
def test_other_roles_run_no_slurmd(machine: Machine, role: str) -> None:
    machine.env = {"STEWARD_ROLE": role}
    assert f"a {role} node runs no slurmd" in machine.run("90-slurmd").text
    assert machine.calls("slurmd") == []


def test_where_systemd_runs_slurmd_is_its_service(machine: Machine) -> None:
    (machine.root / "run/systemd/system").mkdir(parents=True)
    machine.run("90-slurmd")
    unit = machine.read("etc/systemd/system/slurmd.service.d/steward.conf")
    slurmd = machine.root / "bin/slurmd"
    words = '"-N" "worker-1" "--conf-server" "127.0.0.1:6817" "-Z" "--conf" "Feature=worker,steward State=DRAIN"'
    assert f"Type=simple\nExecStart=\nExecStart={slurmd} -D -s {words}\n" in unit
    assert machine.calls("slurmd") == []


def test_a_service_whose_slurmd_gives_up_right_after_its_start_fails_the_step(machine: Machine) -> None:
    (machine.root / "run/systemd/system").mkdir(parents=True)
    machine.program("scontrol", "exit 1")
    machine.env = {"SLURMD_S": "1"}
    done = machine.run("90-slurmd", check=False)
    assert done.returncode == 1
    assert "not within 1 s: slurmd answers" in done.error_text
