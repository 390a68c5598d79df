"""File handles that the kernel has left for all processes."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "os.files"
_HANDLES = "/proc/sys/fs/file-nr"
_NUMBERS = re.compile(r"^([0-9]{1,19})\s+([0-9]{1,19})\s+([0-9]{1,19})\s*$")
PERCENT = Threshold(
    name="os.files.percent", default=80.0, unit="%", text="A larger share in use is told.", low=1.0, high=100.0
)


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_HANDLES,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """A job can use them up: told, and no reason to act."""
    found = _NUMBERS.match(raws[0].files.get(_HANDLES) or "")
    if found is None or int(found[3]) == 0:
        return unknown(f"{_HANDLES} makes no sense")
    used = 100.0 * (int(found[1]) - int(found[2])) / int(found[3])
    text = f"{found[1]} file handles of {found[3]} ({used:.0f} %)"
    return failed(text, Severity.INFO, Advice.NONE) if used > facts.limit(PERCENT) else passed(text)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=60.0,
    title="file handles are used up",
    source="procfs",
    cost_ms=0.1,
    thresholds=(PERCENT,),
)
