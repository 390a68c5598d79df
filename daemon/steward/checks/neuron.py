"""AWS Neuron devices (Inferentia, Trainium) as their driver shows them in sysfs.

The same facts as neuron-ls and neuron-monitor give, without starting a program. Driver 2.31 moved parts of its tree; a
check whose counter is not at its documented old place is skipped.
"""

import re
from collections.abc import Callable, Mapping

from steward.checks import known_set
from steward.checks.check import Check, Facts, Judge, Judgement, Past, failed, passed, skipped, unknown
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree

EVERY_S = 60.0
_HOUR_S = 3600.0
_ROOT = "/sys/devices/virtual/neuron_device"
_TREE = ReadTree(
    patterns=(
        f"{_ROOT}/neuron*/uevent",
        f"{_ROOT}/neuron*/stats/hardware/*_uncorrected",
        f"{_ROOT}/neuron*/neuron_core*/stats/status/hw_error/total",
    ),
    max_files=4096,
)
_DEVICE = re.compile(rf"^{_ROOT}/(neuron[0-9]+)/uevent$")
_ECC = re.compile(rf"^{_ROOT}/(neuron[0-9]+)/stats/hardware/(\w+)$")
_HW_ERROR = re.compile(rf"^{_ROOT}/(neuron[0-9]+)/(neuron_core[0-9]+)/stats/status/hw_error/total$")
_NUMBER = re.compile(r"^\s*([0-9]{1,20})\s*$")
_REPAIRABLE = "mem_ecc_repairable_uncorrected"
_NONE = "no Neuron device on this node"

EXPECTED = Threshold(
    name="neuron.count.expected",
    default=0,
    unit="devices",
    text="Neuron devices that must be there; 0: those that were there once in this boot.",
    high=1024,
)
MAX_HW_ERRORS = Threshold(
    name="neuron.exec.in_1h", default=0, unit="in 1 h", text="Executions that ended with a hardware error.", high=1e9
)


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    """Return the one probe that all checks of Neuron devices share."""
    return (_TREE,)


def _devices(raw: Raw) -> tuple[str, ...]:
    return tuple(match[1] for path in raw.files if (match := _DEVICE.match(path)))


def _counts(raw: Raw, pattern: re.Pattern[str]) -> dict[str, int]:
    """Return the counts by device and counter, such as `neuron0 sram_ecc_uncorrected`."""
    found = {}
    for path, text in raw.files.items():
        if (match := pattern.match(path)) and (number := _NUMBER.match(text or "")):
            found[f"{match[1]} {match[2]}"] = int(number[1])
    return found


def _of_counts(pattern: re.Pattern[str], judge: Callable[[dict[str, int], Facts, Past], Judgement]) -> Judge:
    def judge_raws(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        if not _devices(raws[0]):
            return skipped(_NONE)
        files = [path for path in raws[0].files if pattern.match(path)]
        if not files:
            return skipped("the driver does not report it")
        found = _counts(raws[0], pattern)
        return judge(found, facts, past) if found else unknown(f"not a number: {files[0]}")

    return judge_raws


def _ecc(found: dict[str, int], facts: Facts, past: Past) -> Judgement:
    """Judge the ECC counters."""
    # The device repairs the errors called repairable at its next reset.
    bad = {name: count for name, count in found.items() if count}
    lasting = {name: count for name, count in bad.items() if not name.endswith(_REPAIRABLE)}
    text = ", ".join(f"{name}: {count}" for name, count in list((lasting or bad).items())[:8])
    if lasting:
        return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=min(lasting).partition(" ")[0])
    if bad:
        return failed(text, Severity.DEGRADED, Advice.REBOOT, hardware=min(bad).partition(" ")[0])
    return passed(f"{len(found)} counters of uncorrected errors, all zero")


def readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return {name: float(count) for name, count in _counts(raws[0], _HW_ERROR).items()}


def _exec(found: dict[str, int], facts: Facts, past: Past) -> Judgement:
    grown = {name: past.growth(name, _HOUR_S) for name in found}
    bad = {name: count for name, count in grown.items() if count > facts.limit(MAX_HW_ERRORS)}
    if bad:
        counts = ", ".join(f"{name}: {count:g}" for name, count in list(bad.items())[:8])
        text = f"executions ended with a hardware error: {counts}"
        return failed(text, Severity.SUSPECT, Advice.NONE, hardware=min(bad).partition(" ")[0])
    return passed(f"{len(found)} cores without hardware errors")


COUNT = Check(
    id="neuron.count",
    probes=probes,
    judge=known_set.judge_of(_devices, EXPECTED, "Neuron device", Severity.FATAL, Advice.REPLACE),
    note=known_set.note_of(_devices),
    default_mode="drain",
    every_s=EVERY_S,
    confirm_s=15.0,
    bad_for_s=120.0,  # a reloaded driver takes its devices away for a minute
    title="Neuron device vanished",
    source="sysfs",
    settings=(EXPECTED,),
)
ECC = Check(
    id="neuron.ecc",
    probes=probes,
    judge=_of_counts(_ECC, _ecc),
    default_mode="drain",
    every_s=EVERY_S,
    title="Uncorrected errors of a Neuron device's memory",
    source="sysfs",
)
EXEC = Check(
    id="neuron.exec",
    probes=probes,
    judge=_of_counts(_HW_ERROR, _exec),
    readings=readings,
    default_mode="report",  # the runtime in a user's job writes these counts: a user can fake them
    every_s=EVERY_S,
    title="Executions on a Neuron device ended with a hardware error",
    source="sysfs",
    settings=(MAX_HW_ERRORS,),
)
CHECKS = (COUNT, ECC, EXEC)
