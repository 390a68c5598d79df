"""GPUs that Slurm was told of against those that a driver lists."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.slurm_node import EVERY_S, is_pretended, no_answer, show_node
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, ReadTree

ID = "slurm.gres"
_NVIDIA = "/proc/driver/nvidia/gpus/*/information"
_AMD = "/sys/class/kfd/kfd/topology/nodes/*/gpu_id"
_GRES = re.compile(r"(?:^|\s)Gres=(\S{1,4096})")
_GPU = re.compile(r"(?:^|,)gpu(?::(?P<type>[^:,()]{1,64}))?:(?P<count>[0-9]{1,6})(?=$|[,(])")
_SLICE = re.compile(r"^[0-9]+g\.")
"""A MIG profile (`1g.10gb`): a part of a GPU."""


def probes(facts: Facts) -> tuple[Probe, ...]:
    conf = (facts.slurm_conf,) if facts.slurm_conf else ()
    return ReadTree(patterns=(_NVIDIA, _AMD)), ReadFiles(paths=conf), show_node(facts)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Where no driver lists any, the checks of the GPUs themselves and Slurm say what there is to say."""
    files, conf, shown = raws
    if is_pretended(conf.files.get(facts.slurm_conf)):
        return skipped("slurm.conf says config_overrides: its GPUs need not be there")
    found = _GRES.search(shown.output) if shown.returncode == 0 else None
    if found is None:
        return unknown(no_answer(shown, facts))
    parts = list(_GPU.finditer(found[1]))
    there = sum(_is_gpu(path, text) for path, text in files.files.items())
    if not parts or any(_SLICE.match(part["type"] or "") for part in parts):
        return skipped("Slurm has no whole GPUs on this node")
    if not there:
        return skipped("no driver lists a GPU here")
    told = sum(int(part["count"]) for part in parts)
    text = f"{there} GPUs are there, Slurm's Gres has {told}"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if there < told else passed(text)


def _is_gpu(path: str, text: str | None) -> bool:
    """The AMD driver lists CPUs as well, without a number of a GPU."""
    return not path.endswith("/gpu_id") or (text or "0").strip() not in ("", "0")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=EVERY_S,
    is_quick=False,
    title="fewer GPUs than Slurm gives to jobs",
    source="command",
    cost_ms=8.0,
)
