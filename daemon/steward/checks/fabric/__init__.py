"""The network of a node: InfiniBand, RoCE, EFA and Ethernet, all of it from sysfs."""

from steward.checks.check import Check
from steward.checks.fabric import (
    count,
    efa_provider,
    ib_errors,
    ib_flap,
    ib_rate,
    ib_state,
    ib_symbol,
    net_carrier,
    net_operstate,
)

FABRIC: tuple[Check, ...] = (
    ib_state.STATE,
    ib_state.PHYS,
    ib_state.DROP,
    ib_flap.CHECK,
    ib_rate.CHECK,
    count.IB,
    count.EFA,
    efa_provider.CHECK,
    ib_symbol.CHECK,
    *ib_errors.CHECKS,
    net_operstate.CHECK,
    net_carrier.CHECK,
)
