"""`steward quota setup`: show what Slurm needs for quotas, and make accounts and QOS if asked.

Also `steward quota doctor --try`, which shows that quotas work. Lines of slurm.conf are for the admin to write.
Accounts and QOS are made only when asked for and when no setting is missing that quotas need: nothing is half set up.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from steward.accounting_port import AccountingPort, TrialJob, TrialPort
from steward.model.accounting import ACCOUNT_MARK, QOS_MARK, Accounting, borrowed_qos, guaranteed_qos
from steward.model.action import Caps, DropQos, SetQos, SetTeam
from steward.model.ids import JobId, Key, NodeName
from steward.model.why import Why
from steward.ports import Permanent, PortError
from steward.workflows.doctor import DoctorLine, bad, ok, warn
from steward.workflows.doctor_quota import Site, conf_lines, missing

_WHY = Why(rule="quota.setup", text="an admin runs `steward quota setup --apply`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The missing parts. `conf`: lines for slurm.conf. `accounts` and `qos` must be made; `teams` lack their QOS."""

    conf: tuple[str, ...]
    accounts: tuple[str, ...]
    qos: tuple[str, ...]
    teams: Mapping[str, tuple[str, ...]]

    @property
    def is_done(self) -> bool:
        """Return whether nothing is missing."""
        return not (self.conf or self.accounts or self.qos or self.teams)

    def commands(self, cluster: str) -> Iterator[str]:
        """Yield the commands that an admin would type for the same result."""
        for account in self.accounts:
            words = f"organization={ACCOUNT_MARK} description='steward: team'"
            yield f"sacctmgr -i add account {account} cluster={cluster} {words}"
        for name in self.qos:
            yield f"sacctmgr -i add qos {name} description='{QOS_MARK}'"
        for account, names in self.teams.items():
            for words in (f"qos+={','.join(names)}", f"defaultqos={names[0]}"):  # Slurm may refuse the second alone
                yield f"sacctmgr -i modify account where name={account} cluster={cluster} set {words}"


def needed(site: Site, borrowers: Collection[str]) -> Setup:
    """Return the missing parts for the teams of `site`; those of `borrowers` may borrow."""
    picture = site.picture
    names = {team: _names(team, team in borrowers) for team in sorted(site.teams)}
    return Setup(
        conf=tuple(conf_lines(site)),
        accounts=tuple(team for team in names if picture.of_account(team) is None),
        qos=tuple(name for each in names.values() for name in each if name not in picture.qos),
        teams={team: each for team, each in names.items() if not _may_use(picture, team, each)},
    )


def carry_out(setup: Setup, site: Site, port: AccountingPort) -> None:
    """Make accounts and QOS; repeating it is success.

    Raises Permanent, with the line to add and before any change, if quotas cannot work.
    """
    if lacking := missing(site):
        raise Permanent(f"{lacking[0].text}. To do: {lacking[0].remedy}. Nothing was changed")
    for name in setup.qos:
        port.set_qos(SetQos(key=Key(f"setup:{name}"), why=_WHY, qos=name))
    for account in setup.accounts:
        port.make_account(account)
    for account, names in setup.teams.items():
        key = Key(f"setup:{account}")
        port.set_team(SetTeam(key=key, why=_WHY, account=account, add=frozenset(names), default_qos=names[0]))


def _names(team: str, borrows: bool) -> tuple[str, ...]:
    """Return the team's QOS."""
    return (guaranteed_qos(team), borrowed_qos(team)) if borrows else (guaranteed_qos(team),)


def _may_use(picture: Accounting, team: str, names: tuple[str, ...]) -> bool:
    """Return whether the team's account has its QOS."""
    there = picture.of_account(team)
    return there is not None and set(names) <= there.qos and there.default_qos == names[0]


# `steward quota doctor --try`: jobs of our own show that limits hold on this cluster, and that owners can reclaim.
#
# An account, two QOS and up to three jobs of one node, all with our mark, are made and taken away again at any end;
# the next trial removes the remains of one that was killed, whose jobs end by themselves.

TEAM = "steward-trial"
G, B = guaranteed_qos(TEAM), borrowed_qos(TEAM)
_TOPIC = "trial"
_KEY = Key("quota:trial")
_WHY_TRIAL = Why(rule="quota.trial", text="an admin runs `steward quota doctor --try`")
_UNTYPED = "gpu:1"
_HELD = ("QOSGrp", "QOSMax", "AssocGrp")
"""The beginnings of Slurm's reasons for a job that a limit holds up."""
_POLL_S = 0.5


@dataclass(slots=True, kw_only=True)
class QuotaTrial:
    """A trial of quotas on one node.

    `wait_s` is how long Slurm may take to start or to preempt a job (a scheduler's round or two).
    """

    jobs: TrialPort
    accounts: AccountingPort
    node: NodeName
    partition: str
    preempts: bool
    kind: str = ""
    """The type of the node's GPUs; empty if it has none."""
    wait_s: float = 90.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> list[DoctorLine]:
        """Try limits and reclaims; return the lines.

        A refusal of Slurm is a line, too; the remains are always removed.
        """
        found: list[DoctorLine] = []
        try:
            self.clean()
            self._set_up()
            found += self._limits()
            found += self._types()
            found += self._reclaim()
        except PortError as error:
            found.append(bad(_TOPIC, f"Slurm refused: {error}", "mend that, then try again: nothing was left behind"))
        finally:
            found += self._end()
        return found

    def clean(self) -> None:
        """Remove the remains of a trial from Slurm. Raises PortError."""
        until = self.now() + self.wait_s
        while self.jobs.end_all(TEAM):
            if self.now() >= until:
                raise Permanent(f"jobs of account {TEAM} do not end")
            self.sleep(_POLL_S)
        known = self.accounts.picture()
        if known.of_account(TEAM) is not None:
            self.accounts.set_team(
                SetTeam(key=_KEY, why=_WHY_TRIAL, account=TEAM, drop=frozenset({G, B}), default_qos="")
            )
            self.jobs.leave(TEAM)
        for name in (G, B):
            if name in known.qos:
                self.accounts.drop_qos(DropQos(key=_KEY, why=_WHY_TRIAL, qos=name))
        if TEAM in known.accounts:
            self.accounts.remove_account(TEAM)

    def _end(self) -> Iterator[DoctorLine]:
        """Remove the remains; yield a line if that failed."""
        try:
            self.clean()
        except PortError as error:
            remedy = f"scancel --account={TEAM}; then once more: steward quota doctor --try"
            yield warn(_TOPIC, f"not all of the trial could be taken away: {error}", remedy)

    def _set_up(self) -> None:
        """Make the account and its QOS."""
        self._qos(B, (("cpu", 0),), priority=1)
        preempts = frozenset({B}) if self.preempts else None
        self.accounts.set_qos(SetQos(key=_KEY, why=_WHY_TRIAL, qos=G, priority=1000, preempts=preempts))
        self.accounts.make_account(TEAM)
        names = frozenset({G, B})
        self.accounts.set_team(SetTeam(key=_KEY, why=_WHY_TRIAL, account=TEAM, add=names, default_qos=G))
        self.jobs.enter(TEAM)

    def _submit(self, qos: str, gres: str = "") -> JobId:
        return self.jobs.submit(TEAM, qos, partition=self.partition, node=self.node, gres=gres)

    def _qos(self, name: str, caps: Caps, priority: int | None = None) -> None:
        mode, grace = ("REQUEUE", 0) if priority is not None else (None, None)
        action = SetQos(
            key=_KEY, why=_WHY_TRIAL, qos=name, caps=caps, priority=priority, preempt_mode=mode, grace_s=grace
        )
        self.accounts.set_qos(action)

    def _limits(self) -> Iterator[DoctorLine]:
        """Try whether a limit of 0 holds a job up, and whether raising it lets the job start."""
        id = self._submit(B)
        if self._runs_or_is_held(id):
            text = f"a job ran although its QOS was limited to cpu=0 (node {self.node}): Slurm does not enforce quotas"
            yield bad(_TOPIC, text, "slurm.conf: AccountingStorageEnforce=associations,limits,qos; restart slurmctld")
        elif not self._reason(id).startswith(_HELD):
            yield warn(
                _TOPIC, f"Slurm's scheduler had not come to a job in {self.wait_s:g} s", "again, with less to do"
            )
        else:
            yield ok(_TOPIC, f"a limit of 0 held a job up ({self._reason(id)})")
            self._qos(B, (("cpu", None),))
            yield self._started(id, "after its limit was raised")
        self.jobs.end_all(TEAM)
        self._qos(B, (("cpu", None),))

    def _types(self) -> Iterator[DoctorLine]:
        """Try whether a request without a type of GPU passes the limit of a type."""
        if not self.kind:
            return
        self._qos(B, ((f"gres/gpu:{self.kind}", 0),))
        id = self._submit(B, _UNTYPED)
        if self._runs_or_is_held(id):
            text = f"--gres={_UNTYPED} passed a limit of gres/gpu:{self.kind}=0: Slurm counts what was asked for"
            yield ok(_TOPIC, f"{text}. Steward limits gres/gpu as well, so that the sum holds")
        elif self._reason(id).startswith(_HELD):
            yield ok(_TOPIC, f"--gres={_UNTYPED} was held up by a limit of gres/gpu:{self.kind} alone")
        self.jobs.end_all(TEAM)
        self._qos(B, ((f"gres/gpu:{self.kind}", None),))

    def _reclaim(self) -> Iterator[DoctorLine]:
        """Try whether an owner's job gets the node of a borrowed one, which then waits again."""
        if not self.preempts:
            text = "Slurm does not preempt by QOS here: Steward itself reclaims what was lent (not tried)"
            yield warn(_TOPIC, text, "see the lines above")
            return
        lent = self._submit(B)
        if not self._runs(lent):
            yield self._started(lent, "as a borrowed job")
            return
        began, own = self.now(), self._submit(G)
        if not self._runs(own):
            text = f"an owner's job got no node from a borrowed one within {self.wait_s:g} s ({self._reason(own)})"
            yield bad(_TOPIC, text, "slurm.conf: PreemptType=preempt/qos and PreemptMode=REQUEUE; steward quota setup")
            return
        took, after = self.now() - began, self.jobs.job(lent)
        if after is None or after.restarts == 0:
            text = "the borrowed job was ended, not put back into the queue"
            yield warn(_TOPIC, text, "slurm.conf: PreemptMode=REQUEUE and JobRequeue=1")
        yield ok(_TOPIC, f"an owner's job had the node of a borrowed one after {took:.1f} s")

    def _started(self, id: JobId, when: str) -> DoctorLine:
        """Return the line about whether the job started."""
        began = self.now()
        if self._runs(id):
            return ok(_TOPIC, f"a job of one node ran on {self.node} {self.now() - began:.1f} s {when}")
        text = f"job {id} did not run on {self.node} within {self.wait_s:g} s {when} ({self._reason(id)})"
        return warn(_TOPIC, text, "the node may have been taken by another job: try again when one is idle")

    def _runs(self, id: JobId) -> bool:
        """Return whether the job runs in time."""
        return self._wait(id, lambda job: job.state == "RUNNING")

    def _runs_or_is_held(self, id: JobId) -> bool:
        """Return whether the job runs; False if a limit holds it up, or Slurm's scheduler did not reach it in time."""
        self._wait(id, lambda job: job.state == "RUNNING" or job.reason.startswith(_HELD))
        job = self.jobs.job(id)
        return job is not None and job.state == "RUNNING"

    def _wait(self, id: JobId, done: Callable[[TrialJob], bool]) -> bool:
        """Wait for the job's state; return whether it came in time."""
        until = self.now() + self.wait_s
        while True:
            job = self.jobs.job(id)
            if job is not None and done(job):
                return True
            if self.now() >= until:
                return False
            self.sleep(_POLL_S)

    def _reason(self, id: JobId) -> str:
        """Return Slurm's reason for the job's state."""
        job = self.jobs.job(id)
        return "Slurm does not know it any more" if job is None else job.reason or job.state
