"""Services of the node: slurmd, munged, failed systemd units, and the machine's management controller (BMC)."""

import re

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped, unknown
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import AskMunge, Raw, RunProgram
from steward.model.text import printable

_BAD_FOR_S = 60.0
"""How long slurmd must be down: its restart or upgrade is no fault, and jobs run on meanwhile."""


ANSWERS_S = Threshold(
    name="slurmd.timeout_s", default=1.0, unit="s", text="How long slurmd has to answer.", low=0.1, high=60.0
)


def _slurmd_probes(facts: Facts) -> tuple[RunProgram, ...]:
    env = (("SLURMD_NODENAME", facts.node), ("SLURM_CONF", facts.slurm_conf))
    given = tuple((key, value) for key, value in env if value)
    return (RunProgram(argv=("scontrol", "show", "slurmd"), env=given, timeout_s=facts.limit(ANSWERS_S)),)


def _judge_slurmd(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge slurmd's answer: only a refused connection is bad."""
    # slurmd may be late on a busy node. The head's second witness finds a frozen slurmd, not this check.
    (raw,) = raws
    if raw.returncode == 0 and "Slurmd PID" in raw.output:
        return passed("slurmd answers")
    if "Connection refused" in raw.output:
        return failed(
            "slurmd does not run: its port refuses", Severity.DEGRADED, Advice.RESTART_SERVICE, hardware="slurmd"
        )
    return unknown(f"scontrol show slurmd: rc={raw.returncode} {raw.output[:200]}")


SLURMD = Check(
    id="slurmd",
    probes=_slurmd_probes,
    judge=_judge_slurmd,
    confirm_s=5.0,
    bad_for_s=_BAD_FOR_S,
    title="slurmd does not answer",
    source="command",
    cost_ms=7.0,
    settings=(ANSWERS_S,),
)
"""The check that slurmd answers, asked the way Slurm's own tools ask, so that nothing is left in its log."""

UNIT = "munge.service"
_SHOWN = 200
_LATE = ("Timed-out", "temporarily unavailable")
"""libmunge's words for a munged that takes a connection and does not answer in time."""


def _judge_munge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge munged's answer: a munged that only is late is not bad."""
    (raw,) = raws
    if raw.returncode is None:
        return skipped(raw.output[:_SHOWN] or "no libmunge on this node")
    if raw.returncode != 0 and any(word in raw.output for word in _LATE):
        # Any user can make munged late with idle connections: its few threads wait 2 s for each.
        return unknown(f"munged takes connections and does not answer: {raw.output[:_SHOWN]}")
    if raw.returncode != 0:
        return failed(raw.output[:_SHOWN], Severity.DEGRADED, Advice.RESTART_SERVICE, hardware=UNIT)
    return passed("munged makes credentials and reads them")


MUNGE = Check(
    id="svc.munge",
    probes=on_every_node(AskMunge()),
    judge=_judge_munge,
    default_mode="drain",
    every_s=60.0,
    confirm_s=5.0,
    bad_for_s=60.0,  # a restart or upgrade of munge is no fault
    title="munged does not answer",
    source="socket",
    cost_ms=0.5,
)
"""The check that munged makes and reads credentials: slurmd and the agent need them to reach the controller."""

WATCHED = Names(
    name="svc.units.units",
    text="systemd units that must not have failed; units that are not installed are ignored.",
    default=(
        "munge.service",
        "ssh.service",
        "sshd.service",
        "chrony.service",
        "chronyd.service",
        "systemd-timesyncd.service",
        "nvidia-persistenced.service",
        "nvidia-dcgm.service",
        "nvidia-imex.service",
        "containerd.service",
        "docker.service",
    ),
)
_NO_SYSTEMD = "not been booted with systemd"
_UNIT = re.compile(r"^Id=(?P<id>[\w@.:\\-]{1,255})$", re.MULTILINE)


def _units_probes(facts: Facts) -> tuple[RunProgram, ...]:
    """Return the probe that asks systemd for all units in one call."""
    argv = ("systemctl", "show", "--property=Id,LoadState,ActiveState", "--", *facts.names(WATCHED))
    return (RunProgram(argv=argv, timeout_s=8.0, max_bytes=65536, may_be_absent=True),)


def _judge_units(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the units: `failed` is bad; stopped or disabled is an admin's choice."""
    (raw,) = raws
    if not facts.names(WATCHED):
        return skipped('no unit is named (set `units` in [checks."svc.units"])')
    if raw.returncode is None or _NO_SYSTEMD in raw.output:
        return skipped("no systemd on this node")
    blocks = [block for block in raw.output.split("\n\n") if _UNIT.search(block)]
    if raw.returncode != 0 or not blocks:
        return unknown(f"systemctl show: rc={raw.returncode} {raw.output[:_SHOWN]}")
    there = [block for block in blocks if "LoadState=loaded" in block.split("\n")]
    down = [found["id"] for block in there if _has_failed(block) and (found := _UNIT.search(block))]
    if down:
        return failed(f"failed: {', '.join(down)}", Severity.DEGRADED, Advice.RESTART_SERVICE, hardware=down[0])
    return passed(f"none of {len(there)} services has failed")


def _has_failed(block: str) -> bool:
    return "ActiveState=failed" in block.split("\n")


UNITS = Check(
    id="svc.units",
    probes=_units_probes,
    judge=_judge_units,
    default_mode="report",
    every_s=300.0,
    confirm_s=10.0,
    bad_for_s=60.0,  # systemd may be about to start it again
    is_quick=False,
    title="a service has failed",
    source="systemd",
    cost_ms=6.0,
    settings=(WATCHED,),
)
"""The check for services that systemd has given up on."""

_BAD = frozenset({"cr", "nr"})
"""ipmitool's states of a critical (`cr`) and a non-recoverable (`nr`) sensor."""
_STATES = frozenset({"ok", "ns", "nc", "us", *_BAD})
_SENSORS_SHOWN = 6


def _sensors_probes(facts: Facts) -> tuple[RunProgram, ...]:
    argv = ("ipmitool", "-I", "open", "sdr", "list", "full")
    return (RunProgram(argv=argv, timeout_s=60.0, max_bytes=65536, may_be_absent=True),)


def _judge_sensors(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the controller's sensors, from lines of `name | reading | state`."""
    (raw,) = raws
    rows = [[word.strip() for word in line.split("|")] for line in raw.output.splitlines()]
    states = {printable(row[0], 32): row[2] for row in rows if len(row) == 3 and row[2] in _STATES}
    if raw.returncode != 0 or not states:  # a controller that does not answer says nothing about the node
        return skipped("no controller (BMC) answers on this node")
    bad = sorted(name for name, state in states.items() if state in _BAD)
    if bad:
        return failed(f"critical: {', '.join(bad[:_SENSORS_SHOWN])}", Severity.SUSPECT, Advice.NONE)
    return passed(f"{len(states)} sensors are within their limits")


SENSORS = Check(
    id="bmc.sensors",
    probes=_sensors_probes,
    judge=_judge_sensors,
    default_mode="report",
    every_s=1800.0,
    timeout_s=65.0,
    is_quick=False,
    title="a fan, power supply or temperature is critical",
    source="command",
    cost_ms=20.0,
)
"""The check of fans, power supplies and temperatures by the machine's controller, where ipmitool is installed."""

CHECKS: tuple[Check, ...] = (
    SLURMD,
    MUNGE,
    UNITS,
    SENSORS,
)
