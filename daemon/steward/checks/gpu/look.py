"""The look at NVML that all GPU checks share, and checks of its answer: GPUs present, no hang, no repair asked for."""

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

from steward.checks.check import Check, Facts, Judge, Judgement, Notes, Past, failed, passed, skipped, unknown
from steward.checks.limits import Setting, Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Gpu, QueryGpus, Raw

ANSWERS_S = Threshold(
    name="gpu.smi_hang.timeout_s",
    default=20.0,
    unit="s",
    text="Time limit of one look at all GPUs through NVML; without persistence mode each GPU is woken first.",
    low=0.1,
    high=60.0,
)
NO_GPU = "no NVIDIA GPU on this node"
NOTHING_TOLD = "no GPU or driver here reports it"
_MARGIN_S = 30.0
"""The time beyond NVML's own for the start of its child process, and for other checks that share the look."""
_SHOWN = 4
OfOne = Callable[[Gpu], Judgement | None]
"""A GPU that answers -> its verdict; None if the GPU or driver does not report the value."""


def probes(facts: Facts) -> tuple[QueryGpus, ...]:
    """Return the one probe that all GPU checks share."""
    return (QueryGpus(timeout_s=facts.limit(ANSWERS_S)),)


def judge_each(raw: Raw, of_one: OfOne) -> Judgement:
    """Return the worst verdict of all GPUs that answer, with all bad GPUs named.

    The check `gpu` judges those that do not answer.
    """
    if (none := nothing_to_judge(raw)) is not None:
        return none
    told = [(gpu, verdict) for gpu in answering(raw) if (verdict := of_one(gpu)) is not None]
    bad = [(gpu, verdict) for gpu, verdict in told if verdict.is_bad]
    bad.sort(key=lambda each: -each[1].severity.rank)
    if bad:
        worst, verdict = bad[0]
        return failed(_listed(bad), verdict.severity, verdict.advice, hardware=worst.uuid)
    if not told:
        return skipped(NOTHING_TOLD)
    return passed(f"{len(told)} GPUs: {told[0][1].text}")


def each(of_one: OfOne) -> Judge:
    """Return the judge of a check that needs nothing but each GPU's values."""
    return lambda raws, facts, past: judge_each(raws[0], of_one)


def each_by(of_one: Callable[[Gpu, Facts, Past], Judgement | None]) -> Judge:
    """Return the judge of a check that also needs the site's limits or earlier looks."""
    return lambda raws, facts, past: judge_each(raws[0], lambda gpu: of_one(gpu, facts, past))


def nothing_to_judge(raw: Raw) -> Judgement | None:
    if raw.hung:
        return unknown(raw.hung)
    return None if raw.gpus else skipped(NO_GPU)


def answering(raw: Raw) -> list[Gpu]:
    return [gpu for gpu in raw.gpus or () if not gpu.error]


def counters(raws: tuple[Raw, ...], of_one: Callable[[Gpu], float | None]) -> Mapping[str, float]:
    """Return a counter of each GPU that has it, by UUID, for `Check.readings`."""
    return {gpu.uuid: value for gpu in answering(raws[0]) if (value := of_one(gpu)) is not None}


def _listed(bad: Iterable[tuple[Gpu, Judgement]]) -> str:
    lines = [f"GPU {gpu.index} {gpu.uuid}: {verdict.text}" for gpu, verdict in bad]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "; ".join([*lines[:_SHOWN], *more])


def nvml_check(
    name: str,
    judge: Judge,
    *,
    title: str,
    mode: str = "drain",
    settings: tuple[Setting, ...] = (),
    readings: Callable[[tuple[Raw, ...]], Mapping[str, float]] | None = None,
    note: Callable[[tuple[Raw, ...], Facts, Past], Notes] | None = None,
    every_s: float | None = None,
    bad_for_s: float = 0.0,
) -> Check:
    """Return a check of the shared look at NVML; a check with its own period takes no part in a check-now."""
    return Check(
        id=name,
        probes=probes,
        judge=judge,
        default_mode=mode,
        every_s=every_s,
        bad_for_s=bad_for_s,
        timeout_s=ANSWERS_S.high + _MARGIN_S,
        is_quick=every_s is None,
        title=title,
        source="nvml",
        cost_ms=1.0,
        settings=settings,
        readings=readings,
        note=note,
    )


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
    expected = int(facts.limit(EXPECTED)) if facts.limits.says(EXPECTED) else None
    wanted = int(max(past.notes.get(_SEEN, (0.0,)))) if expected is None else expected
    if not gpus and not wanted:
        return skipped(NO_GPU)
    silent = [gpu for gpu in gpus if gpu.error]
    if silent:
        return failed("; ".join(map(_told, silent)), Severity.FATAL, _advice(silent), hardware=silent[0].uuid)
    if len(gpus) < wanted:
        why = "there were in this boot" if expected is None else "expected"
        # If none is left, a person may have unloaded the driver: no reason to end jobs, which then use no GPU anyway.
        severity = Severity.FATAL if gpus or expected is not None else Severity.DEGRADED
        return failed(f"{len(gpus)} GPUs, {wanted} {why}", severity, Advice.REBOOT)
    return passed(f"{len(gpus)} GPUs answer")


def _present_note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Note the largest number of GPUs listed in this boot."""
    return {_SEEN: (max(float(len(raws[0].gpus or ())), *past.notes.get(_SEEN, (0.0,))),)}


def _told(gpu: Gpu) -> str:
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
        return failed(f"{raws[0].hung}, {misses} times in a row", Severity.FATAL, Advice.REBOOT)
    return unknown(f"{raws[0].hung}, {misses} times in a row ({wanted} count as failed)")


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


RECOVERY = nvml_check("gpu.recovery_action", each(_of_one), title="The driver asks for a repair")
"""The check for a repair that the driver itself asks for, which is more reliable than any table of Xids."""

CHECKS: tuple[Check, ...] = (
    PRESENT,
    HANG,
    RECOVERY,
)
