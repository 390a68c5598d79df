"""Checks that all GPUs are there, answer, and need no repair according to their driver."""

from collections.abc import Mapping
from itertools import takewhile

from steward.checks.check import Check, Facts, Judgement, Notes, Past, failed, passed, skipped, unknown
from steward.checks.gpu.look import ANSWERS_S, NO_GPU, judge_by_values, nothing_to_judge, nvml_check
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Gpu, Raw
from steward.model.text import count_noun

_RESET_REQUIRED = 16
"""NVML_ERROR_RESET_REQUIRED; any other error of a GPU asks for a reboot."""
_SEEN = "gpus"


EXPECTED = Threshold(
    name="gpu.expected_count",
    default=None,
    unit="GPUs",
    text="GPUs that must be there; unset: the most that the driver listed in this boot.",
    high=1024,
    is_whole=True,
)


def _judge_present(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    if raws[0].hung:
        return unknown(raws[0].hung)
    gpus = raws[0].gpus or ()
    expected = int(facts.limit(EXPECTED)) if facts.limits.is_set(EXPECTED) else None
    wanted = int(max(past.notes.get(_SEEN, (0.0,)))) if expected is None else expected
    if not gpus and not wanted:
        return skipped(NO_GPU)
    silent = [gpu for gpu in gpus if gpu.error]
    if silent:
        return failed("; ".join(map(_described, silent)), Severity.FATAL, _advice(silent), hardware=silent[0].uuid)
    if len(gpus) < wanted:
        why = "there were in this boot" if expected is None else "expected"
        # Without any GPU a person may have unloaded the driver: no reason to end jobs, as none of them uses a GPU then.
        severity = Severity.FATAL if gpus or expected is not None else Severity.DEGRADED
        return failed(f"{len(gpus)} GPUs, {wanted} {why}", severity, Advice.REBOOT)
    return passed(f"{len(gpus)} GPUs answer")


def _present_note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Note the largest number of GPUs listed in this boot."""
    return {_SEEN: (max(float(len(raws[0].gpus or ())), *past.notes.get(_SEEN, (0.0,))),)}


def _described(gpu: Gpu) -> str:
    return f"GPU {gpu.index} {gpu.uuid or gpu.name}".rstrip() + f": {gpu.error}"


def _advice(silent: list[Gpu]) -> Advice:
    return Advice.RESET_GPU if all(gpu.code == _RESET_REQUIRED for gpu in silent) else Advice.REBOOT


PRESENT = nvml_check(
    "gpu", _judge_present, title="GPU missing, lost, or silent", note=_present_note, settings=(EXPECTED,)
)
"""The check that every GPU is there and answers through NVML."""

MISSES = Threshold(
    name="gpu.smi_hang.misses",
    default=5,
    unit="looks",
    text="Bad after this many looks in a row without an answer from NVML.",
    low=1,
    high=100,
)
_HUNG = "hung"


def _judge_hang(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    if not raws[0].hung:
        return nothing_to_judge(raws[0]) or passed("NVML answers")
    looks = reversed(past.readings)
    misses = sum(1 for _ in takewhile(lambda one: bool(one.values.get(_HUNG)), looks))
    wanted = int(facts.limit(MISSES))
    if misses >= wanted:
        return failed(f"{raws[0].hung}, in {count_noun(misses, 'look')} in a row", Severity.FATAL, Advice.REBOOT)
    return unknown(f"{raws[0].hung}, in {count_noun(misses, 'look')} in a row ({wanted} count as failed)")


def _hang_readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return {_HUNG: float(bool(raws[0].hung))}


HANG = nvml_check(
    "gpu.smi_hang",
    _judge_hang,
    title="NVML hangs in the driver",
    settings=(MISSES, ANSWERS_S),
    readings=_hang_readings,
)
"""The check for NVML, and with it nvidia-smi and every CUDA program, hanging in the driver."""

ASKS: dict[int, tuple[str, Severity, Advice]] = {
    1: ("for a GPU reset", Severity.FATAL, Advice.RESET_GPU),
    2: ("for a reboot of the node", Severity.FATAL, Advice.REBOOT),
    3: ("to drain peer-to-peer traffic", Severity.SUSPECT, Advice.RESET_GPU),
    4: ("to drain, then for a GPU reset", Severity.DEGRADED, Advice.RESET_GPU),
    5: ("to recover its IMEX domain", Severity.SUSPECT, Advice.NONE),
    6: ("for a bus reset", Severity.FATAL, Advice.REBOOT),
    7: ("for a reboot of the system", Severity.FATAL, Advice.REBOOT),
}
"""The recovery actions of NVML's field 230. Any other action is reported and never acted on."""


def _of_one(gpu: Gpu) -> Judgement | None:
    action = gpu.recovery_action
    if action is None:
        return None
    if not action:
        return passed("the driver asks for nothing")
    if action not in ASKS:
        return failed(f"the driver asks for an unknown repair ({action})", Severity.INFO, Advice.NONE)
    words, severity, advice = ASKS[action]
    return failed(f"the driver asks {words}", severity, advice)


RECOVERY = nvml_check("gpu.recovery_action", judge_by_values(_of_one), title="The driver asks for a repair")
"""The check for a repair that the driver itself asks for, which is more reliable than any table of Xids."""

CHECKS: tuple[Check, ...] = (
    PRESENT,
    HANG,
    RECOVERY,
)
