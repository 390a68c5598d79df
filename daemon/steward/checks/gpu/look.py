"""The look at NVML that all GPU checks share."""

from collections.abc import Callable, Iterable, Mapping

from steward.checks.check import Check, Facts, Judge, Judgement, Notes, Past, failed, passed, skipped, unknown
from steward.checks.limits import Setting, Threshold
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
"""The time added to NVML's own, for the start of the child process and the wait for other checks of the look."""
_SHOWN = 4
OfOne = Callable[[Gpu], Judgement | None]
"""A GPU that answers -> its verdict; None if the GPU or driver does not report the value."""


def probes(facts: Facts) -> tuple[QueryGpus, ...]:
    """Return the one probe that all GPU checks share."""
    return (QueryGpus(timeout_s=facts.limit(ANSWERS_S)),)


def judge_each(raw: Raw, of_one: OfOne) -> Judgement:
    """Return the worst verdict of all GPUs that answer, with all bad GPUs named.

    The check `gpu` judges GPUs that do not answer.
    """
    if (none := nothing_to_judge(raw)) is not None:
        return none
    verdicts = [(gpu, verdict) for gpu in readable_gpus(raw) if (verdict := of_one(gpu)) is not None]
    bad = [(gpu, verdict) for gpu, verdict in verdicts if verdict.is_bad]
    bad.sort(key=lambda each: -each[1].severity.rank)
    if bad:
        worst, verdict = bad[0]
        return failed(_listed(bad), verdict.severity, verdict.advice, hardware=worst.uuid)
    if not verdicts:
        return skipped(NOTHING_TOLD)
    return passed(f"{len(verdicts)} GPUs: {verdicts[0][1].text}")


def judge_by_values(of_one: OfOne) -> Judge:
    """Return the judge of a check that needs nothing but each GPU's values."""
    return lambda raws, facts, past: judge_each(raws[0], of_one)


def judge_by_limits(of_one: Callable[[Gpu, Facts, Past], Judgement | None]) -> Judge:
    """Return the judge of a check that also needs the site's limits or earlier looks."""
    return lambda raws, facts, past: judge_each(raws[0], lambda gpu: of_one(gpu, facts, past))


def nothing_to_judge(raw: Raw) -> Judgement | None:
    if raw.hung:
        return unknown(raw.hung)
    return None if raw.gpus else skipped(NO_GPU)


def readable_gpus(raw: Raw) -> list[Gpu]:
    return [gpu for gpu in raw.gpus or () if not gpu.error]


def counters(raws: tuple[Raw, ...], of_one: Callable[[Gpu], float | None]) -> Mapping[str, float]:
    """Return a counter of each GPU that has it, by UUID, for `Check.readings`."""
    return {gpu.uuid: value for gpu in readable_gpus(raws[0]) if (value := of_one(gpu)) is not None}


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
