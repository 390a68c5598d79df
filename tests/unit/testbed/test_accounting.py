"""The files of a bed with accounting."""

import getpass
from dataclasses import replace
from pathlib import Path

from steward_bed import accounting
from steward_bed.bed import BedSpec
from steward_bed.layout import Layout
from steward_bed.local_controller import services_of
from steward_bed.slurm_conf import SlurmPlan, gres_conf, hardware, write_slurm_conf
from steward_bed.slurm_versions import parse


def spec(root: Path, *, accounting: bool = True, hardware: str = "") -> BedSpec:
    return BedSpec(dir=root, nodes=2, steward=False, accounting=accounting, hardware=hardware)


def slurm_conf(root: Path, made: BedSpec) -> list[str]:
    layout = Layout(root=root)
    layout.make()
    version = parse("slurm-wlm 22.05.8")
    plan = SlurmPlan(spec=made, version=version, controller_port=1, slurmdbd_port=2, node_ports=(3, 4), shim=None)
    write_slurm_conf(layout, plan)
    return layout.slurm_conf.read_text().splitlines()


def test_slurm_enforces_limits_and_lets_qos_preempt(tmp_path: Path) -> None:
    lines = slurm_conf(tmp_path, spec(tmp_path))
    assert "AccountingStorageEnforce=associations,limits,qos" in lines
    assert "AccountingStoragePort=2" in lines
    assert f"AccountingStoragePass={tmp_path}/run/munge.sock" in lines
    assert "PreemptType=preempt/qos" in lines
    assert not any(line.startswith("PreemptParameters") for line in lines), "22.05 would not start"


def test_a_bed_without_accounting_has_no_word_of_it(tmp_path: Path) -> None:
    text = "\n".join(slurm_conf(tmp_path, spec(tmp_path, accounting=False)))
    assert not any(word in text for word in ("Accounting", "Preempt", "Priority"))
    assert services_of(spec(tmp_path, accounting=False)) == ["munged", "slurmctld"]


def test_each_type_of_gpu_is_counted_besides_all_of_them(tmp_path: Path) -> None:
    lines = slurm_conf(tmp_path, spec(tmp_path, hardware="CPUs=48 RealMemory=196608 Gres=gpu:l4:4"))
    assert "AccountingStorageTRES=gres/gpu,gres/gpu:l4" in lines
    assert sum(" CPUs=48 RealMemory=196608 Gres=gpu:l4:4 State=UNKNOWN" in line for line in lines) == 2


def test_a_node_has_device_files_for_the_gpus_that_slurm_is_told_of(tmp_path: Path) -> None:
    little = spec(tmp_path)
    assert gres_conf(little, "/dev/gpu") == "AutoDetect=off\nName=gpu File=/dev/gpu[0-7]\n"
    four = replace(little, hardware="CPUs=4 Gres=gpu:l4:4")
    assert gres_conf(four, "/dev/gpu") == "AutoDetect=off\nName=gpu Type=l4 File=/dev/gpu[0-3]\n"
    assert gres_conf(replace(little, hardware="CPUs=4"), "/dev/gpu") == "AutoDetect=off\n"
    assert hardware(four) == "CPUs=4 Gres=gpu:l4:4"


def test_nodes_of_several_kinds_take_turns(tmp_path: Path) -> None:
    mixed = spec(tmp_path, hardware="CPUs=4 Gres=gpu:l4:4; CPUs=8")
    lines = [line for line in slurm_conf(tmp_path, mixed) if line.startswith("NodeName=")]
    assert ["Gres=gpu:l4:4" in line for line in lines] == [True, False]
    assert gres_conf(mixed, "/dev/gpu") == "AutoDetect=off\nNodeName=n1 Name=gpu Type=l4 File=/dev/gpu[0-3]\n"


def test_nobody_else_may_read_how_slurmdbd_reaches_its_database(tmp_path: Path) -> None:
    layout = Layout(root=tmp_path)
    layout.make()
    accounting.write_slurmdbd_conf(layout, 6000)
    path = tmp_path / "etc" / "slurmdbd.conf"
    assert path.stat().st_mode & 0o777 == 0o600
    assert f"SlurmUser={getpass.getuser()}" in path.read_text().splitlines()
    assert layout.database.parent.stat().st_mode & 0o777 == 0o700


def test_the_database_is_reached_by_its_socket_alone(tmp_path: Path) -> None:
    argv = accounting.database_argv("/usr/sbin/mariadbd", Layout(root=tmp_path))
    assert "--skip-networking" in argv
    assert f"--socket={tmp_path}/private/database.sock" in argv
