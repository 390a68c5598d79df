"""Checks of the kernel: shared resources in use (load, process numbers, file handles), modules, a pending reboot."""

import re

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped, unknown
from steward.checks.cpu import ONLINE, count_cpus
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

MODULES = "/proc/modules"


def loaded_modules(raw: Raw) -> frozenset[str] | None:
    """Return the names of the loaded modules, with `_` for `-` as the kernel has them; None if there is no list."""
    text = raw.files.get(MODULES)
    return None if text is None else frozenset(line.split(" ", 1)[0] for line in text.splitlines())


_LOAD = "/proc/loadavg"
_LIMITS = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")
_TASKS = re.compile(r"^[0-9. ]{1,40} [0-9]{1,9}/([0-9]{1,9}) ")
PERCENT = Threshold(
    name="os.pids.percent",
    default=80.0,
    unit="%",
    text="A larger share of the process ids in use is reported.",
    low=1.0,
    high=100.0,
)


def _judge_pids(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge how many process numbers are in use; a job can use them up, so this is only reported."""
    files = raws[0].files
    tasks = _TASKS.match(files.get(_LOAD) or "")
    limits = [int(text) for path in _LIMITS if (text := (files.get(path) or "").strip()[:15]).isdecimal()]
    limit = min(limits, default=0)
    if tasks is None or limit <= 0:
        return unknown(f"cannot understand {_LOAD} or {_LIMITS[0]}")
    used = 100.0 * int(tasks[1]) / limit
    text = f"{tasks[1]} processes and threads of {limit} ({used:.0f} %)"
    return failed(text, Severity.INFO, Advice.NONE) if used > facts.limit(PERCENT) else passed(text)


PIDS = Check(
    id="os.pids",
    probes=on_every_node(ReadFiles(paths=(_LOAD, *_LIMITS))),
    judge=_judge_pids,
    default_mode="report",
    every_s=60.0,
    title="process numbers are used up",
    source="procfs",
    cost_ms=0.2,
    settings=(PERCENT,),
)
"""The check of process numbers in use; each thread has a number, too."""

_HANDLES = "/proc/sys/fs/file-nr"
_NUMBERS = re.compile(r"^([0-9]{1,19})\s+([0-9]{1,19})\s+([0-9]{1,19})\s*$")
FILES_PERCENT = 80.0
"""A larger share than this of the file handles in use is reported."""


def _judge_files(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge how many file handles are in use; a job can use them up, so this is only reported."""
    found = _NUMBERS.match(raws[0].files.get(_HANDLES) or "")
    if found is None or int(found[3]) == 0:
        return unknown(f"cannot understand {_HANDLES}")
    used = 100.0 * (int(found[1]) - int(found[2])) / int(found[3])
    text = f"{found[1]} file handles of {found[3]} ({used:.0f} %)"
    return failed(text, Severity.INFO, Advice.NONE) if used > FILES_PERCENT else passed(text)


FILES = Check(
    id="os.files",
    probes=on_every_node(ReadFiles(paths=(_HANDLES,))),
    judge=_judge_files,
    default_mode="report",
    every_s=60.0,
    title="file handles are used up",
    source="procfs",
    cost_ms=0.1,
)
"""The check of the kernel's file handles in use."""

_AVERAGES = re.compile(r"^[0-9.]{1,12} [0-9.]{1,12} ([0-9]{1,9}\.[0-9]{2}) ")
PER_CPU = 2.0
"""A higher load than this (15 minutes, for each CPU) is reported."""


def _judge_load(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the load of the last 15 minutes; jobs make load, so this is only reported."""
    found, cpus = _AVERAGES.match(raws[0].files.get(_LOAD) or ""), count_cpus(raws[0].files.get(ONLINE) or "")
    if found is None or not cpus:
        return unknown(f"cannot understand {_LOAD} or {ONLINE}")
    text = f"load {found[1]} on {cpus} CPUs in 15 min"
    return failed(text, Severity.INFO, Advice.NONE) if float(found[1]) > PER_CPU * cpus else passed(text)


LOAD = Check(
    id="os.load",
    probes=on_every_node(ReadFiles(paths=(_LOAD, ONLINE))),
    judge=_judge_load,
    default_mode="report",
    every_s=300.0,
    is_quick=False,
    title="more load than CPUs",
    source="procfs",
    cost_ms=0.1,
)
"""The check of the load against the number of CPUs."""


MODULES_REQUIRED = Names(
    name="os.modules.required",
    text="Kernel modules that must be loaded; do not list one that is built into the kernel.",
)


def _judge_modules(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    wanted = [name.replace("-", "_") for name in facts.names(MODULES_REQUIRED)]
    if not wanted:
        return skipped('no module is required (set `required` in [checks."os.modules"])')
    there = loaded_modules(raws[0])
    if there is None:
        return skipped(f"no {MODULES} here")
    if missing := [name for name in wanted if name not in there]:
        return failed(f"not loaded: {', '.join(missing[:8])}", Severity.DEGRADED, Advice.REBOOT)
    return passed(f"{len(wanted)} modules are loaded")


REQUIRED = Check(
    id="os.modules",
    probes=on_every_node(ReadFiles(paths=(MODULES,))),
    judge=_judge_modules,
    default_mode="drain",
    every_s=300.0,
    bad_for_s=60.0,
    is_quick=False,
    title="a kernel module is missing",
    source="procfs",
    settings=(MODULES_REQUIRED,),
    cost_ms=0.2,
)
"""The check of kernel modules that the site requires: without its module, a device cannot be used."""

_WANTED, _PACKAGES = "/run/reboot-required", "/run/reboot-required.pkgs"
_SCHEDULED = "/run/systemd/shutdown/scheduled"
_AT = re.compile(r"^USEC=([0-9]{1,19})$", re.MULTILINE)
_SHOWN = 5


def _judge_reboot(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    files = raws[0].files
    scheduled = files.get(_SCHEDULED)
    if scheduled is not None:
        at = _AT.search(scheduled)
        when = f" in {(int(at[1]) / 1e6 - past.now) / 60:.0f} min" if at else ""
        return failed(f"a shutdown or reboot is scheduled{when}", Severity.INFO, Advice.NONE)
    if files.get(_WANTED) is not None:
        packages = sorted(set((files.get(_PACKAGES) or "").split()))
        named = f" for {', '.join(packages[:_SHOWN])}" if packages else ""
        return failed(f"a reboot is pending{named}", Severity.INFO, Advice.NONE)
    return passed("no reboot is pending")


REBOOT = Check(
    id="os.reboot_required",
    probes=on_every_node(ReadFiles(paths=(_WANTED, _PACKAGES, _SCHEDULED))),
    judge=_judge_reboot,
    default_mode="report",
    every_s=300.0,
    is_quick=False,
    title="a reboot is pending or scheduled",
    source="files",
    cost_ms=0.1,
)
"""The check for a reboot that the system asks for or that is scheduled."""

CHECKS: tuple[Check, ...] = (
    PIDS,
    FILES,
    LOAD,
    REQUIRED,
    REBOOT,
)
