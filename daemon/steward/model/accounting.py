"""Accounts, limits and QOS of Slurm's accounting (slurmctld's copy of it: assoc_mgr), as they were read; and which of
them are teams', by their names.

Names of resources are Slurm's (TRES): `cpu`, `mem` (MiB), `node`, `gres/gpu`, `gres/gpu:l4`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

QOS_MARK = "steward: limits of a team"
"""The description of every QOS of ours."""
ACCOUNT_MARK = "steward"
"""The organization of every account of ours."""

Tres = Mapping[str, int]


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of this Slurm that quotas rest on, by its version and its configuration."""

    version: tuple[int, int] = (0, 0)
    marks: bool = False
    """`min_exempt_priority` is set (23.02+): a running job with a higher priority is never preempted."""
    qos_lists: bool = False
    """A job may have several QOS, tried in order, and is counted in the one that it runs in (25.11+)."""
    preempts: bool = False
    """`PreemptType=preempt/qos` with REQUEUE, and the version reads Preempt lists as we need them: Slurm itself makes
    room for an owner. Otherwise we signal, wait and requeue."""
    exempt_priority: int = 0
    """The value of `min_exempt_priority`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """One QOS. `limits` are GrpTRES, without those that are not set; `used` is what counts against them now."""

    name: str
    description: str = ""
    priority: int = 0
    limits: Tres = field(default_factory=_none)
    used: Tres = field(default_factory=_none)
    preempts: frozenset[str] = frozenset()
    """Names of the QOS whose jobs give way to its own (Preempt)."""
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
    """The user's, where he has limits; None: nobody looked, or no such user is known."""
    limits: Tres = field(default_factory=_none)
    used: Tres = field(default_factory=_none)
    qos: frozenset[str] = frozenset()
    """Which QOS its jobs may have."""
    default_qos: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    description: str = ""
    organization: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """The whole picture. None in its place (`Observed.accounting`): nobody looked, the site has no quota.

    `at` is when slurmctld was asked (Unix s). `reachable`: slurmdbd answers, so that limits can be changed;
    otherwise they stay as they are. `trouble` is why the picture cannot be used, empty when it can.
    """

    at: float = 0.0
    cluster: str = ""
    reachable: bool = True
    trouble: str = ""
    enforce: frozenset[str] = frozenset()
    """Words of AccountingStorageEnforce, in lower case."""
    tracked: frozenset[str] = frozenset()
    """TRES that are counted (AccountingStorageTRES), Slurm's own four among them."""
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
        """Slurm holds jobs to their QOS and to its limits."""
        return {"limits", "qos"} <= self.enforce

    def of_account(self, account: str) -> Association | None:
        """The account's own association."""
        return self._of_accounts.get(account)

    def line_of(self, account: str) -> Iterator[str]:
        """The account and those above it, the nearest first, each once."""
        seen: set[str] = set()
        while account and account not in seen:
            seen.add(account)
            yield account
            has = self.of_account(account)
            account = has.parent if has is not None else ""

    def users_of(self, account: str) -> tuple[Association, ...]:
        """The associations of the account's users."""
        return self._of_users.get(account, ())

    def limited_user(self, account: str, uid: int, partition: str) -> Association | None:
        """The association of a user who has limits in the account: the one for this partition takes the place of the
        other one, also without limits."""
        if (user := self._limited.get((account, uid))) is None:
            return None
        mine = {each.partition: each for each in self.users_of(account) if each.user == user}
        return mine.get(partition, mine.get(""))


# A team: it is a Slurm account, and its name is part of the names of its two QOS. Only QOS that are called so are ours.

QOS_PREFIX = "stw-"
"""QOS that begin so are ours: `stw-TEAM-g` and `stw-TEAM-b`."""
_LONGEST = 40

_FORM = re.compile(r"[a-z0-9](?:[-_.a-z0-9]*[a-z0-9])?")
_SLURMS = frozenset({"root"})
"""Accounts that every Slurm has."""


def guaranteed_qos(team: str) -> str:
    return f"{QOS_PREFIX}{team}-g"


def borrowed_qos(team: str) -> str:
    return f"{QOS_PREFIX}{team}-b"


def team_of_qos(qos: str) -> str:
    """Empty for one that is not ours."""
    return qos.removeprefix(QOS_PREFIX)[:-2] if qos.startswith(QOS_PREFIX) and qos.endswith(("-g", "-b")) else ""


def why_no_team(name: str) -> str:
    """Why this cannot be a team's name; empty: it can. The answer does not repeat what may be hostile."""
    if not 1 <= len(name) <= _LONGEST:
        return f"it has {len(name)} characters, not 1 to {_LONGEST}"
    if not _FORM.fullmatch(name):
        return "it must be of a-z, 0-9, '-', '_' and '.', and begin and end with a letter or a digit"
    if name in _SLURMS:
        return "it is an account of Slurm's own"
    if name.startswith(QOS_PREFIX):
        return f"names that begin with {QOS_PREFIX} are Steward's own"
    return ""
