"""Health checks: a declaration (probes as data) and a pure judge each. A new one is a file here and a row below."""

from steward.checks import clock, disk, gpu, memory, mounts, slurmd, system
from steward.checks.accelerators import ACCELERATORS
from steward.checks.check import Check
from steward.checks.fabric import FABRIC

CHECKS: tuple[Check, ...] = (
    slurmd.CHECK,
    disk.CHECK,
    mounts.CHECK,
    memory.CHECK,
    *gpu.CHECKS,
    clock.CHECK,
    *system.CHECKS,
    *FABRIC,
    *ACCELERATORS,
)
