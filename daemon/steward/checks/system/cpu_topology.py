"""The machine's CPUs against what Slurm was told: a core or a socket that the firmware or the kernel took out."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.slurm_node import EVERY_S, is_pretended, no_answer, number, show_node
from steward.checks.system.cpu_list import ONLINE, count
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles

ID = "cpu.topology"
_PRESENT = "/sys/devices/system/cpu/present"


def probes(facts: Facts) -> tuple[Probe, ...]:
    conf = (facts.slurm_conf,) if facts.slurm_conf else ()
    return ReadFiles(paths=(ONLINE, _PRESENT, *conf)), show_node(facts)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Slurm's CPUs are cores where the site schedules cores and threads where it schedules threads: in either case more
    than the machine has online cannot be. Fewer are the site's choice."""
    files, shown = raws
    if is_pretended(files.files.get(facts.slurm_conf)):
        return skipped("slurm.conf says config_overrides: its CPUs need not be there")
    online, wanted = count(files.files.get(ONLINE)), number(shown, "CPUTot")
    if online is None:
        return unknown(f"{ONLINE} is no list of CPUs")
    if wanted is None:
        return unknown(no_answer(shown, facts))
    present = count(files.files.get(_PRESENT)) or online
    text = f"{online} CPUs online of {present}, Slurm's CPUTot is {wanted}"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if online < wanted else passed(text)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=EVERY_S,
    is_quick=False,
    title="CPU cores that are not there any more",
    source="sysfs",
    cost_ms=8.0,
)
