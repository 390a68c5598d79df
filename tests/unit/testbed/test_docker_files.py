"""The files of a docker bed, and what later commands read back of it."""

from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from steward.adapters.settings_file import load as load_settings
from steward_bed.bed import Backend, BedError, BedSpec
from steward_bed.docker import load_plan, provider_settings, save_plan
from steward_bed.docker_files import FilesPlan, write_files
from steward_bed.layout import DockerLayout
from steward_bed.providers.settings import DockerSettings, read_table
from tools.packages.contents import packages


def plan(
    root: Path, *, contain: bool = False, steward: bool = True, spares: int = 0, slurm: str = "24.11.5"
) -> FilesPlan:
    spec = BedSpec(
        dir=root, backend=Backend.DOCKER, nodes=2, spares=spares, steward=steward, contain=contain, slurm=slurm[:5]
    )
    return FilesPlan(
        spec=spec,
        cluster="bed-1",
        image="sha256:1",
        network="bed-1",
        subnet=IPv4Network("10.1.2.0/24"),
        slurm=slurm,
        cgroup1=True,
        accounting=True,
        mounts=(f"{root}:/bed",),
    )


def text(root: Path, made: FilesPlan, name: str) -> str:
    write_files(made, root)
    return (root / "etc" / name).read_text()


def test_every_machine_has_an_address_of_its_own(tmp_path: Path) -> None:
    assert plan(tmp_path, spares=1).hosts == {
        "head": "10.1.2.2", "n1": "10.1.2.11", "n2": "10.1.2.12", "s1": "10.1.2.13",
    }  # fmt: skip


def test_slurm_knows_nodes_and_spares_at_their_addresses(tmp_path: Path) -> None:
    conf = text(tmp_path, plan(tmp_path, spares=1), "slurm.conf")
    assert "SlurmctldHost=head(10.1.2.2)\n" in conf
    assert "NodeName=s1 NodeAddr=10.1.2.13 " in conf
    assert "PartitionName=main Nodes=n1,n2 Default=YES " in conf
    assert "PartitionName=spare Nodes=s1 Default=NO " in conf


def test_stewardd_accepts_its_settings_and_can_make_the_nodes(tmp_path: Path) -> None:
    made = plan(tmp_path)
    write_files(made, tmp_path)
    settings = load_settings(tmp_path / "etc" / "steward.toml", {})
    assert [(group.nodes, group.provider) for group in settings.groups] == [("n1,n2", "docker")]
    ours, seen_from_here = (
        read_table("docker", settings.provider.brought["docker"], DockerSettings),
        provider_settings(made),
    )
    assert ours.model_copy(update={"engine": seen_from_here.engine, "faults": None}) == seen_from_here


def test_settings_asked_for_win(tmp_path: Path) -> None:
    made = plan(tmp_path)
    made = replace(made, spec=replace(made.spec, settings={"repair": {"settle_s": 7.5}}))
    write_files(made, tmp_path)
    assert load_settings(tmp_path / "etc" / "steward.toml", {}).repair.settle_s == 7.5


def test_the_shim_and_the_command_are_where_steward_s_packages_put_them(tmp_path: Path) -> None:
    """The image installs the packages that a site installs, and nothing else of Steward."""
    shim = next(each for each in packages("3.11", "22.05") if "steward-shim" in each.provides)
    place = next(place for place in shim.files if place.endswith(".so"))
    assert f"optional {place} socket=" in text(tmp_path, plan(tmp_path), "plugstack.conf")
    image = Path("docker/Dockerfile").read_text()
    assert "dpkg --force-unsafe-io -i /packages/*.deb" in image
    assert "pip" not in image.partition("AS bed")[2]


def test_plain_slurm_has_no_shim(tmp_path: Path) -> None:
    assert text(tmp_path, plan(tmp_path, steward=False), "plugstack.conf") == ""


@pytest.mark.parametrize(
    ("slurm", "said"), [("22.05.8", "CgroupPlugin=cgroup/v1\n"), ("26.05.5", "CgroupPlugin=disabled\n")]
)
def test_without_contain_no_cgroup_is_touched(tmp_path: Path, slurm: str, said: str) -> None:
    assert text(tmp_path, plan(tmp_path, slurm=slurm), "cgroup.conf") == said


def test_with_contain_slurm_finds_the_hosts_controllers_where_bed_init_put_them(tmp_path: Path) -> None:
    made = plan(tmp_path, contain=True)
    assert "CgroupMountpoint=/run/cgroup1\n" in text(tmp_path, made, "cgroup.conf")
    assert "CgroupMountpoint" not in text(tmp_path, replace(made, cgroup1=False), "cgroup.conf")


def test_limits_are_in_force_only_where_they_were_asked_for(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert "AccountingStorageEnforce" not in text(tmp_path, made, "slurm.conf")
    conf = text(tmp_path, replace(made, spec=replace(made.spec, accounting=True)), "slurm.conf")
    assert "AccountingStorageEnforce=associations,limits,qos\n" in conf
    assert "PreemptParameters=min_exempt_priority=" in conf
    assert conf.count("AccountingStorageTRES=") == conf.count("AccountingStorageHost=head\n") == 1


def test_the_cluster_key_is_for_root_alone(tmp_path: Path) -> None:
    write_files(plan(tmp_path), tmp_path)
    assert (tmp_path / "etc" / "munge.key").stat().st_mode & 0o777 == 0o400


def test_a_later_command_reads_the_same_plan(tmp_path: Path) -> None:
    made = plan(tmp_path, contain=True, spares=3)
    save_plan(DockerLayout(root=tmp_path), made)
    assert load_plan(DockerLayout(root=tmp_path)) == made


def test_where_no_bed_is_the_remedy_is_told(tmp_path: Path) -> None:
    with pytest.raises(BedError, match=r"no bed in .*; `steward-testbed up --backend docker --dir .*` makes one"):
        load_plan(DockerLayout(root=tmp_path))


def test_beds_in_two_directories_have_two_names(tmp_path: Path) -> None:
    assert DockerLayout(root=tmp_path / "a").cluster != DockerLayout(root=tmp_path / "b").cluster
