"""Checks of NVIDIA GPUs, most of them from one look at NVML."""

from steward.checks.check import Check
from steward.checks.gpu import heat, links, memory, present, upkeep

CHECKS: tuple[Check, ...] = (*present.CHECKS, *memory.CHECKS, *heat.CHECKS, *upkeep.CHECKS, *links.CHECKS)
