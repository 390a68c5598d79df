"""As many GPUs as Slurm was told of: one that did not come back from a reboot was never seen by this agent."""

import re
from dataclasses import replace

from steward.checks.check import Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.gpu.look import nothing_to_judge, nvml_check, probes
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, RunProgram

_GRES = re.compile(r"\bGres=(\S{1,500})")
_GPU = re.compile(r"^gpu(?::([^:()]{1,64}))?:([0-9]{1,4})(?:\(.*)?$")
_EVERY_S = 3600.0
"""It asks slurmctld, and neither number changes while the node is up (the check `gpu` sees those that vanish)."""


def count_probes(facts: Facts) -> tuple[Probe, ...]:
    env = (("SLURM_CONF", facts.slurm_conf),) if facts.slurm_conf else ()
    show_node = RunProgram(argv=("scontrol", "--oneliner", "show", "node", facts.node), env=env, timeout_s=8.0)
    return (*probes(facts), show_node)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    look, shown = raws
    if (none := nothing_to_judge(look)) is not None:
        return none
    if shown.returncode != 0:
        return unknown(f"scontrol show node {facts.node}: rc={shown.returncode} {shown.output[:200]}")
    told = _told(shown.output)
    if told is None:
        return skipped("Slurm was told of no whole GPUs")
    there = len(look.gpus or ())
    text = f"{there} GPUs, Slurm was told of {told}"
    return failed(text, Severity.FATAL, Advice.REBOOT) if there < told else passed(text)


def _told(shown: str) -> int | None:
    """Whole GPUs of the node's Gres; None without any. Slices of GPUs (MIG, `gpu:1g.10gb:7`) cannot be compared."""
    gres = _GRES.search(shown)
    found = [match for word in _words(gres[1] if gres else "") if (match := _GPU.match(word))]
    if not found or any("g." in (match[1] or "") for match in found):
        return None
    return sum(int(match[2]) for match in found)


def _words(gres: str) -> list[str]:
    """Split at commas that are not within parentheses."""
    return re.split(r",(?![^(]*\))", gres)


CHECK = replace(
    nvml_check("gpu.count", judge, title="Fewer GPUs than Slurm was told of", every_s=_EVERY_S),
    probes=count_probes,
    source="command",
    cost_ms=10.0,
)
