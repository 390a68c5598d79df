"""Slurm through steward-slurm and its commands: text in, argv lists out.

A read is one or two commands if steward-slurm does not answer; a batch of writes is one command.

Facts, tried on real 22.05.8, 24.11.5 and 26.05.5:

- `state=down` on a drained node keeps DRAIN (`DOWN+DRAIN`), so the node does not come back when its slurmd answers.
- A running job's exclude list cannot be set. `starttime=now` sent to a job that cleans up is accepted and lost, and on
  22.05 an update of such a job may wait for 5 s and then be refused: so a job that still cleans up is not updated.
- A job that is started again on the same node within the second in which it ended is killed by Slurm (`Job credential
  revoked`; 22.05: 8 of 8, 24.11: 3 of 8, 26.05: 0 of 8; from 50 ms after the next full second on: 0 of 24). `nudge`
  does not wait for that moment: the policy does.
- A node that is returned takes jobs once it has answered a ping, 0.3 to 0.7 s later; but no ping begins while another
  waits, and a node that is in service and does not answer (frozen, or its machine is gone) holds it up: 9.9 s on 22.05,
  20.7 s on 24.11, whichever node was returned. A node that is marked DOWN is not pinged and holds up no ping.
- slurmctld 24.11.5 may hang when it is asked to end (`systemctl restart`): it answers no request until it is killed.
- slurmd 24.11.5 may purge the script of a batch job that it is about to start, when it registers at that moment
  (`Purging vestigial job script` in its log): the job fails with exit code 2, as if by its own fault.
- `scontrol update nodename=a,b` changes neither node if one name is unknown.
- `scontrol delete nodename=d[1-3]` deletes all three dynamic nodes (22.05).
- 22.05's `scontrol delete nodename=n` deletes a node of slurm.conf too, and its slurmctld dies at the next reconfigure.
- `availablefeatures=` and `activefeatures=` replace the whole list; a `:` in a feature works there and in `-C` (22.05).
  Features set this way are gone after a reconfigure or a restart of slurmctld, which go back to the features of
  slurm.conf; a job that waits for such a feature shows BadConstraints meanwhile and goes on by itself when a node has
  it again. A job that asks for a feature that no node has is refused at its submission.
- SlurmUser can set the admin comment of a job that waits, runs or was just requeued (22.05, 24.11); of one that ended
  or cleans up after its end it is refused (`Job has already finished`). 70,000 characters, quotes, newlines and UTF-8
  are taken as they are. sacct shows it, for each run that was requeued as it was then. Users cannot set it.
- `scancel --full` signals the batch script and its children besides the steps. Of a task whose array has others that
  wait, slurmctld delivers the signal and answers `try again later` all the same (job_mgr.c of 22.05 to 26.05), and
  scancel sends it again, ten times, 5 s after the first: so scancel is ended as soon as it prints that.
"""

import contextlib
import math
import os
import pwd
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from steward.adapters.process import show
from steward.adapters.slurm import partitions, records, reservations, rules, text_nodes, words
from steward.adapters.slurm.commands import MAX_BYTES, SlurmCommands
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.library import Library
from steward.adapters.slurm.read_jobs import JobReader
from steward.adapters.slurm.read_nodes import NodeReader
from steward.adapters.slurm.record_form import Garbled
from steward.adapters.slurm.versions import SlurmRelease
from steward.adapters.slurm.words import node_list, node_lists, partition, reason
from steward.model.action import NudgeJob
from steward.model.deep import DEEP_PREFIX
from steward.model.fit import UNKNOWN, Fit, Question
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, other_parts
from steward.model.mark import Mark
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState
from steward.model.reservation import Reservation
from steward.ports import Permanent, PortError, Retryable, Stale, Unsent

_COMMENT_S = 2.0
"""The time limit of a comment, which slurmctld may delay by 5 s: it is tried again later."""
_SIGNAL_S = 3.0
_RETRYING = "transitional state, retrying"
"""The words of `scancel --verbose` before it waits 5 s and sends the signal once more."""
_WITHOUT_READER = (
    "looks take longer, and whether a job fits is guessed from idle nodes; quotas take what a running job has for what "
    "it asked for, and see neither memory asked for each CPU nor a list of node counts (`-N 1,2,4`)"
)
"""The drawbacks of reading Slurm as text (`text_jobs.py`)."""


class CommandLineSlurm:
    """SlurmPort by steward-slurm and Slurm's commands. Safe to call from several threads.

    `conf` is the path of slurm.conf; empty: the one of the environment or of Slurm itself. Every command may take
    `timeout_s` seconds, an answer may have `max_bytes`. `include` is the file for partitions of ours. With a `library`,
    Slurm is read through that, and by the commands if it does not answer; `asker` answers whether a job fits.
    """

    def __init__(
        self,
        *,
        conf: str = "",
        timeout_s: float = 10.0,
        include: IncludeFile | None = None,
        max_bytes: int = MAX_BYTES,
        library: Library | None = None,
        asker: FitAsker | None = None,
    ) -> None:
        self._asker, self._library = asker, library
        self._include = include
        self._timeout_s = timeout_s
        self._commands = SlurmCommands(conf=conf, timeout_s=timeout_s, max_bytes=max_bytes)
        self._nodes, self._jobs = NodeReader(self._commands, library), JobReader(self._commands, library)
        self._partitions = partitions.Reader()

    def describe(self) -> str:
        """Return in one line which commands are used, and which reads came near to their limits.

        Raises Retryable if scontrol cannot be run, Permanent if it is too old.
        """
        version, problem = self.version(), self.reader_problem()
        about = f"the commands of Slurm {version.text} {'read and write' if problem else 'write, steward-slurm reads'}"
        why = [f"{problem}: {_WITHOUT_READER}"] if problem else []
        return "; ".join([about, *why, *self._commands.heavy()])

    def reader_problem(self) -> str:
        """Return why Slurm is read through the commands; empty if steward-slurm reads."""
        return self._library.problem() if self._library is not None else "there is no steward-slurm"

    def version(self) -> SlurmRelease:
        return self._commands.version()

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        return self._nodes.whole() if only is None else self._nodes.some(only)

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        return self._jobs.whole() if only is None else self._jobs.some(only, on)

    def job(self, job: JobId) -> Job:
        """Return the job. Raises Stale if Slurm does not hold it any more."""
        return rules.require_job(self.jobs([job]), job)

    def drain(self, marks: Mapping[NodeName, Mark], cleared: Collection[NodeName] = ()) -> None:
        """Drain all of these nodes or, if one is not ours to take, none."""
        rules.may_take_out(self.nodes([*marks]), sorted(marks), cleared)
        self._take_out(marks, "drain")

    def down(self, marks: Mapping[NodeName, Mark]) -> None:
        """Set all of these nodes DOWN+DRAIN or, if one is not ours to take, none."""
        rules.may_take_out(self.nodes([*marks]), sorted(marks))
        # a node that Slurm does not drain is not set DOWN either: it would come back by itself when its slurmd answers
        for state in ("drain", "down"):
            self._take_out(marks, state)

    def give_back(self, nodes: Iterable[NodeName], mark: Mark, command: str = "") -> None:
        wanted = sorted(set(nodes))
        rules.may_give_back(self.nodes(wanted), wanted, mark, command)
        self._update_nodes(wanted, "state=resume")

    def requeue(
        self,
        job: JobId,
        exclude: frozenset[NodeName],
        *,
        restart: int | None = None,
        told_at: float | None = None,
    ) -> None:
        """Requeue the job, with its exclude list if it has ended."""
        before = self.job(job)
        rules.is_the_run(before, restart)
        parts = other_parts(before, self._jobs.parts(before.het_job_id)) if before.het_job_id else ()
        rules.may_requeue(before, parts, told_at=told_at)
        name = rules.job_argument(before)
        if before.is_pending:
            # a heterogeneous job of which some parts wait: Slurm refuses those, and requeues the other parts
            with contextlib.suppress(Stale):
                self._commands.write("requeue", name)
            return
        # with `incomplete` Slurm itself leaves alone a job that its user cancelled since our look
        self._commands.write("requeue", *(["incomplete"] if before.is_active else []), name)
        # A running job gets its exclude list from the nudges that follow: until it is cleaned up, Slurm 22.05 delays
        # any update of it by 5 s and then refuses; and a requeued job is not eligible before its first nudge.
        if not before.is_active and not before.is_completing:
            self._commands.write("update", f"jobid={name}", f"excnodelist={node_list(exclude)}")

    def nudge(self, nudges: Sequence[NudgeJob]) -> None:
        waiting = rules.to_nudge(self.jobs([one.job for one in nudges]), nudges)
        with contextlib.suppress(*([Stale] if len(nudges) > 1 else [])):
            self._commands.write_all([words for job, one in waiting for words in _nudge_words(job, one)])

    def allow_requeue(self, job: JobId) -> None:
        self._commands.write("update", f"jobid={rules.job_argument(self.job(job))}", "requeue=1")

    def comment(self, job: JobId, text: str) -> None:
        told = self.job(job)
        whole = rules.new_comment(told, text)
        if told.is_over:
            self._comment_record(told, whole)
            return
        self._commands.write(
            "update", f"jobid={rules.job_argument(told)}", f"admincomment={whole}", timeout_s=_COMMENT_S
        )

    def _comment_record(self, job: Job, text: str) -> None:
        """Write the comment of an ended job into its record in the accounting, that of its last run."""
        # slurmctld changes nothing of a job that has ended
        words = ("modify", "job", "where", f"jobid={job.id}", "set", f"admincomment={text}")
        try:
            self._commands.run("sacctmgr", "--immediate", *words, timeout_s=_COMMENT_S)
        except PortError as error:
            raise Stale(f"job {job.shown_id} has ended, and has no record in an accounting: {error}") from error

    def partitions(self) -> Mapping[str, Partition]:
        return {name: each for name, each in self._all_partitions().items() if not name.startswith(DEEP_PREFIX)}

    def _all_partitions(self) -> Mapping[str, Partition]:
        """Return all partitions, with those of deep checks."""
        told = self._library.partitions() if self._library is not None else None
        if told is not None and told.lines:
            with contextlib.suppress(Garbled, Retryable):
                return self._partitions.records(told.lines)
        loaded = partitions.slurmctld_started(self._commands.read("scontrol", "show", "config"))
        answer = self._commands.read("scontrol", "--all", "--oneliner", "show", "partitions")
        return self._partitions.read(answer, loaded)

    def set_gate(self, name: str, *, open: bool) -> None:
        self.set_partition_state(name, PartitionState.UP if open else PartitionState.DOWN)

    def set_partition_state(self, name: str, state: PartitionState) -> None:
        self._commands.write("update", f"partitionname={partition(name)}", f"state={state.value}")

    def write_partitions(self, text: str) -> None:
        if self._include is None:
            raise Permanent("there is no file for partitions: set capacity.slurm_include and include it in slurm.conf")
        partitions.write(self, self._include, text, patience_s=self._timeout_s)

    def reconfigure(self) -> None:
        """Have every daemon read its configuration again."""
        self._commands.write("reconfigure")

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        wanted = set(nodes)
        free, busy = rules.may_forget(self.nodes(wanted), wanted)
        with contextlib.suppress(Stale):
            self._commands.write_all([("delete", f"nodename={names}") for names in node_lists(free)])
        if busy:
            raise Retryable(f"jobs are on {show(','.join(busy))}: not deleted")

    def set_feature(self, nodes: Iterable[NodeName], prefix: str, word: str) -> None:
        """Give the nodes the feature `prefix + word`, with one command for all whose other features are the same."""
        wanted = set(nodes)
        for features, names in rules.by_features(self.nodes(wanted), wanted, prefix, word).items():
            available, active = (",".join(sorted(each)) for each in features)
            self._update_nodes(names, f"availablefeatures={available}", f"activefeatures={active}")

    def signal(self, job: JobId, signal: str) -> None:
        try:
            running = self.job(job)
        except Retryable as error:
            raise Unsent(str(error)) from error
        rules.may_signal(running)
        told = ("--verbose", "--full", f"--signal={words.signal(signal)}", rules.job_argument(running))
        # while scancel retries, a task of an array is dead and not yet requeued: its user's scancel would be lost then
        enough = _RETRYING if running.array_task is not None else ""
        self._commands.run("scancel", *told, timeout_s=_SIGNAL_S, enough=enough)

    def cancel_replica(self, job: JobId, run: JobId) -> None:
        found = self.job(job)
        rules.may_cancel_replica(found, run)
        self._commands.run("scancel", rules.job_argument(found))

    def reservations(self) -> Mapping[str, Reservation]:
        found = reservations.reservations(self._commands.read("scontrol", "--oneliner", "show", "reservations"))
        return reservations.with_leftovers(found, list(self._all_partitions().values()))

    def reserve(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        """Make the reservation first and its partition second, so that a crash never leaves a partition alone."""
        wanted = sorted(set(nodes))
        with contextlib.suppress(Stale):
            self._commands.write("create", *reservations.reserve_words(name, wanted, seconds, _own_user()))
        held = self.reservations().get(name)
        if held is None or held.nodes != frozenset(wanted):
            raise Stale(f"reservation {name} was not made for {node_list(wanted)}")
        with contextlib.suppress(Stale):
            self._commands.write("create", *reservations.partition_words(name, wanted))

    def submit_deep(
        self, name: str, nodes: Iterable[NodeName], argv: Sequence[str], *, seconds: float, output: str
    ) -> None:
        if any(job.deep_check == name and not job.is_over for job in self.jobs().values()):
            return
        wanted = sorted(set(nodes))
        if name not in self._all_partitions():
            self._commands.write("create", *reservations.partition_words(name, wanted))
        words = reservations.submit_argv(name, wanted, seconds, output)
        sbatch = shutil.which("sbatch") or "sbatch"
        self._commands.run(*words, input=reservations.script(argv, sbatch))

    def extend(self, job: JobId, limit_s: float) -> None:
        running = self.job(job)
        rules.may_signal(running)
        limit = rules.limit_minutes(running, limit_s, self._longest_minutes(running.partition))
        if limit is not None:
            self._commands.write("update", f"jobid={rules.job_argument(running)}", f"timelimit={limit}")

    def _longest_minutes(self, partition: str) -> int | None:
        """Return MaxTime of a partition in minutes; None if it has none."""
        shown = self._commands.read("scontrol", "--oneliner", "show", "partition", words.partition(partition))
        return partitions.max_minutes(shown)

    def delay_tasks(self, array: JobId, seconds: float) -> None:
        """Delay the waiting tasks of the array."""
        # Slurm complains about each task that does not wait
        with contextlib.suppress(Stale):
            self._commands.write("update", f"jobid={array}", _start_words(seconds))

    def set_nice(self, job: JobId, nice: int) -> None:
        known = self.job(job)
        rules.may_set_nice(known)
        self._commands.write("update", f"jobid={rules.job_argument(known)}", f"nice={nice}")

    def keep_nodes(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        """Make the reservation, or change it if it exists: Slurm then frees and takes the nodes that differ."""
        wanted = sorted(set(nodes))
        there = self.reservations().get(reservations.checked_keep_name(name))
        if there is None:
            self._commands.write("create", *reservations.keep_words(name, wanted, seconds, _own_user()))
        else:
            self._commands.write("update", *reservations.change_words(name, wanted, seconds))

    def gres_used(self) -> Mapping[NodeName, str]:
        told = self._library.gres() if self._library is not None else None
        if told is not None and told.lines is not None:
            with contextlib.suppress(Garbled):
                return records.gres_used(told.lines)
        return text_nodes.gres_used(
            self._commands.read("sinfo", "--all", "--noheader", "--Format=GresUsed:|,StateLong:|,NodeList:|")
        )

    def fits(self, question: Question) -> Fit:
        return self._asker.ask(question) if self._asker else UNKNOWN

    def free_nodes(self, name: str) -> None:
        with contextlib.suppress(Stale):
            self._commands.write("delete", f"reservation={reservations.checked_keep_name(name)}")

    def release(self, name: str) -> None:
        reservations.checked_deep_name(name)
        if any(job.partition == name and not job.is_over for job in self.jobs().values()):
            self._commands.run("scancel", f"--partition={name}")
        for kind in ("partitionname", "reservation"):
            with contextlib.suppress(Stale):
                self._commands.write("delete", f"{kind}={name}")

    def _take_out(self, marks: Mapping[NodeName, Mark], state: str) -> None:
        """Set the state of the nodes, with their marks as reasons."""
        nodes: defaultdict[Mark, list[NodeName]] = defaultdict(list)
        for name, mark in marks.items():
            nodes[mark].append(name)
        self._commands.write_all(
            ("update", f"nodename={names}", f"state={state}", f"reason={reason(str(mark))}")
            for mark, named in nodes.items()
            for names in node_lists(named)
        )

    def _update_nodes(self, nodes: Iterable[NodeName], *changes: str) -> None:
        """Change the nodes with one command, or several if their names are too long for one."""
        self._commands.write_all([("update", f"nodename={names}", *changes) for names in node_lists(nodes)])


def _own_user() -> str:
    """Return our own login name."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _nudge_words(waiting: Job, nudge: NudgeJob) -> list[Sequence[str]]:
    """Return the commands of a nudge."""
    name = rules.job_argument(waiting)
    update = ("update", f"jobid={name}", f"excnodelist={node_list(nudge.exclude)}", _start_words(nudge.delay_s))
    return [update, ("release", name)] if nudge.release else [update]


def _start_words(delay_s: float) -> str:
    """Return the word for the time from which the job may start."""
    return f"starttime=now+{math.ceil(delay_s)}" if delay_s > 0 else "starttime=now"
