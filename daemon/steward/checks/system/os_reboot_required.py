"""A reboot that the machine wants, or has been told to make by itself."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "os.reboot_required"
_WANTED, _PACKAGES = "/run/reboot-required", "/run/reboot-required.pkgs"
_SCHEDULED = "/run/systemd/shutdown/scheduled"
_AT = re.compile(r"^USEC=([0-9]{1,19})$", re.MULTILINE)
_SHOWN = 5


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_WANTED, _PACKAGES, _SCHEDULED)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    files = raws[0].files
    scheduled = files.get(_SCHEDULED)
    if scheduled is not None:
        at = _AT.search(scheduled)
        when = f" in {(int(at[1]) / 1e6 - past.now) / 60:.0f} min" if at else ""
        return failed(f"a shutdown or reboot is scheduled{when}", Severity.INFO, Advice.NONE)
    if files.get(_WANTED) is not None:
        packages = sorted(set((files.get(_PACKAGES) or "").split()))
        named = f" for {', '.join(packages[:_SHOWN])}" if packages else ""
        return failed(f"a reboot is wanted{named}", Severity.INFO, Advice.NONE)
    return passed("no reboot is wanted")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=300.0,
    is_quick=False,
    title="a reboot is wanted or scheduled",
    source="files",
    cost_ms=0.1,
)
