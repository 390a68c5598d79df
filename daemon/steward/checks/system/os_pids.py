"""Process numbers that are left. Threads have one, too."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "os.pids"
_LOAD = "/proc/loadavg"
_LIMITS = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")
_TASKS = re.compile(r"^[0-9. ]{1,40} [0-9]{1,9}/([0-9]{1,9}) ")
PERCENT = Threshold(
    name="os.pids.percent", default=80.0, unit="%", text="A larger share in use is told.", low=1.0, high=100.0
)


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_LOAD, *_LIMITS)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """A job can use them up: told, and no reason to act."""
    files = raws[0].files
    tasks = _TASKS.match(files.get(_LOAD) or "")
    limits = [int(text) for path in _LIMITS if (text := (files.get(path) or "").strip()[:15]).isdecimal()]
    limit = min(limits, default=0)
    if tasks is None or limit <= 0:
        return unknown(f"{_LOAD} or {_LIMITS[0]} makes no sense")
    used = 100.0 * int(tasks[1]) / limit
    text = f"{tasks[1]} processes and threads of {limit} ({used:.0f} %)"
    return failed(text, Severity.INFO, Advice.NONE) if used > facts.limit(PERCENT) else passed(text)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=60.0,
    title="process numbers are used up",
    source="procfs",
    cost_ms=0.2,
    thresholds=(PERCENT,),
)
