"""Accelerators that are not asked through NVML: AMD GPUs, AWS Neuron devices, and what DCGM's service says."""

from steward.checks.accelerators import amd_count, amd_errors, dcgm, neuron
from steward.checks.check import Check

ACCELERATORS: tuple[Check, ...] = (amd_count.CHECK, *amd_errors.CHECKS, *neuron.CHECKS, dcgm.CHECK)
