"""The conditions of RDMA on the node: a module that reaches the GPUs' memory, memory that jobs may lock."""

import re

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped, unknown
from steward.checks.fabric.ib import EFA_DRIVER
from steward.checks.kernel import MODULES, loaded_modules
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles, ReadTree, RunProgram

_DRIVER = "/proc/driver/nvidia/version"
_OPEN = "Open Kernel Module"
"""The open driver gives the adapter the memory by DMA-BUF: no further module is needed."""
_PORTS = "/sys/class/infiniband/mlx*/ports/*/link_layer"
_MODULES = ("nvidia_peermem", "nv_peer_mem")


def _judge_peermem(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    system, ports = raws
    driver, there = system.files.get(_DRIVER), loaded_modules(system)
    if driver is None or there is None:
        return skipped("no NVIDIA driver on this node")
    if not ports.files:
        return skipped("no InfiniBand adapter on this node")
    if _OPEN in driver:
        return skipped("the open driver needs no module for it")
    if found := [name for name in _MODULES if name in there]:
        return passed(f"{found[0]} is loaded")
    return failed("nvidia_peermem is not loaded: no GPUDirect RDMA", Severity.INFO, Advice.NONE)


PEERMEM = Check(
    id="gpu.peermem",
    probes=on_every_node(ReadFiles(paths=(_DRIVER, MODULES)), ReadTree(patterns=(_PORTS,))),
    judge=_judge_peermem,
    default_mode="report",
    every_s=300.0,
    is_quick=False,
    title="adapters do not reach the GPUs' memory",
    source="procfs",
    cost_ms=0.3,
)
"""The check that on a node with GPUs and InfiniBand a module lets adapters reach the GPUs' memory (GPUDirect RDMA)."""

_DEVICES = "/sys/class/infiniband/*/device/uevent"
_SHOW = ("systemctl", "show", "--property=LoadState,LimitMEMLOCK", "slurmd.service")
_LIMIT = re.compile(r"^LimitMEMLOCK=(infinity|[0-9]{1,20})$", re.MULTILINE)
MIN_GIB = Threshold(
    name="efa.memlock.min_gib",
    default=16.0,
    unit="GiB",
    text="Reported when jobs may lock less memory than this.",
    high=1e6,
)


def _judge_memlock(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    devices, unit = raws
    if not any(f"DRIVER={EFA_DRIVER}\n" in f"{text}\n" for text in devices.files.values()):
        return skipped("no EFA device on this node")
    if unit.returncode is None or "LoadState=loaded" not in unit.output:
        return skipped("slurmd.service is not there")
    found = _LIMIT.search(unit.output)
    if found is None:
        return unknown("systemctl does not tell LimitMEMLOCK")
    if found[1] == "infinity" or int(found[1]) >= facts.limit(MIN_GIB) * 2**30:
        return passed(f"jobs may lock memory: {found[1]}")
    text = f"slurmd's LimitMEMLOCK is {int(found[1]) // 2**20} MiB: set it to infinity for EFA"
    return failed(text, Severity.INFO, Advice.NONE)


MEMLOCK = Check(
    id="efa.memlock",
    probes=on_every_node(ReadTree(patterns=(_DEVICES,)), RunProgram(argv=_SHOW, may_be_absent=True)),
    judge=_judge_memlock,
    default_mode="report",
    every_s=3600.0,
    is_quick=False,
    title="jobs may not lock enough memory for EFA",
    source="command",
    cost_ms=3.0,
    settings=(MIN_GIB,),
)
"""The check that jobs may lock enough memory for EFA, which pins the memory that it registers."""

CHECKS: tuple[Check, ...] = (
    PEERMEM,
    MEMLOCK,
)
