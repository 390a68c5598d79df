"""The network of a node: InfiniBand, RoCE, EFA and Ethernet, all of it from sysfs."""

from steward.checks.check import Check
from steward.checks.fabric import devices, ib_errors, ib_ports, net

FABRIC: tuple[Check, ...] = (*ib_ports.CHECKS, *devices.CHECKS, *ib_errors.CHECKS, *net.CHECKS)
