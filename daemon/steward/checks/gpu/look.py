"""What every GPU check shares: the one look at NVML, and a judgement made GPU by GPU."""

from collections.abc import Callable, Iterable, Mapping

from steward.checks.check import Check, Facts, Judge, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.gpu import Gpu
from steward.model.probe import QueryGpus, Raw

ANSWERS_S = Threshold(
    name="gpu.smi_hang.timeout_s",
    default=20.0,
    unit="s",
    text="How long NVML may take for one look at all GPUs; without persistence mode it wakes each of them first.",
    low=0.1,
    high=60.0,
)
NO_GPU = "no NVIDIA GPU on this node"
NOTHING_TOLD = "no GPU or driver here tells of it"
_MARGIN_S = 30.0
"""On top of the time for NVML: its child starts, and other checks may wait for the same look."""
_SHOWN = 4

OfOne = Callable[[Gpu], Verdict | None]
"""What one GPU that answers says; None: it cannot tell."""


def probes(facts: Facts) -> tuple[QueryGpus, ...]:
    """Equal for every check, so that one look serves them all."""
    return (QueryGpus(timeout_s=facts.limit(ANSWERS_S)),)


def judge_each(raw: Raw, of_one: OfOne) -> Verdict:
    """The worst that any GPU says, all bad ones named. GPUs that do not answer are the check `gpu`'s."""
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
    """The judge of a check for which each GPU's own word is enough."""
    return lambda raws, facts, past: judge_each(raws[0], of_one)


def nothing_to_judge(raw: Raw) -> Verdict | None:
    if raw.hung:
        return unknown(raw.hung)
    return None if raw.gpus else skipped(NO_GPU)


def answering(raw: Raw) -> list[Gpu]:
    return [gpu for gpu in raw.gpus or () if not gpu.error]


def counters(raws: tuple[Raw, ...], of_one: Callable[[Gpu], float | None]) -> Mapping[str, float]:
    """A counter of each GPU that has it, by UUID, for `Check.readings`."""
    return {gpu.uuid: value for gpu in answering(raws[0]) if (value := of_one(gpu)) is not None}


def _listed(bad: Iterable[tuple[Gpu, Verdict]]) -> str:
    lines = [f"GPU {gpu.index} {gpu.uuid}: {verdict.text}" for gpu, verdict in bad]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "; ".join([*lines[:_SHOWN], *more])


def nvml_check(
    name: str,
    judge: Judge,
    *,
    title: str,
    mode: str = "drain",
    thresholds: tuple[Threshold, ...] = (),
    readings: Callable[[tuple[Raw, ...]], Mapping[str, float]] | None = None,
    note: Callable[[tuple[Raw, ...], Facts, Past], Notes] | None = None,
    every_s: float | None = None,
    bad_for_s: float = 0.0,
) -> Check:
    """A check of the one look at NVML. One with a rhythm of its own is no quick one."""
    return Check(
        id=name,
        probes=probes,
        judge=judge,
        mode=by_id(name, mode),
        every_s=every_s,
        bad_for_s=bad_for_s,
        timeout_s=ANSWERS_S.high + _MARGIN_S,
        is_quick=every_s is None,
        title=title,
        source="nvml",
        cost_ms=1.0,
        thresholds=thresholds,
        readings=readings,
        note=note,
    )
