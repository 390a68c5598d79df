"""What the agent runs for a light repair: allowed units only, and no GPU that somebody uses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steward.adapters.node.mender import NodeMender, same_gpu
from steward.ports import Permanent, Retryable

GPU = "GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"
SMI = """#!/bin/sh
echo "smi $*" >> {log}
case "$*" in
*uuid,pci*) echo "{gpu}, 00000000:4B:00.0" ;;
*compute-apps*) cat {users} ;;
*gpu-reset*) exit {status} ;;
esac
"""


class Bench:
    def __init__(self, root: Path) -> None:
        self.log, self.users = root / "log", root / "users"
        self.root, self.let_go = root, 0
        self.users.write_text("")

    def mender(self, *units: str, status: int = 0) -> NodeMender:
        smi, systemctl = self.root / "nvidia-smi", self.root / "systemctl"
        smi.write_text(SMI.format(log=self.log, users=self.users, gpu=GPU, status=status))
        systemctl.write_text(f'#!/bin/sh\necho "systemctl $*" >> {self.log}\nexit {status}\n')
        for program in (smi, systemctl):
            program.chmod(0o755)
        return NodeMender(units=units, let_go=self._let_go, systemctl=str(systemctl), nvidia_smi=str(smi))

    @contextmanager
    def _let_go(self) -> Iterator[None]:
        yield
        self.let_go += 1

    def ran(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(("allowed", "asked"), [("munge", "munge.service"), ("munge.service", "munge")])
def test_an_allowed_unit_is_restarted(bench: Bench, allowed: str, asked: str) -> None:
    bench.mender(allowed).restart(asked)
    assert bench.ran() == ["systemctl restart -- munge.service"]


@pytest.mark.parametrize("unit", ["sshd", "munge.socket", "--now", "", "munge munge"])
def test_no_other_unit_is_restarted_whoever_asks(bench: Bench, unit: str) -> None:
    with pytest.raises(Permanent, match=r"not among agent\.restart_units"):
        bench.mender("munge").restart(unit)
    assert bench.ran() == []


def test_a_restart_that_fails_says_so(bench: Bench) -> None:
    with pytest.raises(Retryable, match="rc=3"):
        bench.mender("munge", status=3).restart("munge")


@pytest.mark.parametrize(("gpu", "chosen"), [(GPU, GPU), ("0000:4b:00", "0000:4b:00.0")])
def test_a_gpu_that_nobody_uses_is_reset_after_we_let_go_of_it(bench: Bench, gpu: str, chosen: str) -> None:
    names = bench.mender().reset(gpu)
    assert names == tuple(dict.fromkeys((gpu, GPU, "00000000:4B:00.0")))
    assert bench.ran()[-1] == f"smi --gpu-reset -i {chosen}"
    assert bench.let_go == 1


def test_a_gpu_that_a_process_holds_is_not_reset(bench: Bench) -> None:
    bench.users.write_text("4711\n4712\n")
    with pytest.raises(Permanent, match="in use by process 4711, 4712"):
        bench.mender().reset(GPU)
    assert not [line for line in bench.ran() if "gpu-reset" in line]
    assert bench.let_go == 0


@pytest.mark.parametrize("gpu", ["0", "all", "-r", "GPU-1", "", "0000:4b:00; reboot"])
def test_what_is_no_gpus_name_resets_nothing(bench: Bench, gpu: str) -> None:
    with pytest.raises(Permanent, match="nothing reset"):
        bench.mender().reset(gpu)
    assert bench.ran() == []


def test_a_driver_that_refuses_the_reset_says_so(bench: Bench) -> None:
    with pytest.raises(Retryable, match="rc=19"):
        bench.mender(status=19).reset(GPU)


def test_one_gpu_has_several_names() -> None:
    assert same_gpu("0000:4b:00", "00000000:4B:00.0")
    assert same_gpu(GPU, GPU)
    assert not same_gpu("0000:4b:00", "0000:4c:00.0")
    assert not same_gpu("", "")
