"""An accounting that keeps state, held to the contract that real Slurm passes. Its jobs are those of a fake Slurm."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from steward.adapters.slurm import rules, team_rules
from steward.adapters.slurm.team_rules import own_qos_name
from steward.model.accounting import ACCOUNT_MARK, QOS_MARK, Account, Accounting, Association, Capabilities, Qos, Tres
from steward.model.action import CancelJob, Caps, DropQos, MarkJob, MoveJob, SetNodeCount, SetQos, SetTeam
from steward.model.ids import JobId
from steward.model.job import Job, JobState, parse_tres
from steward.ports import Retryable, Stale

TRES = frozenset({"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages", "gres/gpu", "gres/gpu:l4"})
_WEAK = Capabilities(version=(22, 5))
_NO_DBD = Retryable("slurmdbd does not answer")


class Queue(Protocol):
    """The jobs that it counts, and their clock."""

    now: float

    @property
    def job_table(self) -> dict[JobId, Job]: ...


@dataclass(kw_only=True)
class FakeAccounting:
    """AccountingPort. `dbd_up` False: slurmdbd is dead, and slurmctld goes on with what it knows."""

    cluster: Queue
    can: Capabilities = _WEAK
    dbd_up: bool = True
    enforce: frozenset[str] = frozenset({"associations", "limits", "qos"})
    qos: dict[str, Qos] = field(
        default_factory=lambda: {"normal": Qos(name="normal", description="Normal QOS default")}
    )
    accounts: dict[str, Account] = field(default_factory=dict)
    teams: dict[str, Association] = field(default_factory=dict)
    """The accounts' own associations."""
    users: list[Association] = field(default_factory=list)
    """Users; one without a list of QOS, or without a default, has his account's."""
    edits: int = 0

    def add_account(self, name: str, *, below: str = "") -> None:
        """By an admin. It starts with the QOS of the account that it is `below`, and they go their own ways then."""
        has = self.teams[below].qos if below else frozenset({"normal"})
        self.accounts[name] = Account(name=name, organization=name, description=name)
        self.teams[name] = Association(account=name, parent=below or "root", qos=has)

    def set_user(self, user: Association) -> None:
        """By an admin."""
        self.users = [each for each in self.users if (each.account, each.user) != (user.account, user.user)] + [user]

    def picture(self) -> Accounting:
        qos = {name: replace(each, used=self._used(name)) for name, each in self.qos.items()}
        return Accounting(
            at=self.cluster.now,
            cluster="fake",
            reachable=self.dbd_up,
            enforce=self.enforce,
            tracked=TRES,
            can=self.can,
            accounts=MappingProxyType(dict(self.accounts)),
            associations=(
                *self.teams.values(),
                *(self._inherits(user, self.teams[user.account]) for user in self.users),
            ),
            qos=MappingProxyType(qos),
        )

    def set_qos(self, action: SetQos) -> None:
        name, caps = own_qos_name(action.qos), team_rules.limits(action.caps)
        self._edit()
        there = self.qos.get(name) or Qos(name=name, description=QOS_MARK)
        if there.description != QOS_MARK:
            raise team_rules.not_ours(name, there.description)
        if unknown := (action.preempts or frozenset()) - self.qos.keys():
            raise Stale(f"You gave a bad qos {min(unknown)!r}")
        said = {
            "priority": action.priority,
            "preempts": action.preempts,
            "preempt_mode": action.preempt_mode,
            "grace_s": action.grace_s,
        }
        changes = {key: value for key, value in said.items() if value is not None}
        self.qos[name] = replace(there, limits=_changed(there.limits, caps), **changes)  # type: ignore[arg-type]

    def drop_qos(self, action: DropQos) -> None:
        name = own_qos_name(action.qos)
        if any(job.qos == name and not job.is_over for job in self.cluster.job_table.values()):
            raise Stale(f"jobs are of QOS {name}: not deleted")
        self._edit()
        if any(name in each.qos or name == each.default_qos for each in (*self.teams.values(), *self.users)):
            raise Stale(f"QOS {name} is not deleted: an account may still use it")
        if name in self.qos and self.qos[name].description != QOS_MARK:
            raise team_rules.not_ours(name, self.qos[name].description)
        self.qos.pop(name, None)

    def set_team(self, action: SetTeam) -> None:
        account, caps = team_rules.team(action.account), team_rules.limits(action.caps)
        names = {own_qos_name(name) for name in action.add} | (
            {team_rules.plain(action.keep)} if action.keep else set()
        )
        gone = {own_qos_name(name) for name in action.drop}
        self._edit()
        if account not in self.teams:
            raise Stale(f"there is no account {account}")
        if names - self.qos.keys():
            raise Stale(f"You gave a bad qos {min(names - self.qos.keys())!r}")
        team = self.teams[account]
        default = team.default_qos if action.default_qos is None else action.default_qos
        self._modify(replace(team, limits=_changed(team.limits, caps), qos=team.qos | names))
        self._modify(replace(self.teams[account], default_qos=default))
        self._modify(replace(self.teams[account], qos=self.teams[account].qos - gone))

    def _modify(self, team: Association) -> None:
        """Slurm takes nothing of a change after which some user may not use what is his default."""
        users = (self._inherits(user, team) for user in self.users if user.account == team.account)
        for each in (team, *users):
            if each.default_qos and each.default_qos not in each.qos:
                raise Stale(f"{each.user or each.account} may not use what would be its default QOS")
        self.teams[team.account] = team

    def _inherits(self, user: Association, team: Association) -> Association:
        return replace(user, qos=user.qos or team.qos, default_qos=user.default_qos or team.default_qos)

    def make_account(self, name: str) -> None:
        team_rules.team(name)
        self._edit()
        if name not in self.accounts:
            self.add_account(name)
            self.accounts[name] = Account(name=name, organization=ACCOUNT_MARK, description="steward: team")

    def remove_account(self, name: str) -> None:
        team_rules.team(name)
        team_rules.may_remove_account(name, [*self.teams.values(), *self.users])
        self._edit()
        if name in self.accounts and self.accounts[name].organization != ACCOUNT_MARK:
            raise Stale(f"account {name} was not made by Steward: left alone")
        self.accounts.pop(name, None)
        self.teams.pop(name, None)

    def move_job(self, action: MoveJob) -> None:
        job = self._job(action.job)
        team = self.teams.get(job.account)
        team_rules.may_move(job, action.qos, team.qos if team else ())
        self._change(job, qos=",".join(action.qos))

    def mark_job(self, action: MarkJob) -> None:
        job = self._job(action.job)
        team_rules.may_mark(job, action.restart)
        if action.priority is not None or not job.is_held:
            self._change(job, priority=1 if action.priority is None else action.priority)

    def set_node_count(self, action: SetNodeCount) -> None:
        job = self._job(action.job)
        team_rules.may_count_nodes(job, action)
        self._change(job, node_count=action.least, most_nodes=action.most)

    def cancel_job(self, action: CancelJob) -> None:
        job = self._job(action.job)
        team_rules.may_cancel(job, action.restart)
        self._change(job, state=JobState.CANCELLED, ended=self.cluster.now)

    def _job(self, id: JobId) -> Job:
        return rules.require_job(self.cluster.job_table, id)

    def _change(self, job: Job, **changes: object) -> None:
        self.cluster.job_table[job.id] = replace(job, **changes)  # type: ignore[arg-type]

    def _edit(self) -> None:
        if not self.dbd_up:
            raise _NO_DBD
        self.edits += 1

    def _used(self, qos: str) -> Tres:
        used: dict[str, int] = {}
        for job in self.cluster.job_table.values():
            if job.is_active and job.qos == qos:
                for tres, count in parse_tres(job.allocated).items():
                    used[tres] = used.get(tres, 0) + count
        return MappingProxyType(used)


def _changed(limits: Tres, caps: Caps) -> Mapping[str, int]:
    changed: dict[str, int] = dict(limits)
    for tres, limit in caps:
        changed.pop(tres, None)
        if limit is not None:
            changed[tres] = limit
    return MappingProxyType(changed)
