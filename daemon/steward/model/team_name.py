"""Which names a team may have: it becomes a Slurm account and part of the names of its two QOS. Only QOS that are
called so are ours."""

import re

PREFIX = "stw-"
"""QOS that begin so are ours: `stw-TEAM-g` and `stw-TEAM-b`."""
LONGEST = 40

_FORM = re.compile(r"[a-z0-9](?:[-_.a-z0-9]*[a-z0-9])?")
_SLURMS = frozenset({"root"})
"""Accounts that every Slurm has."""


def guaranteed_qos(team: str) -> str:
    return f"{PREFIX}{team}-g"


def borrowed_qos(team: str) -> str:
    return f"{PREFIX}{team}-b"


def team_of_qos(qos: str) -> str:
    """Empty for one that is not ours."""
    return qos.removeprefix(PREFIX)[:-2] if qos.startswith(PREFIX) and qos.endswith(("-g", "-b")) else ""


def why_no_team(name: str) -> str:
    """Why this cannot be a team's name; empty: it can. The answer does not repeat what may be hostile."""
    if not 1 <= len(name) <= LONGEST:
        return f"it has {len(name)} characters, not 1 to {LONGEST}"
    if not _FORM.fullmatch(name):
        return "it must be of a-z, 0-9, '-', '_' and '.', and begin and end with a letter or a digit"
    if name in _SLURMS:
        return "it is an account of Slurm's own"
    if name.startswith(PREFIX):
        return f"names that begin with {PREFIX} are Steward's own"
    return ""
