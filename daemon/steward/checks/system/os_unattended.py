"""Updates that reboot the machine by themselves, jobs or not."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree

ID = "os.unattended"
_APT, _DNF = "/etc/apt/apt.conf.d/*", "/etc/dnf/automatic.conf"
_APT_SAID = re.compile(r'^\s*Unattended-Upgrade::Automatic-Reboot\s+"?(\w{1,16})"?\s*;', re.MULTILINE)
_APT_RUNS = re.compile(r'^\s*APT::Periodic::Unattended-Upgrade\s+"?(\w{1,16})"?\s*;', re.MULTILINE)
_DNF_SAID = re.compile(r"^\s*reboot\s*=\s*(when-changed|when-needed)\s*$", re.MULTILINE)
_NO = frozenset({"0", "no", "false", "off", "never"})


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    return (ReadTree(patterns=(_APT, _DNF)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """apt reads its files in order, the last word counts."""
    files = raws[0].files
    if not files:
        return skipped("no automatic updates are set up")
    apt = "\n".join(text or "" for path, text in sorted(files.items()) if path != _DNF)
    if _is_on(_APT_SAID, apt) and _is_on(_APT_RUNS, apt):
        return failed("unattended-upgrades may reboot this node (Automatic-Reboot)", Severity.INFO, Advice.NONE)
    if _DNF_SAID.search(files.get(_DNF) or ""):
        return failed("dnf-automatic may reboot this node (automatic.conf)", Severity.INFO, Advice.NONE)
    return passed("no update reboots this node by itself")


def _is_on(said: "re.Pattern[str]", text: str) -> bool:
    words = said.findall(text)
    return bool(words) and words[-1].lower() not in _NO


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=3600.0,
    is_quick=False,
    title="updates may reboot the node by themselves",
    source="files",
    cost_ms=0.5,
)
