"""slurmd answers: asked the way Slurm's own tools ask it, so that nothing is left in its log."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, RunProgram

_BAD_FOR_S = 60.0
"""A restart or upgrade of slurmd is no fault; jobs run on meanwhile."""


def probes(facts: Facts) -> tuple[RunProgram, ...]:
    env = (("SLURMD_NODENAME", facts.node), ("SLURM_CONF", facts.slurm_conf))
    given = tuple((key, value) for key, value in env if value)
    return (RunProgram(argv=("scontrol", "show", "slurmd"), env=given, timeout_s=facts.limits.slurmd.timeout_s),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
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


CHECK = Check(
    id="slurmd",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.slurmd.mode,
    confirm_s=5.0,
    bad_for_s=_BAD_FOR_S,
    title="slurmd does not answer",
    source="command",
    cost_ms=7.0,
)
