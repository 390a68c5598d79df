"""Rows of GPU memory that were, shall be, or can no more be replaced by spare ones; pages retired on older GPUs."""

from steward.checks.check import Facts, Verdict, failed, passed
from steward.checks.gpu.look import each, judge_each, nvml_check
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

WORN = Threshold(
    name="gpu.remap.count.suspect",
    default=10,
    unit="rows",
    text="More rows remapped for uncorrectable errors ask for a deep check: most such GPUs were slow.",
)
WORN_OUT = Threshold(
    name="gpu.remap.count.most", default=512, unit="rows", text="More rows remapped than this ask for another machine."
)
PAGES = Threshold(
    name="gpu.retired.pages", default=10, unit="pages", text="More retired pages (GPUs before Ampere) than this."
)


def _pending(gpu: Gpu) -> Verdict | None:
    if gpu.remap_pending is None:
        return None
    if gpu.remap_pending:
        return failed("a row is remapped at the next reset", Severity.SUSPECT, Advice.RESET_GPU)
    return passed("no row waits for a reset")


def _failed(gpu: Gpu) -> Verdict | None:
    if gpu.remap_failed is None:
        return None
    if gpu.remap_failed:
        return failed("a row could not be remapped, no spare is left", Severity.DEGRADED, Advice.REPLACE)
    return passed("spare rows are left")


def judge_count(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    def of_one(gpu: Gpu) -> Verdict | None:
        if gpu.remapped_uncorrected is None:
            return None
        text = f"{gpu.remapped_uncorrected} rows remapped for uncorrectable errors"
        if gpu.remapped_uncorrected > facts.limit(WORN_OUT):
            return failed(text, Severity.DEGRADED, Advice.REPLACE)
        is_worn = gpu.remapped_uncorrected > facts.limit(WORN)
        return failed(text, Severity.SUSPECT, Advice.NONE) if is_worn else passed(text)

    return judge_each(raws[0], of_one)


def judge_retired(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    def of_one(gpu: Gpu) -> Verdict | None:
        if gpu.retired_pages is None and gpu.retire_pending is None:
            return None
        text = f"{gpu.retired_pages or 0} retired pages"
        if gpu.retire_pending:
            return failed(f"{text}, one more at the next reboot", Severity.SUSPECT, Advice.REBOOT)
        is_worn = (gpu.retired_pages or 0) > facts.limit(PAGES)
        return failed(text, Severity.SUSPECT, Advice.NONE) if is_worn else passed(text)

    return judge_each(raws[0], of_one)


PENDING = nvml_check("gpu.remap.pending", each(_pending), title="Row of GPU memory to be remapped at the next reset")
FAILED = nvml_check("gpu.remap.failed", each(_failed), title="GPU memory out of spare rows")
COUNT = nvml_check("gpu.remap.count", judge_count, title="Many remapped rows", thresholds=(WORN, WORN_OUT))
RETIRED = nvml_check("gpu.retired", judge_retired, title="Retired pages of GPU memory", thresholds=(PAGES,))
