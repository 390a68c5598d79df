"""The slurmstepds of this node that have outlived their tasks, and the files that killed ones left behind.

A slurmstepd reports the end of each task to the job's srun. If srun's host is dead, it tries six times, each up to a
timeout, and the node stays COMPLETING meanwhile, although nothing of the job runs there any more.

A slurmstepd that is killed, by Steward or with its machine, cannot remove the files of its PMIx server. While they lie
there, the next run's step of that number does not start ("File exists"), and 22.05's srun calls that a success.
"""

import os
import re
import signal
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from steward.adapters import proc
from steward.adapters.node.job_processes import job_of_cgroups
from steward.adapters.node.slurm_conf import spool_dir, tmp_fs
from steward.adapters.proc import ProcessKey, Seen
from steward.model.ids import JobId
from steward.model.text import printable

_PROC = Path("/proc")
_TITLE = re.compile(rb"slurmstepd: \[([1-9][0-9]{0,9})\.([^\]\0]{1,32})\]\s*\Z")
_RUN_VARIABLES = (b"SLURM_JOB_ID", b"SLURM_STEP_ID", b"SLURM_RESTART_COUNT", b"SLURMD_NODENAME")
_LOOK_AGAIN_S = 0.02
_MOST_PARENTS = 1000
"""The most parents that are followed: processes are not read at one moment, so parents might form a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepd:
    """A running slurmstepd. `began` is in Unix seconds of this node's clock; `step` as in its title (`0`, `batch`)."""

    process: ProcessKey
    job: JobId
    step: str
    began: float


class Stepds:
    """The slurmstepds of this node. `owner` is their real user; `slurm_conf` tells our cluster's from another's."""

    def __init__(self, slurm_conf: Path, *, node: str = "", owner: int = 0) -> None:
        self._conf = slurm_conf
        self._node = node
        self._owner = owner

    def end_idle(self, job: JobId, uid: int, before: float) -> tuple[Stepd, ...]:
        """Kill the slurmstepds of `job` that began before `before` (Unix s, this node's clock) and have no task left.

        `uid` is the job's user. Returns those that were killed. A slurmstepd with a living child is
        left alone, and so are all while any other process of the job lives: Slurm still has something to end there.
        """
        everyone = list(proc.all_processes())
        ours = self._stepds_of(job, everyone)
        old = [stepd for stepd in ours if stepd.began < before]
        if not old or self._has_other_process(job, uid, everyone):
            return ()
        idle = [stepd for stepd in old if not proc.descendants(stepd.process)]
        return tuple(stepd for stepd in idle if proc.send(stepd.process, signal.SIGKILL))

    def stepd_of(self, seen: Seen) -> Stepd | None:
        """Return the slurmstepd that this process is; None for any other process, and for one of another cluster."""
        title = self._title_of(seen)
        if title is None or not self._is_of_ours(seen.process.pid):
            return None
        step = title[2].decode("ascii", "replace")
        return Stepd(process=seen.process, job=JobId(int(title[1])), step=step, began=_began(seen.process))

    def are_told_to_end(self, within_s: float = 0.0) -> bool:
        """Return whether slurmstepds run here and each has a pending SIGTERM, as from a shutdown of the machine.

        Slurm itself never sends one to a slurmstepd, which blocks the signal, so that it stays pending. Those that run
        here and have none are given `within_s` seconds to get one.
        """
        until = time.monotonic() + within_s
        while (told := self._told_to_end()) and not all(told) and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)
        return bool(told) and all(told)

    def _told_to_end(self) -> list[bool]:
        """Return for each slurmstepd of this node whether it has a pending SIGTERM."""
        jobs = self._jobs_of_node()
        found = [(seen.process.pid, title) for seen in proc.all_processes() if (title := self._title_of(seen))]
        here = [pid for pid, title in found if jobs is None or int(title[1]) in jobs]
        told = [_is_pending(pid, signal.SIGTERM) for pid in here if self._is_of_ours(pid)]
        return [each for each in told if each is not None]  # some end while we look

    def _jobs_of_node(self) -> frozenset[int] | None:
        """Return the jobs with a slurmstepd's socket (`n1_12.0`) in the node's spool; None if unknown."""
        # Several slurmds may share this machine.
        try:
            names = os.listdir(spool_dir(str(self._conf), self._node)) if self._node else None
        except OSError:
            return None
        socket_of = re.compile(rf"{re.escape(self._node)}_([0-9]{{1,10}})\.")
        return None if names is None else frozenset(int(m[1]) for name in names if (m := socket_of.match(name)))

    def set_aside(self, job: JobId, step: int, uid: int, until: float) -> tuple[Path, ...]:
        """Rename the PMIx files and folders that a killed slurmstepd of this step left, and return them.

        The step's new slurmstepd asks for this before it makes its own. Files of another user are not touched, nor any
        while a second slurmstepd of this step lives (several slurmds on one machine). None are removed: users may have
        put anything below. Raises TimeoutError after `until` (monotonic s): then the step has begun, and the files are
        its own.
        """
        spool, tmp = (find(str(self._conf), self._node) for find in (spool_dir, tmp_fs))
        named = f"{job}.{step}"
        made = (f"{tmp}/spmix_appdir_{uid}_{named}", f"{spool}/pmix.{named}", f"{spool}/stepd.slurm.pmix.{named}")
        left = [path for path in map(Path, made) if self._may_set_aside(path, uid)]
        if not left or sum(one.step == str(step) for one in self._stepds_of(job, proc.all_processes())) > 1:
            return ()
        if time.monotonic() > until:
            raise TimeoutError("the step has begun")
        for path in left:
            path.rename(f"{path}.left.{time.time_ns()}")
        return tuple(left)

    def left_behind(self, job: JobId, uid: int, restart: int) -> tuple[str, ...]:
        """Return the user's processes, as `PID NAME`, that an earlier run or attempt of the job left on this node.

        Such a process has no slurmstepd above it, and its step or run has ended: without cgroups Slurm loses sight of a
        process in a process group of its own.
        """
        everyone = [seen for seen in proc.all_processes() if not seen.dead]
        parents = {seen.process.pid: seen.parent for seen in everyone}
        stepds = {stepd.process.pid: stepd.step for stepd in self._stepds_of(job, everyone)}
        mine = (
            pid for pid in parents if proc.real_uid(pid) == uid and not _is_at_or_below(pid, stepds.keys(), parents)
        )
        left = (pid for pid in mine if self._is_left(pid, job, restart, frozenset(stepds.values())))
        return tuple(f"{pid} {printable(_read(pid, 'comm').decode('utf-8', 'replace').strip(), 16)}" for pid in left)

    def _is_left(self, pid: int, job: JobId, restart: int, steps: frozenset[str]) -> bool:
        words = dict(word.partition(b"=")[::2] for word in _read(pid, "environ").split(b"\0"))
        told = {name: words.get(name, b"").decode("ascii", "replace") for name in _RUN_VARIABLES}
        if told[b"SLURM_JOB_ID"] != str(job) or (self._node and told[b"SLURMD_NODENAME"] != self._node):
            return False
        of_run, step = told[b"SLURM_RESTART_COUNT"] or "0", told[b"SLURM_STEP_ID"] or "batch"
        return of_run != str(restart) or step not in steps

    def _may_set_aside(self, path: Path, uid: int) -> bool:
        try:
            return path.lstat().st_uid in (uid, self._owner)
        except FileNotFoundError:
            return False

    def _stepds_of(self, job: JobId, everyone: Iterable[Seen]) -> list[Stepd]:
        """Return the slurmstepds of a job."""
        # A child of another slurmstepd is left out: it is a task that has not started its own program yet.
        titled = {seen.process.pid: (seen, step) for seen in everyone if (step := self._step_of(seen, job))}
        return [
            Stepd(process=seen.process, job=job, step=step, began=_began(seen.process))
            for seen, step in titled.values()
            if seen.parent not in titled
        ]

    def _step_of(self, seen: Seen, job: JobId) -> str:
        """Return the step of `job` whose slurmstepd this process is; empty if it is no slurmstepd of that job."""
        title = self._title_of(seen)
        if title is None or int(title[1]) != job or not self._is_of_ours(seen.process.pid):
            return ""
        return title[2].decode("ascii", "replace")

    def _title_of(self, seen: Seen) -> re.Match[bytes] | None:
        """Return the title of a slurmstepd of any cluster; None for another process."""
        pid = seen.process.pid
        if seen.dead or not self._is_stepd(pid):
            return None  # reading the memory of a user's process may hang
        return _TITLE.match(_read(pid, "cmdline").partition(b"\0")[0])

    def _is_stepd(self, pid: int) -> bool:
        """Return whether the process is a slurmstepd, by its program and real user."""
        # Any process can write any title; program and user come from the kernel. A slurmstepd takes its user's
        # effective uid for a while, never the real one.
        return proc.real_uid(pid) == self._owner and _program(pid).startswith("slurmstepd")

    def _is_of_ours(self, pid: int) -> bool:
        """Return whether the slurmstepd is of our cluster, by the slurm.conf in its environment.

        Several clusters may use this machine, each with a job of that number.
        """
        # A slurmstepd counts as ours if the variable is lost (it writes its title over its environment), and if one of
        # the two files does not exist: the configuration is then a copy from slurmctld (configless), of one cluster.
        found = re.search(rb"(?:\A|\0)SLURM_CONF=([^\0]+)", _read(pid, "environ"))
        conf = Path(os.fsdecode(found[1])) if found else self._conf
        return conf.resolve() == self._conf.resolve() or not (conf.exists() and self._conf.exists())

    def _has_other_process(self, job: JobId, uid: int, everyone: Iterable[Seen]) -> bool:
        """Return whether a process of the job lives that is no slurmstepd: Slurm still has to end it."""
        alive = (seen.process.pid for seen in everyone if not seen.dead)
        return any(_belongs(pid, job, uid) and not self._is_stepd(pid) for pid in alive)


def _began(process: ProcessKey) -> float:
    """Return when the process began (Unix s)."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + process.began_s


def _is_at_or_below(pid: int, wanted: Collection[int], parents: Mapping[int, int]) -> bool:
    """Return whether the process is one of these, or below one."""
    for _ in range(_MOST_PARENTS):
        if pid in wanted:
            return True
        if pid not in parents:
            return False
        pid = parents[pid]
    return True


def _belongs(pid: int, job: JobId, uid: int) -> bool:
    """Return whether the process belongs to the job of that user, by its cgroup or environment."""
    # Root makes the cgroups of jobs. The environment is a user's own claim, and reading it may hang.
    if job_of_cgroups(_read(pid, "cgroup")) == job:
        return True
    return proc.real_uid(pid) == uid and b"\0SLURM_JOB_ID=%d\0" % job in b"\0" + _read(pid, "environ")


def _is_pending(pid: int, signo: signal.Signals) -> bool | None:
    """Return whether the process has the signal pending; None if it has ended."""
    status = _read(pid, "status")
    found = re.search(rb"^ShdPnd:\s*([0-9a-f]+)", status, re.MULTILINE)
    if found is None or re.search(rb"^State:\s*[ZX]", status, re.MULTILINE):
        return None
    return bool(int(found[1], 16) >> signo - 1 & 1)


def _read(pid: int, name: str) -> bytes:
    """Return the content of a file of the process; empty if it is gone or not readable."""
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _program(pid: int) -> str:
    """Return the name of the process's program file, or else of the process."""
    # The kernel hides the file of a slurmstepd with rights that the agent lacks, if the agent has no CAP_SYS_PTRACE (in
    # a container). Only root's processes are asked.
    try:
        return Path(os.readlink(_PROC / str(pid) / "exe")).name
    except OSError:
        return _read(pid, "comm").decode("ascii", "replace").strip()
