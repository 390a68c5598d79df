"""The node as Slurm needs it: its GPUs against Slurm's Gres, slurmd's spool directory, and the shim."""

import re
from collections.abc import Mapping

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped, unknown
from steward.checks.disk import used_percent
from steward.checks.limits import Threshold
from steward.model.gres import gpus_of
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, ReadTree, RunProgram, SpoolUsage
from steward.model.quota import profile_of

_OVERRIDES = re.compile(r"^\s*SlurmdParameters\s*=\s*\S*config_overrides", re.IGNORECASE | re.MULTILINE)
EVERY_S = 3600.0
"""Seconds between looks: the check asks slurmctld, and the values that it compares rarely change."""


def show_node(facts: Facts) -> RunProgram:
    return RunProgram(argv=("scontrol", "--oneliner", "show", "node", facts.node), env=_env(facts), timeout_s=8.0)


def _env(facts: Facts) -> tuple[tuple[str, str], ...]:
    return (("SLURM_CONF", facts.slurm_conf),) if facts.slurm_conf else ()


def is_pretended(slurm_conf: str | None) -> bool:
    """Return whether this slurm.conf says that its own numbers count, and not the machine's (config_overrides)."""
    return _OVERRIDES.search(slurm_conf or "") is not None


def number(shown: Raw, name: str) -> int | None:
    """Return the number that `scontrol show node` gives for `name`; None if Slurm did not answer or has none."""
    found = re.search(rf"(?:^|\s){name}=([0-9]{{1,12}})(?:\s|$)", shown.output) if shown.returncode == 0 else None
    return int(found[1]) if found else None


def no_answer(shown: Raw, facts: Facts) -> str:
    """Return why nothing can be compared: Slurm's answer."""
    return f"scontrol show node {facts.node}: rc={shown.returncode} {shown.output[:200]}"


_NVIDIA = "/proc/driver/nvidia/gpus/*/information"
_AMD = "/sys/class/kfd/kfd/topology/nodes/*/gpu_id"
_PCI = "/sys/bus/pci/devices/*/"
_OURS = ("0x10de", "0x1002")
"""The PCI vendors whose drivers' lists of GPUs are read: NVIDIA and AMD."""
_ACCELERATORS = ("0x0302", "0x0380", "0x1200")
"""PCI classes of accelerators without a display."""
_MOST_FILES = 8192
_GRES = re.compile(r"(?:^|\s)Gres=(\S{1,4096})")


def _gres_probes(facts: Facts) -> tuple[Probe, ...]:
    patterns = (_NVIDIA, _AMD, f"{_PCI}vendor", f"{_PCI}class")
    return ReadTree(patterns=patterns, max_files=_MOST_FILES), ReadFiles(slurm_conf=facts.slurm_conf), show_node(facts)


def _judge_gres(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge whether the drivers list as many GPUs as Slurm gives to jobs."""
    # A GPU that has been dead since boot is in no driver's list, so the checks of listed GPUs do not notice it.
    files, conf, shown = raws
    if is_pretended(conf.files.get(facts.slurm_conf)):
        return skipped("slurm.conf says config_overrides: its GPUs need not be there")
    found = _GRES.search(shown.output) if shown.returncode == 0 else None
    if found is None:
        return unknown(no_answer(shown, facts))
    gpus = gpus_of(found[1])
    listed = sum(_is_gpu(path, text) for path, text in files.files.items() if not path.startswith("/sys/bus/pci/"))
    if not gpus or any(profile_of(each.type) for each in gpus):
        return skipped("Slurm has no whole GPUs on this node")
    wanted = sum(each.amount for each in gpus)
    if not listed:
        return _without_driver(wanted, files.files)
    text = f"{listed} GPUs are there, Slurm's Gres has {wanted}"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if listed < wanted else passed(text)


def _without_driver(wanted: int, files: Mapping[str, str | None]) -> Judgement:
    """Judge by the PCI bus whether the driver or the GPU is missing, as no driver lists a GPU."""
    classes = {
        path.rpartition("/")[0]: (text or "").strip()[:6] for path, text in files.items() if path[-5:] == "class"
    }
    vendors = {path.rpartition("/")[0]: (text or "").strip() for path, text in files.items() if path[-6:] == "vendor"}
    shown = [slot for slot, kind in classes.items() if kind[:4] == "0x03" or kind in _ACCELERATORS]
    ours = [slot for slot in shown if vendors.get(slot) in _OURS]
    text = f"no driver lists a GPU, Slurm's Gres has {wanted}"
    if ours:
        return failed(
            f"{text}, {len(ours)} are on the PCI bus: is the driver loaded?", Severity.DEGRADED, Advice.REBOOT
        )
    if any(classes[slot] in _ACCELERATORS for slot in shown):  # no list of GPUs is read for other vendors
        return skipped("the accelerators here are not NVIDIA's or AMD's")
    return failed(f"{text}, none is on the PCI bus", Severity.SUSPECT, Advice.REBOOT)


def _is_gpu(path: str, text: str | None) -> bool:
    """Return whether the file stands for a GPU."""
    # The AMD driver lists CPUs as well, with an empty or zero gpu_id.
    return not path.endswith("/gpu_id") or (text or "0").strip() not in ("", "0")


GRES = Check(
    id="slurm.gres",
    probes=_gres_probes,
    judge=_judge_gres,
    default_mode="drain",
    every_s=EVERY_S,
    is_quick=False,
    title="fewer GPUs than Slurm gives to jobs",
    source="command",
    cost_ms=8.0,
)
"""The check of Slurm's GPUs (Gres) against those that a driver lists."""

PERCENT = Threshold(
    name="slurm.spool.percent",
    default=90.0,
    unit="%",
    text="A larger share of space or inodes in use is bad.",
    low=1.0,
    high=100.0,
)


def _spool_probes(facts: Facts) -> tuple[SpoolUsage, ...]:
    return (SpoolUsage(node=facts.node, slurm_conf=facts.slurm_conf),)


def _judge_spool(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    disks = raws[0].disks
    if not disks:
        return skipped("SlurmdSpoolDir is not there")
    path, disk = next(iter(disks.items()))
    used = used_percent(disk)
    text = f"SlurmdSpoolDir {path}: {used:.0f} % in use"
    return failed(text, Severity.DEGRADED, Advice.NONE) if used > facts.limit(PERCENT) else passed(text)


SPOOL = Check(
    id="slurm.spool",
    probes=_spool_probes,
    judge=_judge_spool,
    default_mode="report",
    every_s=60.0,
    title="no space for slurmd's own files",
    source="procfs",
    cost_ms=0.2,
    settings=(PERCENT,),
)
"""The check of the space in slurmd's spool directory: without space no job starts here."""


def _judge_spool_ro(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    disks = raws[0].disks
    if not disks:
        return skipped("SlurmdSpoolDir is not there")
    path, disk = next(iter(disks.items()))
    text = f"SlurmdSpoolDir {path} is read-only: no job can start here"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if disk.read_only else passed(f"{path} is writable")


SPOOL_RO = Check(
    id="slurm.spool_ro",
    probes=_spool_probes,
    judge=_judge_spool_ro,
    title="slurmd's own files cannot be written",
    source="statvfs",
    cost_ms=0.1,
)
"""The check for a read-only spool directory. Slurm reports it without the node's name, and holds each job that it tries
to start there."""

SHIM = "slurm.shim"
SHIM_EVERY_S = 60.0
_REFUSED = "unrecognized option"


def _shim_probes(facts: Facts) -> tuple[Probe, ...]:
    argv = ("sbatch", "--auto-resume=1", "--version")
    return (RunProgram(argv=argv, env=_env(facts), timeout_s=8.0, may_be_absent=True),)


def _judge_shim(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge by sbatch whether Slurm loads the shim: sbatch reads the same files here as slurmstepd."""
    asked = raws[0]
    if asked.returncode is None:
        return skipped(asked.output)
    if asked.returncode == 0:
        return passed(f"the plugin is loaded ({asked.output.strip()})")
    lines = [line for line in asked.output.splitlines() if line.startswith("sbatch: ")]
    if not any(_REFUSED in line for line in lines):
        return unknown(f"sbatch --version: rc={asked.returncode} {asked.output[:200]}")
    why = next(
        (line for line in lines if "steward" in line), "the plugstack.conf that Slurm reads here does not name it"
    )
    return failed(why.removeprefix("sbatch: ").removeprefix("error: "), Severity.INFO, Advice.NONE)


LOADED = Check(
    id=SHIM,
    probes=_shim_probes,
    judge=_judge_shim,
    default_mode="report",
    every_s=SHIM_EVERY_S,
    clears_at_once=True,  # files do not flap, and the admin who repaired them waits for the result
    is_quick=False,
    title="jobs on this node run without the shim",
    source="command",
    cost_ms=8.0,
)
"""The check that steps on this node load the shim: without it, a job that fails here asks for no decision."""

CHECKS: tuple[Check, ...] = (
    SPOOL,
    SPOOL_RO,
    LOADED,
    GRES,
)
