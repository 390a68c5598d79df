"""Accounts, limits and QOS as read from slurmctld's copy of the accounting (assoc_mgr), and the names of teams' QOS.

Names of resources are Slurm's (TRES): `cpu`, `mem` (MiB), `node`, `gres/gpu`, `gres/gpu:l4`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

QOS_MARK = "steward: limits of a team"
"""The description of every QOS of Steward's."""
ACCOUNT_MARK = "steward"
"""The organization of every account of Steward's."""

Tres = Mapping[str, int]


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of this Slurm that quotas need, by its version and its configuration."""

    version: tuple[int, int] = (0, 0)
    marks: bool = False
    """Whether `min_exempt_priority` is set (23.02+): a running job with a higher priority is never preempted."""
    qos_lists: bool = False
    """Whether a job may have several QOS, tried in order, and counts in the one in which it runs (25.11+)."""
    preempts: bool = False
    """Whether Slurm itself makes room for an owner: `PreemptType=preempt/qos` with REQUEUE, in a version that reads
    Preempt lists as needed. Otherwise Steward signals, waits and requeues."""
    exempt_priority: int = 0
    """The value of `min_exempt_priority`."""
    backfill_s: float = 0.0
    """How often Slurm's backfill plans the starts of waiting jobs; 0: never."""
    miscounts_parts: bool = False
    """Whether each submission of a heterogeneous job takes its later parts out of the use that Slurm counts (26.05)."""
    counts_memory: bool = True
    """Whether memory bounds which jobs share a node (SelectTypeParameters=..._Memory)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """One QOS. `limits` holds the GrpTRES that are set; `used` is the current use that counts against them."""

    name: str
    description: str = ""
    priority: int = 0
    limits: Tres = field(default_factory=_none)
    used: Tres = field(default_factory=_none)
    preempts: frozenset[str] = frozenset()
    """The names of the QOS whose jobs its own jobs may preempt (Preempt)."""
    preempt_mode: str = ""
    grace_s: int = 0
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """The limits of an account (`user` empty) or of a user in it, on this cluster. `limits` and `used` as in Qos."""

    account: str
    user: str = ""
    parent: str = ""
    partition: str = ""
    uid: int | None = None
    """The uid of a user with limits; None: not looked up, or not known."""
    limits: Tres = field(default_factory=_none)
    used: Tres = field(default_factory=_none)
    qos: frozenset[str] = frozenset()
    """The QOS that its jobs may have."""
    default_qos: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account."""

    name: str
    description: str = ""
    organization: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """The whole picture of the accounting (`Observed.accounting` is None if the site has no quota).

    `at` is when slurmctld was asked (Unix s). `reachable`: slurmdbd answers, so that limits can be changed; otherwise
    they stay as they are. `trouble` is why the picture cannot be used; empty if it can.
    """

    at: float = 0.0
    cluster: str = ""
    reachable: bool = True
    trouble: str = ""
    enforce: frozenset[str] = frozenset()
    """Words of AccountingStorageEnforce, in lower case."""
    tracked: frozenset[str] = frozenset()
    """The TRES that Slurm counts (AccountingStorageTRES), its own four included."""
    can: Capabilities = Capabilities()
    accounts: Mapping[str, Account] = field(default_factory=lambda: MappingProxyType({}))
    associations: tuple[Association, ...] = ()
    qos: Mapping[str, Qos] = field(default_factory=lambda: MappingProxyType({}))
    _of_accounts: Mapping[str, Association] = field(init=False, repr=False, compare=False)
    _of_users: Mapping[str, tuple[Association, ...]] = field(init=False, repr=False, compare=False)

    _limited: Mapping[tuple[str, int | None], str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        accounts: dict[str, Association] = {}
        users: dict[str, list[Association]] = {}
        for each in self.associations:
            if each.user:
                users.setdefault(each.account, []).append(each)
            elif not each.partition:
                accounts.setdefault(each.account, each)
        limited = {(each.account, each.uid): each.user for each in self.associations if each.uid is not None}
        object.__setattr__(self, "_limited", limited)
        object.__setattr__(self, "_of_accounts", accounts)
        object.__setattr__(self, "_of_users", {account: tuple(found) for account, found in users.items()})

    @property
    def enforces_limits(self) -> bool:
        """Return whether Slurm enforces QOS and their limits."""
        return {"limits", "qos"} <= self.enforce

    def of_account(self, account: str) -> Association | None:
        """Return the account's own association; None if there is none."""
        return self._of_accounts.get(account)

    def line_of(self, account: str) -> Iterator[str]:
        """Yield the account and its ancestors, the nearest first, each once."""
        seen: set[str] = set()
        while account and account not in seen:
            seen.add(account)
            yield account
            has = self.of_account(account)
            account = has.parent if has is not None else ""

    def users_of(self, account: str) -> tuple[Association, ...]:
        """Return the associations of the account's users."""
        return self._of_users.get(account, ())

    def limited_user(self, account: str, uid: int, partition: str) -> Association | None:
        """Return the association of a user with limits in the account; None if the user has none.

        The association for this partition replaces the general one, even without limits of its own.
        """
        if (user := self._limited.get((account, uid))) is None:
            return None
        mine = {each.partition: each for each in self.users_of(account) if each.user == user}
        return mine.get(partition, mine.get(""))


# A team is a Slurm account; its name is part of the names of its two QOS. Only QOS with such names are Steward's.

QOS_PREFIX = "stw-"
"""The prefix of Steward's QOS: `stw-TEAM-g` and `stw-TEAM-b`."""
_LONGEST = 40

_FORM = re.compile(r"[a-z0-9](?:[-_.a-z0-9]*[a-z0-9])?")
_SLURMS = frozenset({"root"})
"""The accounts that every Slurm has."""


def guaranteed_qos(team: str) -> str:
    """Return the name of the QOS for a team's jobs within its own quota."""
    return f"{QOS_PREFIX}{team}-g"


def borrowed_qos(team: str) -> str:
    """Return the name of the QOS for a team's jobs on borrowed resources."""
    return f"{QOS_PREFIX}{team}-b"


def team_of_qos(qos: str) -> str:
    """Return the team of a QOS; empty for a QOS that is not Steward's."""
    return qos.removeprefix(QOS_PREFIX)[:-2] if qos.startswith(QOS_PREFIX) and qos.endswith(("-g", "-b")) else ""


def why_no_team(name: str) -> str:
    """Return why this cannot be a team's name, without quoting the possibly hostile name; empty if it can."""
    if not 1 <= len(name) <= _LONGEST:
        return f"it has {len(name)} characters, not 1 to {_LONGEST}"
    if not _FORM.fullmatch(name):
        return "it must be of a-z, 0-9, '-', '_' and '.', and begin and end with a letter or a digit"
    if name in _SLURMS:
        return "it is an account of Slurm's own"
    if name.startswith(QOS_PREFIX):
        return f"names that begin with {QOS_PREFIX} are Steward's own"
    return ""
