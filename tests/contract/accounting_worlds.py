"""What the contract of accounting needs of a world besides the port: admins, users and time, fake and real."""

import getpass
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from steward.model.accounting import Accounting, Association, Qos
from steward.model.ids import JobId
from steward.model.job import Job, JobState, parse_tres
from steward.ports import AccountingPort
from steward_bed.bed import Bed
from steward_bed.faults import FaultKind, fault
from steward_bed.wait import wait_until
from tests.contract.slurm_worlds import WorldOfJobs
from tests.fakes.accounting import FakeAccounting
from tests.fakes.slurm_cluster import FakeCluster


class AccountingWorld(WorldOfJobs, Protocol):
    """Two nodes of 4 GPUs of type l4 each; no account but root and everybody's."""

    port: AccountingPort

    def add_account(self, name: str, *, below: str = "") -> None:
        """By an admin, with a user who may submit; `below` another account."""

    def add_qos(self, name: str, description: str) -> None:
        """By an admin."""

    def set_user(self, account: str, *, qos: str = "", default_qos: str = "") -> None:
        """By an admin: the account's user has a list of QOS of his own, a default of his own, or both."""

    def submit(self, account: str, *, gpus: int = 1, qos: str = "", hold: bool = False, tasks: int = 0) -> JobId:
        """A job of one CPU that runs until it is cancelled; `tasks`: an array of so many, one at a time."""

    def requeue(self, job: JobId) -> None: ...

    def kill_slurmdbd(self) -> None: ...

    def start_slurmdbd(self) -> None: ...

    def picture(self) -> Accounting:
        found = self.port.picture()
        assert found.trouble == ""
        return found

    def qos(self, name: str) -> Qos:
        return self.picture().qos[name]

    def team(self, account: str) -> Association:
        found = self.picture().of_account(account)
        assert found is not None
        return found


@dataclass(kw_only=True)
class FakeWorld(AccountingWorld):
    """A job starts when its QOS and its account have room for it; nodes are not counted."""

    fake: FakeAccounting
    cluster: FakeCluster

    def __post_init__(self) -> None:
        self.port = self.fake

    def add_account(self, name: str, *, below: str = "") -> None:
        self.fake.add_account(name, below=below)

    def add_qos(self, name: str, description: str) -> None:
        self.fake.qos[name] = Qos(name=name, description=description)

    def set_user(self, account: str, *, qos: str = "", default_qos: str = "") -> None:
        names = frozenset(filter(None, qos.split(",")))
        self.fake.set_user(Association(account=account, user="ann", qos=names, default_qos=default_qos))

    def submit(self, account: str, *, gpus: int = 1, qos: str = "", hold: bool = False, tasks: int = 0) -> JobId:
        cluster = self.cluster
        id = cluster.submit(hold=hold)
        default = self.fake.teams[account].default_qos or "normal"
        told = replace(
            cluster.job_table[id],
            account=account,
            qos=qos or default,
            requested=f"cpu=1,gres/gpu={gpus},node=1",
            array_job_id=id if tasks else None,
            waiting_tasks=max(tasks, 1),
        )
        cluster.job_table[id] = told
        return id

    def requeue(self, job: JobId) -> None:
        found = self.job(job)
        changed = replace(found, state=JobState.PENDING, restarts=found.restarts + 1, allocated="")
        self.fake.cluster.job_table[job] = changed

    def job(self, job: JobId) -> Job:
        return self.fake.cluster.job_table[job]

    def kill_slurmdbd(self) -> None:
        self.fake.dbd_up = False

    def start_slurmdbd(self) -> None:
        self.fake.dbd_up = True

    def step(self) -> None:
        for job in list(self.fake.cluster.job_table.values()):
            if job.is_pending and not job.is_held and job.array_job_id is None and self._fits(job):
                self.fake.cluster.job_table[job.id] = replace(job, state=JobState.RUNNING, allocated=job.requested)

    def _fits(self, job: Job) -> bool:
        qos, wanted = self.fake.picture().qos[job.qos], parse_tres(job.requested)
        return all(qos.used.get(tres, 0) + wanted.get(tres, 0) <= limit for tres, limit in qos.limits.items())


@dataclass(kw_only=True)
class RealWorld(AccountingWorld):
    bed: Bed
    port: AccountingPort
    jobs: Callable[..., Mapping[JobId, Job]]
    accounts: list[str] = field(default_factory=list)

    def add_account(self, name: str, *, below: str = "") -> None:
        self.sacctmgr("add", "account", name, *([f"parent={below}"] if below else []))
        self.sacctmgr("add", "user", getpass.getuser(), f"account={name}")
        self.accounts.append(name)
        shown = ["scontrol", "show", "assoc_mgr", "flags=assoc", f"account={name}"]
        self.wait(f"slurmctld knows {name}", lambda: "UserName=root(0)" in self.bed.run(shown).text)

    def add_qos(self, name: str, description: str) -> None:
        self.sacctmgr("add", "qos", name, f"description={description}")

    def set_user(self, account: str, *, qos: str = "", default_qos: str = "") -> None:
        words = [*([f"qos={qos}"] if qos else []), *([f"defaultqos={default_qos}"] if default_qos else [])]
        self.sacctmgr("modify", "user", "where", f"name={getpass.getuser()}", f"account={account}", "set", *words)

    def submit(self, account: str, *, gpus: int = 1, qos: str = "", hold: bool = False, tasks: int = 0) -> JobId:
        words = ["sbatch", "--parsable", f"--account={account}", f"--gres=gpu:{gpus}", "-n1", "--mem=10", "-o/dev/null"]
        words += [*([f"--qos={qos}"] if qos else []), *(["--hold"] if hold else [])]
        words += [f"--array=1-{tasks}%1"] if tasks else []
        return JobId(int(self.bed.run([*words, "--wrap", "sleep 1000"]).text))

    def requeue(self, job: JobId) -> None:
        self.bed.run(["scontrol", "requeue", str(job)])

    def job(self, job: JobId) -> Job:
        return self.jobs({job})[job]

    def kill_slurmdbd(self) -> None:
        self.bed.inject(fault(FaultKind.KILL_SLURMDBD))

    def start_slurmdbd(self) -> None:
        self.bed.inject(fault(FaultKind.START_SLURMDBD))
        wait_until("slurmdbd answers", lambda: self.bed.run(["sacctmgr", "-n", "show", "cluster"]), 30)

    def step(self) -> None:
        time.sleep(0.1)

    def sacctmgr(self, *words: str) -> str:
        return self.bed.run(["sacctmgr", "-i", *words]).text

    def clear(self) -> None:
        """No job, no account and no QOS of a test is left."""
        if self.bed.status().faults:
            self.start_slurmdbd()
        queue = ["squeue", "--noheader", "--all", "--format=%A"]
        if self.bed.run(queue).text.split():
            self.bed.run(["scancel", f"--user={getpass.getuser()}"])
        self.wait("the queue is empty", lambda: not self.bed.run(queue).text.split())
        for account in self.accounts[::-1]:
            self.wait(f"{account} can go", lambda account=account: self._gone("account", account))  # type: ignore[misc]
        for line in self.bed.run(["sacctmgr", "-P", "-n", "show", "qos", "format=name"]).text.split():
            if line != "normal":
                self._gone("qos", line)
        self.accounts.clear()

    def _gone(self, kind: str, name: str) -> bool:
        done = self.bed.run(["sacctmgr", "-i", "delete", kind, name], check=False)
        said = done.text + done.error_text
        return done.returncode == 0 or "Nothing deleted" in said or "didn't affect anything" in said


def a_fake() -> FakeWorld:
    cluster = FakeCluster()
    return FakeWorld(fake=FakeAccounting(cluster=cluster), cluster=cluster)
