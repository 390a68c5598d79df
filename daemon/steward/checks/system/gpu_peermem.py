"""GPUs and InfiniBand on one node, and no module that lets the adapter reach the GPUs' memory (GPUDirect RDMA)."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.modules import MODULES, loaded
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles, ReadTree

ID = "gpu.peermem"
_DRIVER = "/proc/driver/nvidia/version"
_OPEN = "Open Kernel Module"
"""The open driver gives the adapter the memory by DMA-BUF: no further module is needed."""
_PORTS = "/sys/class/infiniband/mlx*/ports/*/link_layer"
_MODULES = ("nvidia_peermem", "nv_peer_mem")


def probes(facts: Facts) -> tuple[ReadFiles | ReadTree, ...]:
    return (ReadFiles(paths=(_DRIVER, MODULES)), ReadTree(patterns=(_PORTS,)))


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    system, ports = raws
    driver, there = system.files.get(_DRIVER), loaded(system)
    if driver is None or there is None:
        return skipped("no NVIDIA driver on this node")
    if not ports.files:
        return skipped("no InfiniBand adapter on this node")
    if _OPEN in driver:
        return skipped("the open driver needs no module for it")
    if found := [name for name in _MODULES if name in there]:
        return passed(f"{found[0]} is loaded")
    return failed("nvidia_peermem is not loaded: no GPUDirect RDMA", Severity.INFO, Advice.NONE)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=300.0,
    is_quick=False,
    title="adapters do not reach the GPUs' memory",
    source="procfs",
    cost_ms=0.3,
)
