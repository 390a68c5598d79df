"""munged makes credentials and reads them: without it neither slurmd nor the agent can speak with the controller."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import AskMunge, Raw

ID = "svc.munge"
UNIT = "munge.service"
_SHOWN = 200


def probes(facts: Facts) -> tuple[AskMunge, ...]:
    return (AskMunge(),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    (raw,) = raws
    if raw.returncode is None:
        return skipped(raw.output[:_SHOWN] or "no libmunge on this node")
    if raw.returncode != 0:
        return failed(raw.output[:_SHOWN], Severity.DEGRADED, Advice.RESTART_SERVICE, hardware=UNIT)
    return passed("munged makes credentials and reads them")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=60.0,
    confirm_s=5.0,
    bad_for_s=60.0,  # a restart or upgrade of munge is no fault
    title="munged does not answer",
    source="socket",
    cost_ms=0.5,
)
