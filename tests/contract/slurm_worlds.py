"""What the Slurm contract needs of a world besides the port: users, admins and time; on the fake and on real Slurm."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from steward.model.action import NudgeJob
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node
from steward.model.partition import PartitionState
from steward.model.why import Why
from steward.ports import Retryable, SlurmPort
from tests.contract.cluster import Cluster
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import FACT_S


def a_nudge(
    job: JobId, exclude: frozenset[NodeName], *, restart: int = 0, release: bool = False, delay_s: float = 0.0
) -> NudgeJob:
    why = Why(rule="resume.nudge", text="a test wants it")
    key = Key(f"nudge:{job}")
    return NudgeJob(key=key, why=why, job=job, exclude=exclude, restart=restart, release=release, delay_s=delay_s)


def nudge(
    world: "SlurmWorld",
    job: JobId,
    exclude: frozenset[NodeName],
    *,
    restart: int | None = None,
    release: bool = False,
    delay_s: float = 0.0,
) -> None:
    """Of its run `restart`; None: of the one that it is in."""
    known = world.port.jobs().get(job)
    run = restart if restart is not None else known.restarts if known is not None else 0
    world.port.nudge([a_nudge(job, exclude, restart=run, release=release, delay_s=delay_s)])


class WorldOfJobs(Protocol):
    """Jobs, fake or real, and time that passes."""

    def step(self) -> None:
        """Let a little time pass."""

    def job(self, job: JobId) -> Job: ...

    def wait(self, sentence: str, holds: Callable[[], bool], deadline_s: float = FACT_S) -> None:
        end = time.monotonic() + deadline_s
        while not holds():
            assert time.monotonic() < end, f"not within {deadline_s:g} s: {sentence}"
            self.step()

    def running(self, job: JobId) -> Job:
        self.wait(f"job {job} runs", lambda: self.job(job).is_active)
        return self.job(job)


class SlurmWorld(WorldOfJobs, Protocol):
    """Nodes n1, n2 and n3, idle; a job asks for one whole node."""

    port: SlurmPort

    def submit(
        self,
        *,
        name: str = "job",
        on: str = "",
        requeue: bool = True,
        hold: bool = False,
        exclude: Iterable[str] = (),
        partition: str = "main",
        minutes: int | None = None,
    ) -> JobId:
        """A job that runs until it is told to end, or for its time limit."""

    def submit_array(self, tasks: int, rest: int = 0) -> dict[int, JobId]:
        """Task index -> job id; the scripts of all of them have begun, and `rest` more wait."""

    def finish(self, job: JobId, exit_status: int) -> None:
        """The running job's script ends with this raw wait status."""

    def cancel(self, job: JobId) -> None: ...

    def time_out(self, job: JobId) -> None:
        """Its time limit is over; Slurm may need half a minute to see it."""

    def hold_after_requeue(self, job: JobId) -> None:
        """By its user or an admin (`scontrol requeuehold`)."""

    def admin(self, node: str, state: str, reason: str) -> None: ...

    def reconfigure(self) -> None:
        """Slurm reads its slurm.conf again, in which no node has a feature."""

    def move(self, job: JobId, partition: str) -> None:
        """As its user does; Slurm may say that it cannot run there, and moves it all the same."""

    def comment_by_admin(self, job: JobId, text: str, field: str = "admin_comment") -> None: ...

    def set_partition(self, partition: str, state: str) -> None:
        """By an admin."""

    def longest(self, minutes: int) -> None:
        """By an admin: how long a job may ask for in partition main."""

    def add_feature(self, node: str, *, available: str, active: str) -> None:
        """By an admin: features that the node has, and those of them that are active, as comma lists."""

    def register(self, node: str, feature: str) -> None:
        """A dynamic node comes, drained; there can be one."""

    def restart(self) -> None:
        """slurmctld starts anew."""

    def let_pass(self, seconds: float) -> None:
        """Time goes by in which nothing happens."""

    def has_got(self, job: JobId, signal: str) -> bool:
        """Its script got this signal (USR1)."""

    def break_off(self) -> None:
        """The controller does not answer any more, until `mend`."""

    def mend(self) -> None: ...

    def job(self, job: JobId) -> Job:
        return self.port.jobs()[job]

    def node(self, name: str) -> Node:
        return self.port.nodes()[NodeName(name)]

    def pending(self, job: JobId) -> Job:
        self.wait(f"job {job} is pending", lambda: self.job(job).is_pending and not self.job(job).is_completing)
        return self.job(job)


@dataclass(kw_only=True)
class FakeWorld(SlurmWorld):
    fake: FakeSlurm

    def __post_init__(self) -> None:
        self.port = self.fake

    def submit(
        self,
        *,
        name: str = "job",
        on: str = "",
        requeue: bool = True,
        hold: bool = False,
        exclude: Iterable[str] = (),
        partition: str = "main",
        minutes: int | None = None,
    ) -> JobId:
        limit = None if minutes is None else minutes * 60.0
        return self.fake.submit(
            name=name, on=on, requeue=requeue, hold=hold, exclude=exclude, partition=partition, time_limit_s=limit
        )

    def submit_array(self, tasks: int, rest: int = 0) -> dict[int, JobId]:
        array = self.fake.next_id + tasks + rest - 1  # Slurm's last task carries the array's own id
        ids = {index: self.fake.submit(array=(array, index)) for index in range(1, tasks + 1)}
        for index in range(tasks + 1, tasks + rest + 1):
            self.fake.submit(array=(array, index), hold=True)
        self.wait("the array runs", lambda: all(self.job(job).is_active for job in ids.values()))
        return ids

    def finish(self, job: JobId, exit_status: int) -> None:
        self.fake.finish(job, exit_status)

    def cancel(self, job: JobId) -> None:
        self.fake.cancel(job)

    def time_out(self, job: JobId) -> None:
        self.fake.end(job, JobState.TIMEOUT)

    def hold_after_requeue(self, job: JobId) -> None:
        self.fake.requeue_held(job)

    def admin(self, node: str, state: str, reason: str) -> None:
        name = NodeName(node)
        if state == "down":
            self.fake.go_down(name, reason, user="root")
        else:
            self.fake.set_reason(name, reason, user="root", flags={state.upper()})

    def add_feature(self, node: str, *, available: str, active: str) -> None:
        name = NodeName(node)
        both = {"features": frozenset(available.split(",")), "active_features": frozenset(active.split(","))}
        self.fake.node_table[name] = replace(self.fake.node_table[name], **both)  # type: ignore[arg-type]

    def reconfigure(self) -> None:
        for name, node in self.fake.node_table.items():
            self.fake.node_table[name] = replace(node, features=frozenset(), active_features=frozenset())

    def longest(self, minutes: int) -> None:
        self.fake.longest = minutes

    def comment_by_admin(self, job: JobId, text: str, field: str = "admin_comment") -> None:
        self.fake.job_table[job] = replace(self.fake.job_table[job], **{field: text})  # type: ignore[arg-type]

    def move(self, job: JobId, partition: str) -> None:
        self.fake.job_table[job] = replace(self.fake.job_table[job], partition=partition)

    def set_partition(self, partition: str, state: str) -> None:
        self.fake.divided.set(partition, PartitionState(state))

    def register(self, node: str, feature: str) -> None:
        self.fake.register(node, feature=feature)

    def restart(self) -> None:
        self.fake.tick(2.0)
        self.fake.divided.restart(self.fake.now)

    def let_pass(self, seconds: float) -> None:
        self.fake.tick(seconds)

    def has_got(self, job: JobId, signal: str) -> bool:
        return (job, signal) in self.fake.signals

    def break_off(self) -> None:
        self.fake.refuse = Retryable("the controller does not answer")

    def mend(self) -> None:
        self.fake.refuse = None

    def step(self) -> None:
        self.fake.tick()


_UNTIL_TOLD = "trap ': >{told}.USR1' USR1; : >{told}.begun; while [ ! -e {told} ]; do sleep 0.05; done; {ending}"


@dataclass(kw_only=True)
class RealWorld(SlurmWorld):
    cluster: Cluster
    port: SlurmPort

    def submit(
        self,
        *,
        name: str = "job",
        on: str = "",
        requeue: bool = True,
        hold: bool = False,
        exclude: Iterable[str] = (),
        partition: str = "main",
        minutes: int | None = None,
    ) -> JobId:
        options = ["-J", name, "-p", partition, "--exclusive", "-N1", "--requeue" if requeue else "--no-requeue"]
        options += ["-w", on] if on else []
        options += ["-H"] if hold else []
        options += ["-x", ",".join(exclude)] if exclude else []
        options += [f"--time={minutes}"] if minutes is not None else []
        return JobId(self.cluster.sbatch(*options, script=self._script()))

    def submit_array(self, tasks: int, rest: int = 0) -> dict[int, JobId]:
        words = ("--exclusive", "-N1", f"--array=1-{tasks + rest}%{tasks}")
        array = self.cluster.sbatch(*words, script=self._script())

        def found() -> dict[int, JobId]:
            mine = [job for job in self.port.jobs().values() if job.array_job_id == array and job.is_active]
            return {job.array_task: job.id for job in mine if job.array_task is not None}

        self.wait("the array runs", lambda: len(found()) == tasks)
        for job in (running := found()).values():
            self.wait(f"the script of job {job} began", self.cluster.path(f"end-{job}.begun").exists)
        return running

    def _script(self) -> str:
        told = f"{self.cluster.folder}/end-$SLURM_JOB_ID"
        return _UNTIL_TOLD.format(told=told, ending=f". {told}")

    def finish(self, job: JobId, exit_status: int) -> None:
        ending = f"kill -{exit_status & 0x7F} $$" if exit_status & 0x7F else f"exit {exit_status >> 8}"
        part = self.cluster.path(f"end-{job}.part")
        part.write_text(ending + "\n")
        part.rename(self.cluster.path(f"end-{job}"))

    def cancel(self, job: JobId) -> None:
        self.cluster.run("scancel", str(job))

    def time_out(self, job: JobId) -> None:
        self.cluster.run("scontrol", "update", f"jobid={job}", "endtime=now")

    def hold_after_requeue(self, job: JobId) -> None:
        self.cluster.run("scontrol", "requeuehold", str(job))

    def admin(self, node: str, state: str, reason: str) -> None:
        self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", f"reason={reason}")

    def add_feature(self, node: str, *, available: str, active: str) -> None:
        lists = (f"availablefeatures={available}", f"activefeatures={active}")
        self.cluster.run("scontrol", "update", f"nodename={node}", *lists)

    def reconfigure(self) -> None:
        self.cluster.run("scontrol", "reconfigure")

    def longest(self, minutes: int) -> None:
        self.cluster.run("scontrol", "update", "partitionname=main", f"maxtime={minutes}")

    def comment_by_admin(self, job: JobId, text: str, field: str = "admin_comment") -> None:
        self.cluster.run("scontrol", "update", f"jobid={job}", f"{field.replace('_', '')}={text}")

    def move(self, job: JobId, partition: str) -> None:
        self.cluster.run("scontrol", "update", f"jobid={job}", f"partition={partition}", check=False)

    def set_partition(self, partition: str, state: str) -> None:
        self.cluster.run("scontrol", "update", f"partitionname={partition}", f"state={state.lower()}")

    def register(self, node: str, feature: str) -> None:
        self.cluster.start_dynamic(node, feature)

    def restart(self) -> None:
        time.sleep(1.1)  # Slurm says in whole seconds when it began
        self.break_off()
        self.mend()

    def let_pass(self, seconds: float) -> None:
        time.sleep(seconds)

    def running(self, job: JobId) -> Job:
        """And its script has set its trap."""
        found = super().running(job)
        if found.is_batch and found.array_job_id is None:
            self.wait(f"the script of job {job} began", self.cluster.path(f"end-{job}.begun").exists)
        return found

    def has_got(self, job: JobId, signal: str) -> bool:
        return self.cluster.path(f"end-{job}.{signal}").exists()

    def pending(self, job: JobId) -> Job:
        """And the second of its end is over: started again in it on the same node, Slurm would take the new
        credential for revoked (seen on 22.05 and 24.11) and fail the job."""
        found = super().pending(job)
        time.sleep(1.05 - time.time() % 1.0)
        return found

    def break_off(self) -> None:
        self.cluster.stop_controller()

    def mend(self) -> None:
        """Until a node has registered, Slurm shows it without the times of its boot and its slurmd."""
        self.cluster.start_controller()
        self.wait("the nodes have registered", self._are_registered)

    def _are_registered(self) -> bool:
        return all(node.is_schedulable and node.boot_time for node in self.port.nodes().values())

    def step(self) -> None:
        time.sleep(0.1)
