"""Services of the node: slurmd, munged, what systemd gave up on, and the machine's own controller."""

import re

from steward.checks.check import Check, Facts, Past, Verdict, always, failed, passed, skipped, unknown
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import AskMunge, Raw, RunProgram
from steward.model.text import printable

_BAD_FOR_S = 60.0
"""A restart or upgrade of slurmd is no fault; jobs run on meanwhile."""


ANSWERS_S = Threshold(
    name="slurmd.timeout_s", default=1.0, unit="s", text="How long slurmd has to answer.", low=0.1, high=60.0
)


def _slurmd_probes(facts: Facts) -> tuple[RunProgram, ...]:
    env = (("SLURMD_NODENAME", facts.node), ("SLURM_CONF", facts.slurm_conf))
    given = tuple((key, value) for key, value in env if value)
    return (RunProgram(argv=("scontrol", "show", "slurmd"), env=given, timeout_s=facts.limit(ANSWERS_S)),)


def _judge_slurmd(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """A refused connection is a dead slurmd. One that does not answer in time may be a busy node: the head's second
    witness tells a frozen slurmd, not this check."""
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
"""slurmd answers: asked the way Slurm's own tools ask it, so that nothing is left in its log."""

UNIT = "munge.service"
_SHOWN = 200


def _judge_munge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    (raw,) = raws
    if raw.returncode is None:
        return skipped(raw.output[:_SHOWN] or "no libmunge on this node")
    if raw.returncode != 0:
        return failed(raw.output[:_SHOWN], Severity.DEGRADED, Advice.RESTART_SERVICE, hardware=UNIT)
    return passed("munged makes credentials and reads them")


MUNGE = Check(
    id="svc.munge",
    probes=always(AskMunge()),
    judge=_judge_munge,
    default_mode="drain",
    every_s=60.0,
    confirm_s=5.0,
    bad_for_s=60.0,  # a restart or upgrade of munge is no fault
    title="munged does not answer",
    source="socket",
    cost_ms=0.5,
)
"""munged makes credentials and reads them: without it neither slurmd nor the agent can speak with the controller."""

WATCHED = Names(
    name="svc.units.units",
    text="systemd units that must not have failed; those that are not installed are left out.",
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
    """All in one call; of a unit that is not installed systemd says just that."""
    argv = ("systemctl", "show", "--property=Id,LoadState,ActiveState", "--", *facts.names(WATCHED))
    return (RunProgram(argv=argv, timeout_s=8.0, max_bytes=65536, may_be_absent=True),)


def _judge_units(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Stopped or switched off is what an admin did; `failed` is what nobody wanted."""
    (raw,) = raws
    if not facts.names(WATCHED):
        return skipped('no unit is named (units of [checks."svc.units"])')
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
"""Services that systemd has given up on."""

_BAD = frozenset({"cr", "nr"})
"""Critical, non-recoverable."""
_STATES = frozenset({"ok", "ns", "nc", "us", *_BAD})
_SENSORS_SHOWN = 6


def _sensors_probes(facts: Facts) -> tuple[RunProgram, ...]:
    argv = ("ipmitool", "-I", "open", "sdr", "list", "full")
    return (RunProgram(argv=argv, timeout_s=60.0, max_bytes=65536, may_be_absent=True),)


def _judge_sensors(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """`name | reading | state` in each line. A controller that does not answer says nothing about the node."""
    (raw,) = raws
    rows = [[word.strip() for word in line.split("|")] for line in raw.output.splitlines()]
    states = {printable(row[0], 32): row[2] for row in rows if len(row) == 3 and row[2] in _STATES}
    if raw.returncode != 0 or not states:
        return skipped("no controller (BMC) can be asked here")
    bad = sorted(name for name, state in states.items() if state in _BAD)
    if bad:
        return failed(f"critical: {', '.join(bad[:_SENSORS_SHOWN])}", Severity.SUSPECT, Advice.NONE)
    return passed(f"{len(states)} sensors are well")


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
"""Fans, power supplies and temperatures as the machine's controller sees them, where ipmitool is installed."""

CHECKS: tuple[Check, ...] = (
    SLURMD,
    MUNGE,
    UNITS,
    SENSORS,
)
