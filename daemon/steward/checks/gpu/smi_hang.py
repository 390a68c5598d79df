"""NVML, and with it nvidia-smi and every CUDA program, hangs in the driver."""

from collections.abc import Mapping
from itertools import takewhile

from steward.checks.check import Facts, Verdict, failed, passed, unknown
from steward.checks.gpu.look import ANSWERS_S, nothing_to_judge, nvml_check
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

MISSES = Threshold(
    name="gpu.smi_hang.misses",
    default=5,
    unit="looks",
    text="So many looks in a row without an answer of NVML are bad.",
    low=1,
    high=100,
)
_HUNG = "hung"


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    if not raws[0].hung:
        return nothing_to_judge(raws[0]) or passed("NVML answers")
    looks = reversed(past.readings)
    misses = sum(1 for _ in takewhile(lambda one: bool(one.values.get(_HUNG)), looks))
    wanted = int(facts.limit(MISSES))
    if misses >= wanted:
        return failed(f"{raws[0].hung}, {misses} times in a row", Severity.FATAL, Advice.REBOOT)
    return unknown(f"{raws[0].hung}, {misses} times in a row, {wanted} are bad")


def readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return {_HUNG: float(bool(raws[0].hung))}


CHECK = nvml_check(
    "gpu.smi_hang", judge, title="NVML hangs in the driver", thresholds=(MISSES, ANSWERS_S), readings=readings
)
