"""The interfaces to the outside world, as Protocols. Adapters implement them, workflows call them, tests fake them.

Errors: `Retryable` (try again later; nothing is known to have happened), `Permanent` (will not work as asked),
`Stale` (the object has changed: read it again before acting) and `Deposed` (another head leads). An adapter raises no
other error on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from steward.model.fit import Fit, Question
from steward.model.port_error import Deposed as Deposed
from steward.model.port_error import Permanent as Permanent
from steward.model.port_error import PortError as PortError
from steward.model.port_error import Retryable as Retryable
from steward.model.port_error import Stale as Stale
from steward.model.port_error import Unsent as Unsent
from steward.model.port_error import WrongClock as WrongClock

if TYPE_CHECKING:  # spare an agent, which only needs the errors, these imports
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from steward.model.accounting import Accounting
    from steward.model.action import CancelJob, DropQos, MarkJob, MoveJob, NudgeJob, SetNodeCount, SetQos, SetTeam
    from steward.model.agent_action import Action, AgentAction, AgentsAction
    from steward.model.ask import Answer, Ask, OptedIn
    from steward.model.case import Case
    from steward.model.events import Event
    from steward.model.ids import AskId, InstanceId, JobId, Key, NodeName
    from steward.model.instance import Instance, Slot
    from steward.model.job import Job
    from steward.model.leadership import FollowerWord, LeaderWord, Lease
    from steward.model.ledger import Run
    from steward.model.mark import Mark
    from steward.model.memory import Memory
    from steward.model.node import Node
    from steward.model.notify import ChannelState, Message
    from steward.model.observed import AgentView
    from steward.model.partition import Partition
    from steward.model.probe import Probe, Raw
    from steward.model.reservation import Reservation
    from steward.model.witness import Address, WitnessSeen


class SlurmPort(Protocol):
    """Slurm, as far as Steward needs it. Reads return everything, or just the named objects; writes are batched."""

    def describe(self) -> str:
        """Return one line for `steward doctor`: which adapter, and which Slurm."""

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        """Return every node, or those of `only` that Slurm has. Raises Retryable if no readable answer comes."""

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        """Return every job that slurmctld still holds (MinJobAge), or a choice of them.

        The choice is the jobs of `only` that slurmctld holds, and each unfinished job that has one of the nodes `on`.
        Raises Retryable if no readable answer comes; an empty answer is believed.
        """

    def drain(self, marks: Mapping[NodeName, Mark], cleared: Collection[NodeName] = ()) -> None:
        """Drain each node with its mark as reason. Raises Stale rather than overwrite a reason that is not ours.

        Of the nodes `cleared`, which bore our mark, a drain without a reason is ours, too.
        """

    def down(self, marks: Mapping[NodeName, Mark]) -> None:
        """Drain each node, then set it DOWN, so that no node can come back by itself. Raises Stale as `drain` does."""

    def give_back(self, nodes: Iterable[NodeName], mark: Mark, command: str = "") -> None:
        """Resume nodes whose reason still begins with `mark`, or with `command` if one is given.

        `command` is an admin's `Action:Replace`, which Steward left in place as the reason. Nodes are read just before.
        Raises Stale, and resumes no node, if one has another reason.
        """

    def requeue(
        self,
        job: JobId,
        exclude: frozenset[NodeName],
        *,
        restart: int | None = None,
        told_at: float | None = None,
    ) -> None:
        """Requeue a job.

        `exclude` becomes the whole exclude list of a job that has ended; the list of a running job is set by `nudge`.
        Raises Stale if the job is pending, gone, in another run than `restart`, cancelled or completed. A job that
        completed at `told_at` (Unix s) or later is requeued all the same: it was told to make room.
        """

    def nudge(self, nudges: Sequence[NudgeJob]) -> None:
        """Make pending jobs eligible in `delay_s` (whole seconds, rounded up) with these exclude lists.

        `release` lifts a hold set by Slurm. Several jobs: those that are no longer pending are skipped. A single job:
        raises Stale if it is not pending, gone, in another run, or held by a person; Retryable while it is completing.
        """

    def allow_requeue(self, job: JobId) -> None:
        """Set Requeue=1 on a job."""

    def comment(self, job: JobId, text: str) -> None:
        """Write `text` as Steward's part of the job's admin comment, behind the parts of other tools.

        `text` is one line that begins with `steward: `; for any other text, raises Permanent. Raises Retryable while
        the job is completing, Stale if it has ended and has no record in the accounting.
        """

    def partitions(self) -> Mapping[str, Partition]:
        """Return every partition. Raises Retryable as `nodes` does."""

    def set_gate(self, partition: str, *, open: bool) -> None:
        """Set a partition's state to UP or DOWN. Raises Stale if the partition is gone."""

    def write_partitions(self, text: str) -> None:
        """Replace Steward's own include file.

        Slurm reads the file (`scontrol reconfigure`) only if partitions or their nodes differ from before. Changed
        states count from the next start of slurmctld; `set_gate` sets them at once. The states of existing
        partitions do not change.

        Raises Permanent if Slurm refuses the file (then the last good one is put back and read again), if no include
        file is configured, or if slurm.conf does not include it. Raises Stale if a partition that would go has jobs:
        Slurm would lose them.
        """

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        """Delete the records of dynamic nodes; skip unknown nodes and those from slurm.conf.

        Raises Retryable if some nodes have jobs: those stay, the others are deleted.
        """

    def set_feature(self, nodes: Iterable[NodeName], prefix: str, word: str) -> None:
        """Give the nodes `prefix` + `word` as their only feature that begins with `prefix`, available and active.

        All other features stay; an empty `word` removes the feature. Nodes that are gone are skipped. Slurm forgets the
        feature when it reads slurm.conf again. Raises Permanent for text that cannot be a feature.
        """

    def signal(self, job: JobId, signal: str) -> None:
        """Signal the batch script and all steps. Raises Stale if the job does not run, Unsent if no signal was sent."""

    def reservations(self) -> Mapping[str, Reservation]:
        """Return every reservation. Raises Retryable as `nodes` does.

        A deep check's partition whose reservation has ended is returned as a reservation, to be released.
        """

    def reserve(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        """Keep other users' jobs off these nodes from now on, for at most `seconds`, even if Steward dies meanwhile.

        Jobs on the nodes run on; drained nodes stay drained. Reserving again is success. Raises Stale if the name is
        taken for other nodes, Permanent for a name that does not begin with `steward-deep-`.
        """

    def submit_deep(
        self, name: str, nodes: Iterable[NodeName], argv: Sequence[str], *, seconds: float, output: str
    ) -> None:
        """Submit the job of reservation `name`: `argv` once on each of its nodes, even if partitions are closed.

        Does nothing if the job exists. The job appears in `jobs()` with `name` as its partition.
        """

    def cancel_replica(self, job: JobId, run: JobId) -> None:
        """End a replica job of an elastic run.

        Raises Stale if the job is over or gone, Permanent if its comment does not say that it belongs to `run`.
        """

    def extend(self, job: JobId, limit_s: float) -> None:
        """Raise a running job's time limit to at least `limit_s`, in whole minutes, as far as its partition allows.

        Success if the job has as long a limit, or none. Raises Stale if the job does not run.
        """

    def delay_tasks(self, array: JobId, seconds: float) -> None:
        """Delay the pending tasks of an array by `seconds` (rounded up to whole ones; 0: now).

        Tasks that run or are completing are left alone. Success if no task is pending.
        """

    def set_nice(self, job: JobId, nice: int) -> None:
        """Set the nice value of a pending or running job. Raises Stale if the job is over or held."""

    def keep_nodes(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        """Keep new jobs off exactly these nodes, for at most `seconds`, even if Steward dies meanwhile.

        Jobs on the nodes run on. No job is ever in the reservation, so its end ends no job. Called again with other
        nodes, the reservation changes to those. Fails if another reservation has one of the nodes. Raises Permanent for
        a name that begins with neither `steward-keep-` nor `steward-hot-`.
        """

    def gres_used(self) -> Mapping[NodeName, str]:
        """Return the GRES in use (`gpu:a100:4`) of each node that Slurm shows as idle with GRES in use.

        State and GRES are read at one moment. Raises Retryable as `nodes` does.
        """

    def fits(self, question: Question) -> Fit:
        """Return when a pending or running job would start, by Slurm's own test, which changes nothing.

        A running job is tested as if it were submitted again. Never raises: returns UNKNOWN if Slurm cannot be asked.
        """

    def free_nodes(self, name: str) -> None:
        """End a reservation of `keep_nodes`; success if it is gone. Raises Permanent for a name that is not ours."""

    def release(self, name: str) -> None:
        """Cancel the job of reservation `name`, and end the reservation; success if they are gone.

        Raises Retryable while the job is completing, Permanent for a name that is not ours.
        """


class ProviderPort(Protocol):
    """A maker of machines. Each `provider = ` of the settings has an implementation; one contract suite tests all."""

    def describe(self) -> str:
        """Return one line for `steward doctor`."""

    def instances(self) -> Mapping[InstanceId, Instance]:
        """Return every instance that exists or is being made. Raises Retryable if the provider cannot say."""

    def launch(self, slot: Slot, token: str) -> Instance:
        """Return a new instance for the slot; the same token returns the same instance.

        This holds also after a crash of the caller. Raises Retryable for lack of capacity (text begins with
        `capacity`), for a quota of the account (text begins with `quota`) and for a passing fault; Permanent otherwise.
        """

    def terminate(self, instance: InstanceId) -> None:
        """End an instance; success if it is unknown or gone."""

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Reboot an instance (same instance id, new boot id); the same token reboots once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerQuery:
    """A choice of lines of the ledger. Times are Unix seconds.

    The newest `limit` lines of `job` (0: of all jobs) that began before `until` (None: at any time) and were not over
    before `since`, with all other runs of their jobs. `task` limits the lines to runs of this task of an array (`7_2`).
    """

    job: int = 0
    task: str = ""
    since: float = 0.0
    until: float | None = None
    limit: int = 50_000


class StorePort(Protocol):
    """Memory, journal and events; every method is one transaction. Raises Retryable if the store is locked or full.

    In a shared database, each write is made only while this head holds the lease, and raises Deposed otherwise.
    """

    def load(self) -> Memory:
        """Return the memory of the last commit; intents without outcome are left out of `asked`, to be asked again."""

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        """Commit memory, intents and events together, before any action."""

    def ledger(self, wanted: LedgerQuery) -> list[Run | Case]:
        """Return runs of jobs and repairs of nodes, oldest first, including those that memory has forgotten.

        `commit` writes the lines that memory changed, each under a key of its own. Unreadable lines are left out.
        """

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        """Record how intents ended; an empty error is success."""

    def failures(self) -> Mapping[str, str]:
        """Return key -> error of the intents of the last hour whose last outcome was a failure."""

    def done(self, kind: str) -> frozenset[str]:
        """Return the keys of intents of a kind (`BackUpNode`) from the last hour whose last outcome was success."""

    def add_events(self, events: Sequence[Event]) -> None: ...

    def events(self, *, after: int = 0, limit: int = 500, node: str = "", job: int = 0) -> list[tuple[int, Event]]:
        """Return (sequence number, event), oldest first; without `after`, the newest `limit` ones."""

    def channel(self, name: str) -> ChannelState | None:
        """Return the memory of a channel of notifications; None if the channel is new or its memory cannot be read."""

    def keep_channel(self, name: str, state: ChannelState) -> None: ...

    def first_use(self, key: str, until: float) -> bool:
        """Take `key` until that time (Unix s), for all heads. Return whether the key was free."""


class LeasePort(Protocol):
    """The lease of the head that leads, for all heads of a cluster. Raises Retryable while it cannot be reached."""

    def read(self) -> Lease:
        """Return the lease as it is now."""

    def take(self, seen: Lease, leader: str, word: LeaderWord) -> Lease | None:
        """Take the lease for `leader`, with a larger epoch, if it is still as `seen`; return None if it is not."""

    def renew(self, word: LeaderWord) -> Lease:
        """Renew the lease that was taken here. Raises Deposed if another head has taken it."""

    def release(self) -> None:
        """Let another head take the lease at once; nothing if it was not taken here, or is lost."""

    def followers(self) -> Mapping[str, FollowerWord]:
        """Return what each head said last while it followed, by its name."""

    def tell(self, follower: str, word: FollowerWord) -> None:
        """Write what a follower says of itself."""


class MessengerPort(Protocol):
    """The sender of a channel of notifications. Its calls block: they run in the channel's own thread."""

    def send(self, message: Message) -> None:
        """Send a message. Raises Retryable if it may not have arrived, Permanent if it is refused.

        No error quotes a secret.
        """


class AgentPort(Protocol):
    """The head's side of all agent connections. Safe to call from the cycle's thread; never blocks long."""

    def views(self) -> Mapping[NodeName, AgentView]: ...

    def asks(self) -> tuple[Ask, ...]:
        """Return the questions of shims that wait now."""

    def opted_in(self) -> tuple[OptedIn, ...]:
        """Return every opted-in job that an agent has reported since this head started."""

    def since(self) -> float:
        """Return when this head began to listen (Unix s)."""

    def answer(self, ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> None:
        """Answer a waiting shim. Raises Stale if the shim no longer waits."""

    def check_now(self, nodes: frozenset[NodeName], budget_s: float) -> None:
        """Ask agents for fresh results, which appear in `views()` (checked_at) and ring the bell."""

    def order(self, action: AgentAction | AgentsAction) -> None:
        """Have agents carry out the action; its effect is seen in `views()`, or in Slurm.

        Raises Stale if the agent of an `AgentAction` is not connected, Permanent for an order that no agent would
        accept.
        """

    def have_looked_at(self, node: NodeName, slurmd: Address, peers: frozenset[NodeName]) -> None:
        """Have the agents of `peers` probe a node's slurmd port, too; their results appear as `AgentView.peers`."""

    def keep_witness(self, seen: Mapping[NodeName, WitnessSeen]) -> None:
        """Keep the results of the second witness, which appear in `views()` and ring the bell."""


class SitePort(Protocol):
    """The site's own commands: backup and restore of a node, and alarms. Its calls block: they run in a thread pool."""

    def back_up(self, node: NodeName, instance: InstanceId, *, restore: bool) -> None:
        """Run the site's backup (or restore) command until its deadline.

        Raises Permanent with the command's last line if it fails.
        """

    def firing(self, alarms: Sequence[str]) -> tuple[str, ...]:
        """Return which of these alarms fire. Raises Retryable if the site's command cannot say."""


class WitnessPort(Protocol):
    """The second witness: a look at the slurmd ports of nodes."""

    def look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        """Probe the slurmd ports of all nodes at once, and pass each result to `saw` as soon as it is known.

        A probe connects, half-closes, and waits up to a second for an answer or a close; a thousand silent nodes take
        as long as one. A node has no result if the resolver does not answer for its name, or if this machine cannot
        probe.
        """


class ProbePort(Protocol):
    """The probes of the agent's machine."""

    def look(self, probe: Probe) -> Raw:
        """Return the raw result of a probe. Never raises: a failed probe is Raw(error=...)."""


class MungePort(Protocol):
    """Proof of identity: only a daemon with the cluster's key can make or read a credential."""

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        """Return a credential, which only user `reader` can read if one is given.

        Raises Retryable if munged does not answer.
        """

    def decode(self, credential: str) -> tuple[int, bytes]:
        """Return (uid of the maker, payload).

        Raises WrongClock for an expired one or one from the future, Permanent for a forged or replayed one, Retryable
        if munged does not answer.
        """


class Clock(Protocol):
    """The clock of a daemon."""

    def now(self) -> float:
        """Return the time (Unix s)."""


class Notifier(Protocol):
    """The service manager: readiness, watchdog, status line. Does nothing on a machine without one."""

    def ready(self) -> None: ...
    def alive(self, status: str) -> None: ...
    def stopping(self) -> None: ...


class AccountingPort(Protocol):
    """Slurm's accounting, as far as quotas need it. The effect of a write shows in the next `picture`.

    Steward changes only its own QOS (`stw-...`) and accounts, the QOS and limits of accounts that a quota names, and
    the jobs of those accounts.
    """

    def picture(self) -> Accounting:
        """Return all of accounting, from slurmctld's own copy. Raises Retryable if it cannot be read.

        `reachable` is False while slurmdbd does not answer: then no limit can be changed.
        """

    def set_qos(self, action: SetQos) -> None:
        """Make or change a QOS of ours. Raises Permanent for any other, Retryable while slurmdbd does not answer."""

    def drop_qos(self, action: DropQos) -> None:
        """Delete a QOS of ours; success if it is gone. Raises Permanent for any other, Stale while it is in use."""

    def set_team(self, action: SetTeam) -> None:
        """Set the QOS and limits of an account.

        Raises Stale if the account does not exist, Permanent for the root account, Retryable as `set_qos` does.
        """

    def make_account(self, name: str) -> None:
        """Make an account with our mark on this cluster; success if it exists, with whatever mark it has."""

    def remove_account(self, name: str) -> None:
        """Remove an account; success if it is gone.

        Raises Stale if the account is not ours, or has users, jobs or accounts below it.
        """

    def move_job(self, action: MoveJob) -> None:
        """Set a job's QOS. Raises Stale if the job is not pending, Permanent for a QOS that its account may not use."""

    def mark_job(self, action: MarkJob) -> None:
        """Set a job's priority; None: leave it to Slurm again. Raises Stale if the job is over or in another run."""

    def set_node_count(self, action: SetNodeCount) -> None:
        """Set how many nodes a job asks for. Raises Stale if the job is not pending."""

    def cancel_job(self, action: CancelJob) -> None:
        """Cancel a job. Raises Stale if the job is over or in another run."""
