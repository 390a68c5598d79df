"""Checks of NVIDIA GPUs, most of them from one look at NVML."""

from steward.checks.check import Check
from steward.checks.gpu import links, look, memory, upkeep

CHECKS: tuple[Check, ...] = (*look.CHECKS, *memory.CHECKS, *upkeep.CHECKS, *links.CHECKS)
