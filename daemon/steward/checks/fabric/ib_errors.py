"""The error counters of InfiniBand, RoCE and EFA ports, and how fast each may grow on a healthy link.

One look a minute serves all these checks: each read costs the adapter's firmware a command.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from steward.checks.check import Check, Facts, Judge, Judgement, Past, failed, passed, skipped, unknown
from steward.checks.fabric.ib import first_names
from steward.checks.limits import Threshold
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
    """Return the values of the counters with one of these names, by port and name (`mlx5_0/1 symbol_error`)."""
    found = {}
    for path, text in raw.files.items():
        match = _FILE.match(path)
        if match and match["name"] in names and (number := _NUMBER.match(text or "")):
            found[key(f"{match['device']}/{match['port']}", match["name"])] = float(number[1])
    return found


def key(port: str, name: str) -> str:
    """Return the name of the reading of a port's counter."""
    return sys.intern(f"{port} {name}")  # many readings are kept: store each name once


_KEPT_BEYOND_S = 3 * EVERY_S
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The limit of a counter's growth within `window_s`, or on average within `per_s` seconds of that window."""

    counter: str
    limit: Threshold
    window_s: float
    per_s: float | None = None

    def of(self, reading: str, past: Past) -> float:
        """Return the growth to compare with the limit."""
        if self.per_s is None:
            return past.growth(reading, self.window_s)
        return past.per_second(reading, self.window_s) * self.per_s


def readings_of(names: tuple[str, ...]) -> Callable[[tuple[Raw, ...]], Mapping[str, float]]:
    return lambda raws: counters(raws[0], names)


def judge_counters(names: tuple[str, ...], judge: Callable[[Mapping[str, float], Facts, Past], Judgement]) -> Judge:
    """Return a judge that calls `judge` if a port has these counters and they can be read."""

    def judge_raws(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        files = [path for path in raws[0].files if path.rpartition("/")[2] in names]
        if not files:
            return skipped(f"no port counts {', '.join(names)}")
        found = counters(raws[0], names)
        return judge(found, facts, past) if found else unknown(f"not a number: {files[0]}")

    return judge_raws


def counter_check(
    check: str,
    *growths: Growth,
    title: str,
    severity: Severity,
    advice: Advice = Advice.NONE,
    mode: str = "report",
) -> Check:
    """Return a check that fails if one of the counters of any port grows too fast."""
    names = tuple(growth.counter for growth in growths)

    def judge(found: Mapping[str, float], facts: Facts, past: Past) -> Judgement:
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
        settings=tuple({growth.limit.name: growth.limit for growth in growths}.values()),
    )


_HOUR_S = 3600.0
_MINUTE_S = 60.0
_RATES: Mapping[str, tuple[float, float | None]] = {
    "in 3 h": (3 * _HOUR_S, None),
    "in 1 h": (_HOUR_S, None),
    "/min": (2 * _MINUTE_S, _MINUTE_S),
    "/s": (2 * _MINUTE_S, 1.0),
}
"""`window_s` and `per_s` of a Growth, by the unit of its limit."""


def _limit(name: str, default: float, unit: str, text: str) -> Threshold:
    return Threshold(name=name, default=default, unit=unit, text=text, high=1e9)


def _growth(counter: str, limit: Threshold) -> Growth:
    window_s, per_s = _RATES[limit.unit]
    return Growth(counter=counter, limit=limit, window_s=window_s, per_s=per_s)


LINK_DOWNED = counter_check(
    "ib.link_downed",
    _growth(
        "link_downed",
        _limit("ib.link_downed.in_3h", 3, "in 3 h", "More lost links than this, by the adapter's own count."),
    ),
    title="The adapter counts lost links",
    severity=Severity.DEGRADED,
    advice=Advice.REPLACE,
    mode="drain",
)
RECOVERY = counter_check(
    "ib.recovery",
    _growth("link_error_recovery", _limit("ib.recovery.per_minute", 5, "/min", "Times that the link was retrained.")),
    title="Links retrain",
    severity=Severity.SUSPECT,
)
INTEGRITY = counter_check(
    "ib.integrity",
    _growth(
        "local_link_integrity_errors",
        _limit("ib.integrity.in_1h", 0, "in 1 h", "Physical errors beyond what the link may have."),
    ),
    title="Physical errors beyond the link's own limit",
    severity=Severity.DEGRADED,
    advice=Advice.REPLACE,
    mode="drain",
)
OVERRUN = counter_check(
    "ib.overrun",
    _growth(
        "excessive_buffer_overrun_errors",
        _limit("ib.overrun.in_1h", 0, "in 1 h", "Overruns on a fabric that must not lose anything."),
    ),
    title="Buffers of a lossless link overran",
    severity=Severity.DEGRADED,
    advice=Advice.REPLACE,
    mode="drain",
)
RCV_ERR = counter_check(
    "ib.rcv_err",
    _growth("port_rcv_errors", _limit("ib.rcv_err.per_s", 10, "/s", "Packets that arrived broken.")),
    title="Packets arrive broken",
    severity=Severity.SUSPECT,
)
DISCARD = counter_check(
    "ib.discard",
    _growth(
        "port_xmit_discards",
        _limit("ib.discard.per_s", 100, "/s", "Packets that could not be sent: the fabric is congested."),
    ),
    title="Packets are thrown away before they are sent",
    severity=Severity.INFO,
)
RNR = counter_check(
    "ib.rnr",
    _growth(
        "rnr_nak_retry_err",
        _limit("ib.rnr.in_1h", 0, "in 1 h", "Times that the other side was never ready to receive."),
    ),
    title="The other side was never ready to receive",
    severity=Severity.SUSPECT,
)
ACK_TO = counter_check(
    "ib.ack_to",
    _growth(
        "local_ack_timeout_err",
        _limit("ib.ack_to.per_s", 1, "/s", "Answers that did not come; a crash of the other node raises it too."),
    ),
    title="Answers of other nodes do not come",
    severity=Severity.INFO,
)
ROCE_SLOW = counter_check(
    "roce.slow",
    _growth(
        "roce_slow_restart", _limit("roce.slow.per_s", 10, "/s", "Slow restarts: the flow is a victim of congestion.")
    ),
    title="RoCE flows restart slowly",
    severity=Severity.SUSPECT,
)

_EVENTS = _limit("efa.counters.per_s", 100, "/s", "Drops, errors and time-outs of one kind.")

EFA = counter_check(
    "efa.counters",
    *(_growth(name, _EVENTS) for name in EFA_COUNTERS[:-2]),
    _growth("retrans_pkts", _limit("efa.counters.retrans_pkts_per_s", 1000, "/s", "Packets sent again.")),
    _growth("retrans_bytes", _limit("efa.counters.retrans_bytes_per_s", 1e6, "/s", "Bytes sent again.")),
    title="EFA devices drop or repeat much",
    severity=Severity.INFO,
)
_COUNTED = (LINK_DOWNED, RECOVERY, INTEGRITY, OVERRUN, RCV_ERR, DISCARD, RNR, ACK_TO, ROCE_SLOW, EFA)

PER_HOUR = Threshold(
    name="ib.symbol.per_hour",
    default=120,
    unit="/h",
    text="More symbol errors in an hour are a bit error rate above 1e-12.",
    high=1e9,
)
PER_S = Threshold(
    name="ib.symbol.per_s", default=10, unit="/s", text="A higher rate is a burst: a cable was touched.", high=1e9
)


def _judge_symbol(found: Mapping[str, float], facts: Facts, past: Past) -> Judgement:
    steady = [reading for reading in found if _is_steady(reading, facts, past)]
    if steady:
        text = f"outside of the specified error rate for an hour: {first_names(steady)}"
        return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=min(steady).partition(" ")[0])
    bursts = [reading for reading in found if past.per_second(reading, 120.0) > facts.limit(PER_S)]
    if bursts:
        return failed(
            f"a burst: {first_names(bursts)}", Severity.SUSPECT, Advice.NONE, hardware=min(bursts).partition(" ")[0]
        )
    return passed(f"{len(found)} ports within the specified error rate")


def _is_steady(reading: str, facts: Facts, past: Past) -> bool:
    """Return whether the counter grew too much in both halves of the hour: one burst is no dying cable."""
    half = facts.limit(PER_HOUR) / 2
    late = past.growth(reading, _HOUR_S / 2)
    return late > half and past.growth(reading, _HOUR_S) - late > half


SYMBOL = replace(
    counter_check(
        "ib.symbol",
        Growth(counter="symbol_error", limit=PER_HOUR, window_s=_HOUR_S),
        title="Symbol errors beyond the specified rate",
        severity=Severity.DEGRADED,
        mode="drain",
    ),
    judge=judge_counters(("symbol_error",), _judge_symbol),
    settings=(PER_HOUR, PER_S),
)
"""The check of symbol errors: every link has a few; a steady trickle is a dying cable or transceiver."""

CHECKS: tuple[Check, ...] = (
    SYMBOL,
    *_COUNTED,
)
