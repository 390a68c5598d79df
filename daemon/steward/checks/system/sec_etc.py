"""Files that every program takes for granted: a script that ran wild breaks them in ways that are hard to see."""

from steward.checks.check import Check, Facts, Verdict, failed, passed
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "sec.etc"
_USERS, _GROUPS, _NULL = "/etc/passwd", "/etc/group", "/dev/null"


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_USERS, _GROUPS, _NULL)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    files = raws[0].files
    wrong = [f"{path} has no root" for path in (_USERS, _GROUPS) if not _has_root(files.get(path))]
    if files.get(_NULL) != "":
        wrong.append(f"{_NULL} is not there or not empty")
    return (
        failed(", ".join(wrong), Severity.INFO, Advice.NONE)
        if wrong
        else passed("users, groups and /dev/null are sane")
    )


def _has_root(text: str | None) -> bool:
    """Accounts of thousands of users may be cut; root comes first everywhere."""
    lines = (line.split(":") for line in (text or "").splitlines())
    return any(len(words) > 2 and words[0] == "root" and words[2] == "0" for words in lines)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=3600.0,
    is_quick=False,
    title="accounts or /dev/null are broken",
    source="files",
    cost_ms=0.2,
)
