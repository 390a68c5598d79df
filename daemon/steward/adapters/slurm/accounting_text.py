"""Read the output of `scontrol show assoc_mgr`, `scontrol show config` and `sacctmgr --parsable2` as model values.

Names are hostile: a coordinator of an account may make others, and Slurm takes `a|b` for a name and lines of text for a
description. So a row counts only with the right number of columns and plain names, the free text stands last, and a
repeated entry is not believed. No team is lost by that: its name is plain (`[a-z0-9_.-]`).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from steward.adapters.process import show
from steward.model.accounting import Account, Association, Capabilities, Qos, Tres
from steward.model.job import parse_tres
from steward.ports import Retryable

QOS_COLUMNS = "name,preempt,preemptmode,flags,gracetime,description"
ACCOUNT_COLUMNS = "account,organization,description"
ASSOCIATION_COLUMNS = "cluster,account,user,partition,parentname,qos,defaultqos,grptres"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,199}")
_QOS = re.compile(r"QOS=([A-Za-z0-9_][A-Za-z0-9_.+@-]{0,199})\([0-9]+\) ")
_GRP_TRES = re.compile(r" GrpTRES=(\S*) ")
_PRIORITY = re.compile(r" Priority=([0-9]+)(?: |$)")
_SUBMITTED = re.compile(r" GrpSubmitJobs=(?:N|[0-9]+)\(([0-9]+)\) ")
_COUNT = re.compile(r"([a-z]+(?:/[A-Za-z0-9_.:-]+)?)=(N|[0-9]+)\(([0-9]+)\)")
_MARKS, _LISTS, _MISCOUNTS = (23, 2), (25, 11), (26, 5)
"""The first versions in which a priority exempts from preemption, and lists of QOS count right."""
_BACKFILL_S = 30.0
"""Slurm's default for bf_interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The part of the accounting that only slurmdbd has. `qos` is its table as text."""

    qos: str = ""
    accounts: Mapping[str, Account] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()

    @classmethod
    def read(cls, sacctmgr: Callable[..., str], cluster: str) -> "Tables":
        """Return the tables; `sacctmgr` takes the words of a query and returns its table."""
        return cls(
            qos=sacctmgr("show", "qos", f"format={QOS_COLUMNS}"),
            accounts=accounts(sacctmgr("show", "account", f"format={ACCOUNT_COLUMNS}")),
            associations=associations(sacctmgr("show", "association", f"format={ASSOCIATION_COLUMNS}"), cluster),
        )


def qos_in_force(text: str) -> dict[str, Qos]:
    """Return limits, use and priority of each QOS from `scontrol --oneliner show assoc_mgr flags=qos`.

    Raises Retryable for other output.
    """
    if "QOS Records" not in text and "No QOS currently cached" not in text:
        raise Retryable(f"cannot read the answer of `scontrol show assoc_mgr`: {show(text)!r}")
    found: dict[str, Qos] = {}
    for line in text.splitlines():
        if (match := _QOS.match(line)) is None:
            continue
        limits, used = _counts(line)
        priority = _PRIORITY.search(line)
        found[match[1]] = Qos(name=match[1], limits=limits, used=used, priority=int(priority[1]) if priority else 0)
    return found


def jobs_of_qos(text: str, name: str) -> int | None:
    """Return how many jobs, waiting ones included, have this QOS; None if Slurm does not know the QOS."""
    for line in text.splitlines():
        match, count = _QOS.match(line), _SUBMITTED.search(line)
        if match and match[1] == name and count:
            return int(count[1])
    return None


def with_details(in_force: Mapping[str, Qos], table: str) -> dict[str, Qos]:
    """Return the QOS in force, with the details that only slurmdbd has (`QOS_COLUMNS`)."""
    found = dict(in_force)
    for name, preempt, mode, flags, grace, description in rows(table, 6):
        if name in found:
            found[name] = replace(
                in_force[name],
                preempts=_words(preempt),
                preempt_mode="" if mode.lower() == "cluster" else mode.upper(),
                flags=_words(flags),
                grace_s=_seconds(grace),
                description=description,
            )
    return found


def accounts(table: str) -> dict[str, Account]:
    """Return the accounts with plain names (`ACCOUNT_COLUMNS`)."""
    found: dict[str, Account] = {}
    for name, organization, description in rows(table, 3):
        if _NAME.fullmatch(name):
            # an account that is listed twice gets no organization and no description
            is_new = name not in found
            found[name] = Account(
                name=name,
                organization=organization if is_new else "",
                description=description if is_new else "",
            )
    return found


def associations(table: str, cluster: str) -> tuple[Association, ...]:
    """Return the associations of this cluster whose names are all plain (columns: `ASSOCIATION_COLUMNS`)."""
    found: list[Association] = []
    for there, account, user, partition, parent, qos, default, limits in rows(table, 8):
        names = [name for name in (account, user, partition, parent) if name]
        if "|" not in limits and there == cluster and account and all(_NAME.fullmatch(name) for name in names):
            found.append(
                Association(
                    account=account,
                    user=user,
                    partition=partition,
                    parent=parent,
                    qos=_words(qos),
                    default_qos=default,
                    limits=parse_tres(limits),
                )
            )
    return tuple(found)


def who_may_use(qos: str, table: str) -> str:
    """Return the first association of any cluster that names the QOS, and the command to change that; empty if none."""
    # all clusters of a slurmdbd share its QOS
    for there, account, user, _, _, names, default, _ in rows(table, 8):
        if qos == default or qos in names.split(","):
            who, change = f"account {account}", "defaultqos=-1" if qos == default else f"qos-={qos}"
            where = f"account where name={account}"
            if user:
                who, where = f"user {user} of {who}", f"user where name={user} account={account}"
            return show(f"{who} may still use it: sacctmgr modify {where} cluster={there} set {change}")
    return ""


def capabilities(config: Mapping[str, str], version: tuple[int, int]) -> Capabilities:
    """Return what this Slurm can do; `config` is as `scontrol show config` prints it."""
    exempt = re.search(r"(?:^|,)min_exempt_priority=([0-9]+)(?:,|$)", config.get("PreemptParameters", ""))
    is_by_qos = config.get("PreemptType", "") == "preempt/qos"
    return Capabilities(
        version=version,
        marks=exempt is not None and version >= _MARKS,
        exempt_priority=int(exempt[1]) if exempt else 0,
        qos_lists=version >= _LISTS,
        preempts=is_by_qos and "REQUEUE" in config.get("PreemptMode", "") and version >= _MARKS,
        backfill_s=_backfill_s(config),
        miscounts_parts=version >= _MISCOUNTS,
        counts_memory="MEMORY" in config.get("SelectTypeParameters", "MEMORY").upper(),
    )


def _backfill_s(config: Mapping[str, str]) -> float:
    """Return the interval of Slurm's backfill; 0 without one."""
    if config.get("SchedulerType", "") != "sched/backfill":
        return 0.0
    found = re.search(r"(?:^|,)bf_interval=(-?[0-9]+)(?:,|$)", config.get("SchedulerParameters", ""))
    return max(float(found[1]), 0.0) if found else _BACKFILL_S  # -1 turns it off


def _counts(line: str) -> tuple[Tres, Tres]:
    """Return the limits that are set, and the use that is not 0."""
    limits, used = {}, {}
    tres = _GRP_TRES.search(line)
    for match in _COUNT.finditer(tres[1] if tres else ""):
        if match[2] != "N":
            limits[match[1]] = int(match[2])
        if match[3] != "0":
            used[match[1]] = int(match[3])
    return MappingProxyType(limits), MappingProxyType(used)


def rows(table: str, columns: int) -> Iterable[list[str]]:
    """Yield the rows with this number of columns; further bars belong to the last one."""
    for line in table.split("\n"):
        row = line.split("|", columns - 1)
        if len(row) == columns:
            yield row


def _words(text: str) -> frozenset[str]:
    """Return the words of a comma list."""
    return frozenset(word for word in text.split(",") if word)


def _seconds(text: str) -> int:
    """Return `1-00:05:30` in seconds; 0 for other text."""
    days, _, clock = text.rpartition("-")
    parts = clock.split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in (*parts, days or "0")):
        return 0
    return ((int(days or 0) * 24 + int(parts[0])) * 60 + int(parts[1])) * 60 + int(parts[2])
