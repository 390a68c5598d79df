"""`steward quota doctor --try`: jobs of our own show on this very cluster that limits hold, and that owners get back.

An account, two QOS and up to three jobs of one node, all with our mark, are made and taken away again at any end; what
a trial that was killed left behind is taken away by the next one, and its jobs end by themselves.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from steward.accounting_port import AccountingPort, TrialJob, TrialPort
from steward.model.accounting import borrowed_qos, guaranteed_qos
from steward.model.action.quota import Caps, DropQos, SetQos, SetTeam
from steward.model.ids import JobId, Key, NodeName
from steward.model.why import Why
from steward.ports import Permanent, PortError
from steward.workflows.doctor import Line, bad, ok, warn

TEAM = "steward-trial"
G, B = guaranteed_qos(TEAM), borrowed_qos(TEAM)
_TOPIC = "trial"
_KEY = Key("quota:trial")
_WHY = Why(rule="quota.trial", text="an admin runs `steward quota doctor --try`")
_UNTYPED = "gpu:1"
_HELD = ("QOSGrp", "QOSMax", "AssocGrp")
"""How Slurm's words begin for a job that a limit holds up."""
_POLL_S = 0.5


@dataclass(slots=True, kw_only=True)
class Trial:
    """`wait_s` is how long Slurm may take to start or to preempt a job (a scheduler's round or two)."""

    jobs: TrialPort
    accounts: AccountingPort
    node: NodeName
    partition: str
    preempts: bool
    kind: str = ""
    """The type of the node's GPUs; empty where it has none with one."""
    wait_s: float = 90.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> list[Line]:
        """Never raises for what Slurm refuses: that is a line, too. Whatever ends it, nothing of it stays."""
        found: list[Line] = []
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
        """Nothing of a trial is left in Slurm. Raises PortError."""
        until = self.now() + self.wait_s
        while self.jobs.end_all(TEAM):
            if self.now() >= until:
                raise Permanent(f"jobs of account {TEAM} do not end")
            self.sleep(_POLL_S)
        known = self.accounts.picture()
        if known.of_account(TEAM) is not None:
            self.accounts.set_team(SetTeam(key=_KEY, why=_WHY, account=TEAM, drop=frozenset({G, B}), default_qos=""))
            self.jobs.leave(TEAM)
        for name in (G, B):
            if name in known.qos:
                self.accounts.drop_qos(DropQos(key=_KEY, why=_WHY, qos=name))
        if TEAM in known.accounts:
            self.accounts.remove_account(TEAM)

    def _end(self) -> Iterator[Line]:
        try:
            self.clean()
        except PortError as error:
            remedy = f"scancel --account={TEAM}; then once more: steward quota doctor --try"
            yield warn(_TOPIC, f"not all of the trial could be taken away: {error}", remedy)

    def _set_up(self) -> None:
        self._qos(B, (("cpu", 0),), priority=1)
        preempts = frozenset({B}) if self.preempts else None
        self.accounts.set_qos(SetQos(key=_KEY, why=_WHY, qos=G, priority=1000, preempts=preempts))
        self.accounts.make_account(TEAM)
        names = frozenset({G, B})
        self.accounts.set_team(SetTeam(key=_KEY, why=_WHY, account=TEAM, add=names, default_qos=G))
        self.jobs.enter(TEAM)

    def _submit(self, qos: str, gres: str = "") -> JobId:
        return self.jobs.submit(TEAM, qos, partition=self.partition, node=self.node, gres=gres)

    def _qos(self, name: str, caps: Caps, priority: int | None = None) -> None:
        mode, grace = ("REQUEUE", 0) if priority is not None else (None, None)
        action = SetQos(key=_KEY, why=_WHY, qos=name, caps=caps, priority=priority, preempt_mode=mode, grace_s=grace)
        self.accounts.set_qos(action)

    def _limits(self) -> Iterator[Line]:
        """A limit of 0 holds a job up, and one that is raised lets it start."""
        id = self._submit(B)
        if self._runs_or_is_held(id):
            text = f"a job ran although its QOS was limited to cpu=0 (node {self.node}): Slurm holds nobody to a quota"
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

    def _types(self) -> Iterator[Line]:
        """A limit counts what was asked for: a GPU without a type passes the limit of a type."""
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

    def _reclaim(self) -> Iterator[Line]:
        """An owner's job takes the node of a borrowed one, which waits again."""
        if not self.preempts:
            text = "Slurm does not preempt by QOS here: Steward itself takes back what was lent (not tried)"
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

    def _started(self, id: JobId, when: str) -> Line:
        began = self.now()
        if self._runs(id):
            return ok(_TOPIC, f"a job of one node ran on {self.node} {self.now() - began:.1f} s {when}")
        text = f"job {id} did not run on {self.node} within {self.wait_s:g} s {when} ({self._reason(id)})"
        return warn(_TOPIC, text, "the node may have been taken by another job: try again when one is idle")

    def _runs(self, id: JobId) -> bool:
        """In time."""
        return self._wait(id, lambda job: job.state == "RUNNING")

    def _runs_or_is_held(self, id: JobId) -> bool:
        """True: it runs. False: a limit holds it up, or Slurm's scheduler did not come to it."""
        self._wait(id, lambda job: job.state == "RUNNING" or job.reason.startswith(_HELD))
        job = self.jobs.job(id)
        return job is not None and job.state == "RUNNING"

    def _wait(self, id: JobId, done: Callable[[TrialJob], bool]) -> bool:
        until = self.now() + self.wait_s
        while True:
            job = self.jobs.job(id)
            if job is not None and done(job):
                return True
            if self.now() >= until:
                return False
            self.sleep(_POLL_S)

    def _reason(self, id: JobId) -> str:
        job = self.jobs.job(id)
        return "Slurm does not know it any more" if job is None else job.reason or job.state
