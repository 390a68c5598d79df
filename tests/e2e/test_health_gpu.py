"""A broken GPU takes its node out and the node comes back with GPUs that are well; one that is merely warm does not.

Every node breaks in its own way at the same moment, and each test waits for one of them: repairs go on side by side.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from steward_bed.bed import Bed, Overrides
from steward_bed.faults import FaultKind
from tests.e2e.conftest import NODES, brought_up
from tests.e2e.story import Story

_ALL_AT_ONCE: Overrides = {"repair": {"concurrent_min": NODES, "breaker_min": 100}}
_REPAIR_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """`script` is what the node's GPUs have (tests/fake_nvml/script.h), `check` the one that must find it, and `rule`
    the one by which the node is taken out: at once, or after its jobs."""

    node: str
    script: str
    check: str
    rule: str


BROKEN = (
    Broken(node="n1", script="2 error 15", check="gpu", rule="node.fatal"),
    Broken(node="n2", script="1 recovery_action 2", check="gpu.recovery_action", rule="node.fatal"),
    Broken(node="n3", script="3 remap_failed 1", check="gpu.remap.failed", rule="node.degraded"),
    Broken(node="n4", script="0 ecc_uncorrected 1", check="gpu.ecc.dbe_vol", rule="node.degraded"),
    Broken(node="n5", script="5 nvlinks_down 2", check="gpu.nvlink.down", rule="node.degraded"),
    Broken(node="n6", script="hang", check="gpu.smi_hang", rule="node.fatal"),
)


@pytest.fixture(scope="module")
def gpu_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    yield from brought_up(request, nodes=NODES, steward=True, gpus=8, settings=_ALL_AT_ONCE)


@pytest.fixture(scope="module")
def story(gpu_bed: Bed) -> Story:
    return Story(gpu_bed, gpu_bed.shared)


@pytest.fixture(scope="module")
def hurt_at(story: Story) -> Mapping[str, float]:
    """Every node broken, in its own way, at this time."""
    return {each.node: story.hurt(FaultKind.GPU_FAULT, each.node, each.script) for each in BROKEN}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.check)
def test_a_broken_gpu_takes_its_node_out_and_it_comes_back_well(
    story: Story, hurt_at: Mapping[str, float], broken: Broken
) -> None:
    case = story.wait_case(broken.node, "closed", _REPAIR_S, since=hurt_at[broken.node])
    assert (case["check"], case["why"]["rule"]) == (broken.check, broken.rule)
    story.wait("Slurm gives it jobs again", lambda: story.node_state(broken.node) == "IDLE")
    assert not bad_checks(story, broken.node)


def test_a_gpu_that_nvml_does_not_count_is_missed(story: Story, hurt_at: Mapping[str, float]) -> None:
    story.wait("the first fault of n1 is over", lambda: story.cases("n1", since=hurt_at["n1"]))
    story.wait_case("n1", "closed", _REPAIR_S, since=hurt_at["n1"])
    again = story.hurt(FaultKind.GPU_FAULT, "n1", "gpus 7")
    case = story.wait_case("n1", "closed", _REPAIR_S, since=again)
    assert (case["check"], "the driver lists it, NVML does not" in str(case["why"])) == ("gpu", True)
    story.wait("Slurm gives it jobs again", lambda: story.node_state("n1") == "IDLE")


def test_warm_gpus_and_corrected_errors_are_told_and_drain_nothing(story: Story, hurt_at: Mapping[str, float]) -> None:
    story.wait_case("n2", "closed", _REPAIR_S, since=hurt_at["n2"])
    told_at = story.hurt(FaultKind.GPU_FAULT, "n2", "0 margin 0, 1 corrected_dram 30000000")
    story.wait("both are told", lambda: bad_checks(story, "n2") == {"gpu.temp", "gpu.ecc.ce"})
    marker = story.hurt(FaultKind.FAIL_CHECK, "n3", "to see that findings are acted upon")
    story.wait_case("n3", "closed", _REPAIR_S, since=marker)
    assert story.cases("n2", since=told_at) == []
    assert story.node_state("n2") == "IDLE"
    story.hurt(FaultKind.MEND_GPUS, "n2")


def bad_checks(story: Story, node: str) -> set[str]:
    agents = {each["name"]: each["agent"] for each in story.get("/v1/nodes")}
    return {finding["check"] for finding in agents[node]["bad"]}
