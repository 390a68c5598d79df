"""Every AMD GPU that was there is there still."""

from steward.checks import known_set
from steward.checks.accelerators.amd import EVERY_S, gpus, probes
from steward.checks.check import Check, Facts, Verdict
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

EXPECTED = Threshold(
    name="amd.count.expected",
    default=0,
    unit="GPUs",
    text="AMD GPUs that must be there; 0: those that were there once in this boot.",
    high=1024,
)


def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    return known_set.remember(gpus(raws[0]), past)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    return known_set.judge_set(
        gpus(raws[0]),
        past,
        expected=int(facts.limit(EXPECTED)),
        what="AMD GPU",
        severity=Severity.FATAL,
        advice=Advice.REBOOT,
    )


CHECK = Check(
    id="amd.count",
    probes=probes,
    judge=judge,
    note=note,
    mode=by_id("amd.count", "drain"),
    every_s=EVERY_S,
    confirm_s=15.0,
    bad_for_s=120.0,  # a driver that is loaded anew takes its devices away for a minute
    title="AMD GPU vanished",
    source="sysfs",
    cost_ms=3.0,
    thresholds=(EXPECTED,),
)
