"""Error counters of InfiniBand, RoCE and EFA ports. One look a minute for all checks of them: each costs the adapter's
firmware a command."""

import re
import sys

from steward.checks.check import Facts
from steward.model.probe import Raw, ReadTree

EVERY_S = 60.0
PORT_COUNTERS = (
    "link_downed",
    "link_error_recovery",
    "symbol_error",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_errors",
    "port_xmit_discards",
)
HW_COUNTERS = ("rnr_nak_retry_err", "local_ack_timeout_err", "roce_slow_restart")
EFA_COUNTERS = (
    "rx_drops",
    "rdma_read_wr_err",
    "rdma_write_wr_err",
    "unresponsive_remote_events",
    "impaired_remote_conn_events",
    "retrans_timeout_events",
    "retrans_pkts",
    "retrans_bytes",
)

_CLASS = "/sys/class/infiniband"
_COUNTERS = ReadTree(
    patterns=(
        *(f"{_CLASS}/*/ports/*/counters/{name}" for name in PORT_COUNTERS),
        *(f"{_CLASS}/*/ports/*/hw_counters/{name}" for name in (*HW_COUNTERS, *EFA_COUNTERS)),
    ),
    max_files=8192,
)
_FILE = re.compile(rf"^{_CLASS}/(?P<device>[^/]+)/ports/(?P<port>[^/]+)/(?:hw_)?counters/(?P<name>[a-z_]+)$")
_NUMBER = re.compile(r"^\s*([0-9]{1,20})\s*$")


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    return (_COUNTERS,)


def counters(raw: Raw, names: tuple[str, ...]) -> dict[str, float]:
    """`mlx5_0/1 symbol_error` -> what it counted, for counters with one of these names."""
    found = {}
    for path, text in raw.files.items():
        match = _FILE.match(path)
        if match and match["name"] in names and (number := _NUMBER.match(text or "")):
            found[key(f"{match['device']}/{match['port']}", match["name"])] = float(number[1])
    return found


def key(port: str, name: str) -> str:
    """The name of a reading: many readings are kept, so each name only once."""
    return sys.intern(f"{port} {name}")
