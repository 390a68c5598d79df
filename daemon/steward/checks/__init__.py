"""Health checks: a declaration (probes as data) and a pure judge each. A new one is a row in its family's file."""

from steward.checks import (
    amd,
    clock,
    cpu,
    dcgm,
    disk,
    drives,
    gpu,
    kernel,
    libraries,
    memory,
    mounts,
    neuron,
    processes,
    services,
    slurm_node,
)
from steward.checks.check import Check
from steward.checks.fabric import FABRIC, rdma

ACCELERATORS: tuple[Check, ...] = (*amd.CHECKS, *neuron.CHECKS, dcgm.DCGM)
CHECKS: tuple[Check, ...] = (
    *services.CHECKS,
    *slurm_node.CHECKS,
    *disk.CHECKS,
    *drives.CHECKS,
    *mounts.CHECKS,
    *memory.CHECKS,
    *cpu.CHECKS,
    *clock.CHECKS,
    *processes.CHECKS,
    *kernel.CHECKS,
    libraries.LIBRARIES,
    *gpu.CHECKS,
    *FABRIC,
    *rdma.CHECKS,
    *ACCELERATORS,
)
