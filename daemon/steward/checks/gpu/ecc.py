"""Memory errors that ECC found: uncorrectable ones, those of the chip's own memory, and storms of corrected ones."""

from steward.checks.check import Facts, Verdict, failed, passed
from steward.checks.gpu.look import each, judge_each, nvml_check
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

SRAM = Threshold(
    name="gpu.ecc.sram_ue.lifetime",
    default=4,
    unit="errors",
    text="More uncorrectable errors of a GPU's SRAM in its life than this ask for another machine; fewer are told.",
)
DRAM_CE = Threshold(
    name="gpu.ecc.ce.dram", default=20e6, unit="errors", text="More corrected errors of DRAM since the driver's start."
)
SRAM_CE = Threshold(
    name="gpu.ecc.ce.sram", default=10e3, unit="errors", text="More corrected errors of SRAM since the driver's start."
)


def _uncorrected(gpu: Gpu) -> Verdict | None:
    if gpu.ecc_uncorrected is None:
        return None
    text = f"{gpu.ecc_uncorrected} uncorrectable ECC errors since the driver's start"
    return failed(text, Severity.DEGRADED, Advice.RESET_GPU) if gpu.ecc_uncorrected else passed(text)


def judge_sram(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    def of_one(gpu: Gpu) -> Verdict | None:
        if gpu.sram_uncorrected is None:
            return None
        text = f"{gpu.sram_uncorrected} uncorrectable SRAM errors in its life"
        if gpu.sram_limit_exceeded:
            return failed(f"{text}, over NVIDIA's own limit", Severity.DEGRADED, Advice.REPLACE)
        if gpu.sram_uncorrected > facts.limit(SRAM):
            return failed(text, Severity.DEGRADED, Advice.REPLACE)
        return failed(text, Severity.INFO, Advice.NONE) if gpu.sram_uncorrected else passed(text)

    return judge_each(raws[0], of_one)


def judge_corrected(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    def of_one(gpu: Gpu) -> Verdict | None:
        if gpu.ecc_corrected_dram is None and gpu.ecc_corrected_sram is None:
            return None
        dram, sram = gpu.ecc_corrected_dram or 0, gpu.ecc_corrected_sram or 0
        text = f"{dram} corrected DRAM and {sram} corrected SRAM errors since the driver's start"
        is_storm = dram > facts.limit(DRAM_CE) or sram > facts.limit(SRAM_CE)
        return failed(text, Severity.SUSPECT, Advice.NONE) if is_storm else passed(text)

    return judge_each(raws[0], of_one)


DBE_VOL = nvml_check("gpu.ecc.dbe_vol", each(_uncorrected), title="Uncorrectable ECC error since the driver's start")
SRAM_UE = nvml_check("gpu.ecc.sram_ue", judge_sram, title="Uncorrectable error of a GPU's SRAM", thresholds=(SRAM,))
CE = nvml_check(
    "gpu.ecc.ce", judge_corrected, mode="report", title="Storm of corrected ECC errors", thresholds=(DRAM_CE, SRAM_CE)
)
