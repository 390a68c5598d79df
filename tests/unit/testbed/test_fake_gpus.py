"""The pretended GPUs of a bed, as far as they are files."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters.node.nvml import Nvml
from steward.adapters.node.probe import LocalProbes
from steward.model.probe import ReadFiles
from steward_bed import fake_gpus

LISTED = ("0000:10:00.0",) * 4


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("bed") / "gpu"
    where.mkdir()
    fake_gpus.lay_out(where, 4)
    return where


@pytest.fixture
def node(gpus: Path, tmp_path: Path) -> Iterator[Nvml]:
    """Asks as the agent of a node does whose own directory is `tmp_path`."""
    env = fake_gpus.environment(gpus, tmp_path, tmp_path / "instance_id")
    child = (sys.executable, "-P", "-m", "steward.adapters.node.nvml_child")
    nvml = Nvml(("env", *(f"{name}={value}" for name, value in env.items()), *child))
    yield nvml
    nvml.let_go()


def test_the_pretended_proc_has_the_driver_and_all_else_of_the_real_one(gpus: Path) -> None:
    seen = LocalProbes(skew_s=lambda: None, proc=gpus / "proc").look(
        ReadFiles(paths=("/proc/version", "/proc/self/mounts"))
    )
    assert seen.files["/proc/version"] == Path("/proc/version").read_text()
    assert seen.files["/proc/self/mounts"]
    assert len(list((gpus / "proc/driver/nvidia/gpus").iterdir())) == 4


def test_a_fault_is_seen_until_it_is_mended_and_another_machine_has_other_gpus(node: Nvml, tmp_path: Path) -> None:
    (tmp_path / "instance_id").write_text("i-1\n")
    fake_gpus.write_fault(tmp_path, "gpus 4, 1 error 15")
    assert fake_gpus.has_fault(tmp_path)
    broken = node.look(LISTED, 10.0).gpus or ()
    assert [gpu.code for gpu in broken] == [0, 15, 0, 0]
    fake_gpus.mend(tmp_path)
    fake_gpus.mend(tmp_path)
    assert not fake_gpus.has_fault(tmp_path)
    (tmp_path / "instance_id").write_text("i-2\n")
    fake_gpus.write_fault(tmp_path, "gpus 4")
    well = node.look(LISTED, 10.0).gpus or ()
    assert not any(gpu.error for gpu in well)
    assert {gpu.uuid for gpu in well}.isdisjoint(gpu.uuid for gpu in broken)
