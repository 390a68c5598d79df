"""Processes that have ended and that nobody collects."""

from collections import Counter

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.cpu_list import ONLINE, count
from steward.checks.system.rhythm import PROCESSES_S
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import ListProcesses, Probe, Raw, ReadFiles

ID = "os.zombie"
PER_CPU = Threshold(
    name="os.zombie.per_cpu", default=50.0, unit="processes", text="More zombies for each CPU are told.", low=1.0
)


def probes(facts: Facts) -> tuple[Probe, ...]:
    return ListProcesses(), ReadFiles(paths=(ONLINE,))


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    listed, files = raws
    if not listed.processes:
        return skipped("/proc lists no process here")
    limit = facts.limit(PER_CPU) * (count(files.files.get(ONLINE)) or 1)
    parents = Counter(process.parent for process in listed.processes if process.state == "Z")
    text = f"{parents.total()} zombies"
    if parents.total() <= limit:
        return passed(text)
    parent, most = parents.most_common(1)[0]
    return failed(f"{text}, {most} of them of process {parent} (limit {limit:g})", Severity.INFO, Advice.NONE)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=PROCESSES_S,
    is_quick=False,
    title="processes that nobody collects",
    source="procfs",
    cost_ms=0.3,
    thresholds=(PER_CPU,),
)
