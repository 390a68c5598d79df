"""The doors to the outside, as Protocols. Adapters implement them, workflows call them, tests fake them.

Errors: `Retryable` (try again later, nothing is known to have happened), `Permanent` (will not work as asked) and
`Stale` (the thing is not what we thought: look again before acting). An adapter raises nothing else on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from steward.model.fit import Fit, Question
from steward.model.port_error import Permanent as Permanent
from steward.model.port_error import PortError as PortError
from steward.model.port_error import Retryable as Retryable
from steward.model.port_error import Stale as Stale
from steward.model.port_error import Unsent as Unsent

if TYPE_CHECKING:  # an agent that only needs the errors does not pay for records that it never makes
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from steward.model.action import (
        Action,
        CollectStacks,
        LetGo,
        MendNode,
        NudgeJob,
        ResizeRun,
        SetUpNode,
        SubmitReplica,
    )
    from steward.model.ask import Answer, Ask, OptedIn
    from steward.model.case import Case
    from steward.model.events import Event
    from steward.model.ids import AskId, InstanceId, JobId, Key, NodeName
    from steward.model.instance import Instance, Slot
    from steward.model.job import Job
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
    """Slurm as Steward needs it. Reads tell of all, or of just what is named; writes are batched."""

    def describe(self) -> str:
        """Which adapter and which Slurm this is, for `steward doctor`: one line."""

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        """Every node, or those of `only` that Slurm has. Raises Retryable when no answer comes or can be read."""

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        """Every job slurmctld still holds (MinJobAge), or those of `only` that it holds and each that has one of the
        nodes `on` and is not over. Raises Retryable as above; an empty answer is a real one."""

    def drain(self, marks: Mapping[NodeName, Mark]) -> None:
        """Drain each node with its mark as reason; never overwrites a reason that is not ours (raises Stale)."""

    def down(self, marks: Mapping[NodeName, Mark]) -> None:
        """Drain first, then down, so that no node can come back by itself. Raises Stale as `drain` does."""

    def give_back(self, nodes: Iterable[NodeName], mark: Mark, command: str = "") -> None:
        """Resume nodes whose reason (its first token) is still `mark`, or `command` where one is given (an admin's
        `Action:Replace`, which we left in place). Reads them just before. Raises Stale otherwise: all or none."""

    def requeue(
        self,
        job: JobId,
        exclude: frozenset[NodeName],
        *,
        restart: int | None = None,
        told_at: float | None = None,
    ) -> None:
        """Requeue. `exclude` is the whole exclude list of a job that had ended; one that still ran cannot be changed
        and gets its list from `nudge`. Raises Stale when it is pending, gone or in another run than `restart`, and when
        it ended well: but for one that did so at `told_at` (Unix s) or later, when it was told to make room."""

    def nudge(self, nudges: Sequence[NudgeJob]) -> None:
        """Make pending jobs eligible in `delay_s` (whole seconds, rounded up) with these exclude lists; `release` lifts
        a hold set by Slurm. Of several those that do not wait any more are left alone. For a single one raises Stale as
        `requeue` does, and for a person's hold to be lifted, Retryable while it cleans up."""

    def allow_requeue(self, job: JobId) -> None:
        """Set Requeue=1 on a job."""

    def comment(self, job: JobId, text: str) -> None:
        """Keep `text` (one line that begins with `steward: `) as our part of the admin comment, behind what others say.
        Raises Retryable while the job cleans up, Stale when it has ended, Permanent for a text that is not ours."""

    def partitions(self) -> Mapping[str, Partition]:
        """Every partition. Raises Retryable as `nodes` does."""

    def set_gate(self, partition: str, *, open: bool) -> None:
        """State UP or DOWN. Raises Stale when the partition is gone."""

    def write_partitions(self, text: str) -> None:
        """Replace our own include file. Slurm reads it (`scontrol reconfigure`) only when partitions or their nodes are
        others than before: where just states differ, the file is for slurmctld's next start and `set_gate` for now.
        The states of partitions that are there already do not change. When Slurm refuses the file the last good one is
        put back and read again: Permanent. Permanent also where no include file is configured or slurm.conf does not
        include it; Stale for a partition that would go and has jobs (Slurm would lose them)."""

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        """Delete dynamic nodes' records; one from slurm.conf, and an unknown one, is left and is success. Raises
        Retryable when jobs are on some: those stay, the others go."""

    def set_feature(self, nodes: Iterable[NodeName], prefix: str, word: str) -> None:
        """Have the nodes bear `prefix` + `word` as their only feature that begins with `prefix`, available and active;
        none where `word` is empty; all their other features stay. Nodes that are gone are left out. Slurm forgets it
        when it reads slurm.conf again. Raises Permanent for text that is no feature."""

    def signal(self, job: JobId, signal: str) -> None:
        """To the batch script and all steps. Raises Stale when the job does not run, Unsent where nothing was sent."""

    def reservations(self) -> Mapping[str, Reservation]:
        """Every reservation, and what is left of ours (a partition without one). Raises Retryable as `nodes` does."""

    def reserve(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        """Keep jobs of others off these nodes at once, for at most so long, whoever dies meanwhile; jobs on them run
        on, drained nodes stay drained. Done again it is success; Stale when the name is taken for other nodes.
        Permanent for a name that does not begin with `steward-deep-`."""

    def submit_deep(
        self, name: str, nodes: Iterable[NodeName], argv: Sequence[str], *, seconds: float, output: str
    ) -> None:
        """Submit the one job of reservation `name`: `argv` once on each of its nodes, whatever partitions are closed.
        Where that job is already, nothing is done. It shows in `jobs()` with `name` as its partition."""

    def cancel_replica(self, job: JobId, run: JobId) -> None:
        """End a replica job of an elastic run. Raises Stale when it is over or gone, Permanent when its comment
        does not say that it is one of `run`."""

    def extend(self, job: JobId, limit_s: float) -> None:
        """Have a running job's time limit be at least this, in whole minutes, as far as its partition allows. Longer
        already, or without limit, is success. Raises Stale when the job does not run."""

    def delay_tasks(self, array: JobId, seconds: float) -> None:
        """Let the waiting tasks of an array begin no sooner than in so many seconds (whole ones, rounded up; 0: now).
        Tasks that run or clean up are left alone; none that waits is success."""

    def set_nice(self, job: JobId, nice: int) -> None:
        """Set the nice value of a job that waits or runs. Raises Stale when it is over."""

    def keep_nodes(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        """Start no new job on exactly these nodes, for at most so long from now, whoever dies meanwhile; jobs on them
        run on. No job is ever in the reservation: its end ends none. Done again with other nodes it has those; one that
        another reservation has makes it fail. Permanent for a name other than `steward-keep-...`, `steward-hot-...`."""

    def gres_used(self) -> Mapping[NodeName, str]:
        """Return the nodes that Slurm calls idle and of which it counts some GRES as used, and which: `gpu:a100:4`.
        Both are of one moment. Raises Retryable as `nodes`."""

    def fits(self, question: Question) -> Fit:
        """Slurm's own test of when a job that waits or runs would start; nothing is changed. UNKNOWN where Slurm cannot
        be asked. Never raises. A job that runs counts as one more, beside itself."""

    def free_nodes(self, name: str) -> None:
        """End a reservation that `keep_nodes` made; gone is success. Raises Permanent for a name that is not ours."""

    def release(self, name: str) -> None:
        """Cancel the job of reservation `name` and end the reservation; gone is success. Raises Retryable while the
        job cleans up, Permanent for a name that is not ours."""


class ProviderPort(Protocol):
    """Who makes machines. One implementation per `provider = ` word in the settings; held to one contract suite."""

    def describe(self) -> str:
        """One line for `steward doctor`."""

    def instances(self) -> Mapping[InstanceId, Instance]:
        """Every instance that exists or is being made. Raises Retryable when it cannot be known."""

    def launch(self, slot: Slot, token: str) -> Instance:
        """A new instance for the slot. The same token returns the same instance, also after a crash of the caller.

        Raises Retryable for want of capacity (text begins with `capacity`), for a quota of the account (text begins
        with `quota`) or a passing fault, Permanent otherwise.
        """

    def terminate(self, instance: InstanceId) -> None:
        """Make it go away; unknown or already gone is success."""

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Reboot it (same instance id, new boot id); the same token reboots once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerQuery:
    """Which lines of the ledger: of one job (0: all), not over before `since` (with all other runs of their jobs) and
    begun before `until` (None: whenever); at most `limit`, the newest. Times are Unix seconds."""

    job: int = 0
    since: float = 0.0
    until: float | None = None
    limit: int = 50_000


class StorePort(Protocol):
    """Memory, journal and events; every method is one transaction. Raises Retryable when locked or full."""

    def load(self) -> Memory:
        """The memory of the last commit, with `asked` cleared of intents without outcome (they are asked again)."""

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        """Memory, intents and events together, before anything is done."""

    def ledger(self, wanted: LedgerQuery) -> list[Run | Case]:
        """Runs of jobs and repairs of nodes, oldest first, also those that memory has forgotten: `commit` writes down
        each that its memory changed, under its own key. A line that cannot be read is left out."""

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        """How intents ended; an empty error is success."""

    def failures(self) -> Mapping[str, str]:
        """key -> error of intents whose last outcome was a failure and that are not older than an hour."""

    def done(self, kind: str) -> frozenset[str]:
        """Keys of intents of a kind (`BackUpNode`) whose last outcome was success, not older than an hour."""

    def add_events(self, events: Sequence[Event]) -> None: ...

    def events(self, *, after: int = 0, limit: int = 500, node: str = "", job: int = 0) -> list[tuple[int, Event]]:
        """(sequence number, event), oldest first; without `after`, the newest `limit` ones."""

    def channel(self, name: str) -> ChannelState | None:
        """The memory of a channel of notifications; None for a new one, and where it cannot be read."""

    def keep_channel(self, name: str, state: ChannelState) -> None: ...

    def first_use(self, key: str, until: float) -> bool:
        """Whether `key` was never taken before; from now on it was, until that time (Unix s), also for other heads."""


class MessengerPort(Protocol):
    """How a channel of notifications sends. Slow: called in the channel's own thread."""

    def send(self, message: Message) -> None:
        """Raises Retryable when it may not have arrived, Permanent when it is not wanted. No error quotes a secret."""


class AgentPort(Protocol):
    """The head's side of all agent connections. Safe to call from the cycle's thread; never blocks long."""

    def views(self) -> Mapping[NodeName, AgentView]: ...

    def asks(self) -> tuple[Ask, ...]:
        """Shims that are waiting now."""

    def opted_in(self) -> tuple[OptedIn, ...]:
        """Every opted-in job that some agent has told of since this head runs."""

    def since(self) -> float:
        """When this head began to listen (Unix s)."""

    def answer(self, ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> None:
        """Raises Stale when nobody waits for it any more."""

    def check_now(self, nodes: frozenset[NodeName], budget_s: float) -> None:
        """Ask for fresh results; they appear in `views()` (checked_at) and ring the bell."""

    def let_go(self, order: LetGo) -> None:
        """Pass it on to the agents of its nodes that are connected; its effect is that they leave COMPLETING."""

    def collect_stacks(self, order: CollectStacks) -> None:
        """Pass it on as `let_go`; that a node's part is kept comes with the views (`bundles`). Raises Permanent for an
        order that no agent would take."""

    def mend(self, order: MendNode) -> None:
        """Raises Stale when its agent is not connected, else as `collect_stacks`. How it ended is `AgentView.mend`."""

    def tell_run(self, order: ResizeRun | SubmitReplica) -> None:
        """For the coordinator of an elastic run. Raises Stale as `mend` does; how it goes is `AgentView.elastic`."""

    def set_up(self, order: SetUpNode) -> None:
        """Have its agent run the lifecycle scripts, once per token and boot. Raises Stale as `mend` does."""

    def have_looked_at(self, node: NodeName, slurmd: Address, peers: frozenset[NodeName]) -> None:
        """Have the agents of `peers` look at a node's slurmd port, too; what they find appears as `AgentView.peers`."""

    def saw(self, seen: Mapping[NodeName, WitnessSeen]) -> None:
        """Keep what the second witness found; it appears in `views()` and rings the bell."""


class SitePort(Protocol):
    """The site's own commands around an instance's life. Slow: called in the pool."""

    def back_up(self, node: NodeName, instance: InstanceId, *, restore: bool) -> None:
        """Within its deadline. Raises Permanent with its last line when it fails."""

    def firing(self, alarms: Sequence[str]) -> tuple[str, ...]:
        """Which of these alarms fire. Raises Retryable when it cannot be known."""


class WitnessPort(Protocol):
    def look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        """Connect to the port of each slurmd, half-close, wait up to a second for an answer or a close: all at once, so
        that a thousand that do not answer take as long as one. `saw` is told as soon as something is found out, which
        it never is where the resolver does not answer for a name, or we cannot look ourselves."""


class ProbePort(Protocol):
    """The agent's senses."""

    def look(self, probe: Probe) -> Raw:
        """Never raises: a failed look is Raw(error=...)."""


class MungePort(Protocol):
    """Proof of who speaks: only a daemon with the cluster's key can make or read a credential."""

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        """Only user `reader` can read it, where one is given. Raises Retryable when munged does not answer."""

    def decode(self, credential: str) -> tuple[int, bytes]:
        """(uid of the maker, payload). Permanent: forged, replayed or expired. Retryable: no munged."""


class Clock(Protocol):
    def now(self) -> float:
        """Unix seconds."""


class Notifier(Protocol):
    """The service manager: readiness, watchdog, status line. A no-op where there is none."""

    def ready(self) -> None: ...
    def alive(self, status: str) -> None: ...
    def stopping(self) -> None: ...
