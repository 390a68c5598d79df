"""What NVML promises on a healthy machine: our library of pretended GPUs, and NVIDIA's own where there is a GPU."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steward.adapters.node.nvml import Nvml
from steward.adapters.node.probe import LocalProbes
from steward.checks import gpu
from steward.checks.check import Check, Facts, Past, Reading
from steward.checks.limits import Limits
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.probe import Gpu, QueryGpus, Raw
from tests.fakes.nvml import DEVICES, FakeGpus

DRIVER = Path("driver/nvidia/gpus")
HOST = Path("/proc")
FACTS = Facts(node=NodeName("n1"), limits=Limits())


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with GPUs, asked as the agent asks."""

    probes: LocalProbes
    nvml: Nvml

    def gpus(self) -> tuple[Gpu, ...]:
        raw = self.probes.look(QueryGpus(timeout_s=60.0))
        assert raw.gpus is not None, raw
        return raw.gpus


@pytest.fixture(scope="module", params=["fake", "real"])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    where = tmp_path_factory.mktemp("gpus")
    if request.param == "fake":
        for device in DEVICES:
            (where / DRIVER / device).mkdir(parents=True)
        nvml, proc = FakeGpus(where).nvml, where
    elif (HOST / DRIVER).is_dir():
        nvml, proc = Nvml(), HOST
    else:
        pytest.skip(f"this machine has no NVIDIA GPU: its driver would list one in {HOST / DRIVER}")
    yield Machine(LocalProbes(skew_s=lambda: None, proc=proc, nvml=nvml), nvml)
    nvml.let_go()


def test_every_device_of_the_driver_answers(machine: Machine) -> None:
    gpus = machine.gpus()
    assert gpus
    assert [gpu.error for gpu in gpus] == [""] * len(gpus)
    assert [gpu.index for gpu in gpus] == list(range(len(gpus)))


def test_identities_are_there_differ_and_stay(machine: Machine) -> None:
    first = [gpu.uuid for gpu in machine.gpus()]
    assert len(set(first)) == len(first)
    assert all(uuid.startswith("GPU-") and len(uuid) == 40 for uuid in first)
    assert [gpu.uuid for gpu in machine.gpus()] == first
    assert list(machine.nvml.uuids) == first


def test_what_every_gpu_of_our_day_tells_is_told(machine: Machine) -> None:
    for gpu_seen in machine.gpus():
        assert gpu_seen.name.startswith("NVIDIA")
        assert 0 < (gpu_seen.temperature_c or 0) < 120
        assert gpu_seen.clock_reasons is not None
        assert (gpu_seen.pcie_width or 0) <= (gpu_seen.pcie_width_max or 0)
        assert gpu_seen.processes is not None
        assert gpu_seen.memory_used_mib is not None
        assert gpu_seen.bus


@pytest.mark.parametrize("check", gpu.CHECKS, ids=lambda each: each.id)
def test_no_check_that_may_drain_finds_anything_on_a_healthy_machine(machine: Machine, check: Check) -> None:
    raws = tuple(machine.probes.look(probe) for probe in check.probes(FACTS))
    verdict = check.verdict(raws, FACTS, _first_look(check, raws))
    if check.mode(FACTS.limits) == "drain":
        assert verdict.outcome in (Outcome.PASSED, Outcome.SKIPPED), verdict
    assert verdict.outcome is not Outcome.UNKNOWN


def _first_look(check: Check, raws: tuple[Raw, ...]) -> Past:
    readings = (Reading(at=0.0, values=check.readings(raws)),) if check.readings else ()
    return Past(now=0.0, readings=readings)
