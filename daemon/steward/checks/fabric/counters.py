"""Error counters of InfiniBand, RoCE and EFA ports, one look a minute for all checks of them: each costs
the adapter's firmware a command."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from steward.checks.check import Check, Facts, Judge, Threshold, Verdict, failed, passed, skipped, unknown
from steward.checks.past import Past
from steward.model.health import Advice, Severity
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


_KEPT_BEYOND_S = 3 * EVERY_S
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """More than `limit` of `counter` is bad: within `window_s`, or `per_s` seconds on average over the window."""

    counter: str
    limit: Threshold
    window_s: float
    per_s: float | None = None

    def of(self, reading: str, past: Past) -> float:
        """The value that is compared with the limit."""
        if self.per_s is None:
            return past.growth(reading, self.window_s)
        return past.per_second(reading, self.window_s) * self.per_s


def readings_of(names: tuple[str, ...]) -> Callable[[tuple[Raw, ...]], Mapping[str, float]]:
    return lambda raws: counters(raws[0], names)


def judge_counters(names: tuple[str, ...], judge: Callable[[Mapping[str, float], Facts, Past], Verdict]) -> Judge:
    """`judge`, where there are such counters and they say something."""

    def told(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        files = [path for path in raws[0].files if path.rpartition("/")[2] in names]
        if not files:
            return skipped(f"no port counts {', '.join(names)}")
        found = counters(raws[0], names)
        return judge(found, facts, past) if found else unknown(f"not a number: {files[0]}")

    return told


def counter_check(
    check: str,
    *growths: Growth,
    title: str,
    severity: Severity,
    advice: Advice = Advice.NONE,
    mode: str = "report",
) -> Check:
    """The check that fails when one of the counters of one port grows too fast."""
    names = tuple(growth.counter for growth in growths)

    def judge(found: Mapping[str, float], facts: Facts, past: Past) -> Verdict:
        bad = [
            f"{reading} +{grown:g} {growth.limit.unit} (limit {facts.limit(growth.limit):g})"
            for growth in growths
            for reading in sorted(found)
            if reading.endswith(f" {growth.counter}")
            and (grown := growth.of(reading, past)) > facts.limit(growth.limit)
        ]
        if bad:
            return failed("; ".join(bad[:_SHOWN]), severity, advice, hardware=bad[0].partition(" ")[0])
        return passed(f"{len(found)} counters within their limits")

    return Check(
        id=check,
        probes=probes,
        judge=judge_counters(names, judge),
        readings=readings_of(names),
        default_mode=mode,
        every_s=EVERY_S,
        keep_s=max(growth.window_s for growth in growths) + _KEPT_BEYOND_S,
        is_quick=False,
        title=title,
        source="sysfs",
        cost_ms=3.0,
        thresholds=tuple({growth.limit.name: growth.limit for growth in growths}.values()),
    )
