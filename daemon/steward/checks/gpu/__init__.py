"""Checks of NVIDIA GPUs, most of them from one look at NVML."""

from steward.checks.check import Check
from steward.checks.gpu import (
    ecc,
    fabric,
    heat,
    leftover,
    nvlink,
    pcie,
    present,
    recovery,
    remap,
    smi_hang,
    upkeep,
)

CHECKS: tuple[Check, ...] = (
    present.CHECK,
    smi_hang.CHECK,
    recovery.CHECK,
    ecc.DBE_VOL,
    ecc.SRAM_UE,
    ecc.CE,
    remap.PENDING,
    remap.FAILED,
    remap.COUNT,
    remap.RETIRED,
    heat.TEMP,
    heat.THROTTLE,
    heat.BRAKE,
    pcie.WIDTH,
    pcie.REPLAY,
    nvlink.DOWN,
    nvlink.ERR,
    fabric.FABRIC,
    fabric.MANAGER,
    leftover.CHECK,
    upkeep.PERSIST,
    upkeep.INFOROM,
    upkeep.VBIOS,
)
