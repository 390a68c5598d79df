"""Carry out actions as calls of ports. Each action is idempotent by its key, so it may be repeated after any failure.

Quick actions are done at once and in order. A slow action (a machine, the second witness) is done beside the cycle by
the threads of its lane; its outcome rings the bell. An answer to a shim promises that the actions before it were done:
it is withheld if one of them failed.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from steward.model.action import AnswerAsk, CommentJob, LaunchInstance
from steward.model.agent_action import Action
from steward.model.ask import Answer
from steward.model.ids import JobId, Key, NodeName
from steward.model.observed import Observed, Subject
from steward.model.port_error import ERROR, NOT_TRIED, REFUSED, RETRY, STALE, recorded
from steward.ports import Deposed, Permanent, PortError, Retryable, Stale, Unsent
from steward.workflows.effects import Batch, Breaks, Door, Lane, Ports, row_of, take_effect
from steward.workflows.journal import Journal, kind_of, touched_by
from steward.workflows.pool import WorkerPool, Workers

log = logging.getLogger(__name__)

_AT_ONCE = {Lane.COMMENTS: 1, Lane.LIMITS: 4, Lane.LOOKS: 4, Lane.MACHINES: 8, Lane.BACKUPS: 8}
"""Threads of each lane. Comments get one: they are not urgent."""
_REJECTS_BATCH = (STALE, REFUSED)
"""Outcomes with which Slurm rejects a whole batch for some of its actions. Halving the batch finds these."""
_COMMENTS_S = 0.5
"""How long the answers of one turn may wait for comments in all: a user's jobs can fail by the hundred."""
_TOO_SLOW_S = 5.0
_HUNG = {
    Door.SLURM: "the Slurm command before it did not return",
    Door.ACCOUNTING: "the change of limits before it did not return",
}


def batches(actions: Sequence[Action]) -> list[Batch]:
    """Group actions that one Slurm command can do for many nodes, so that a thousand of them do not take minutes.

    The order is kept, except that an action may join an earlier batch of its kind. It joins none that lies before
    another action about the same node, nor before a barrier: an action whose `Row.nodes` is None, such as a requeue (an
    answer promises that the actions before it were done). A barrier itself joins only the batch right before it.
    """
    found: list[list[Action]] = []
    open_at: dict[Hashable, int] = {}
    touched: dict[NodeName, int] = {}
    for action in actions:
        kind, nodes = _call_key(action), row_of(action).nodes(action)
        least = len(found) - 1 if nodes is None else max((touched.get(node, 0) for node in nodes), default=0)
        at = open_at.get(kind, -1)
        if kind is None or at < max(least, 0):
            at = len(found)
            found.append([])
        found[at].append(action)
        if nodes is None:
            open_at.clear()
        open_at[kind] = at
        touched |= dict.fromkeys(nodes or (), at)
    return [tuple(batch) for batch in found]


def _call_key(action: Action) -> Hashable | None:
    """Return the key of the actions that can share a call with this one; None if it needs its own."""
    groups_by = row_of(action).groups_by
    return (type(action), groups_by(action)) if groups_by is not None else None


class Promises:
    """Failed actions of a plan, by the promises to shims that they break, and doors whose commands hang.

    An answer tells a shim that its job was requeued or its bad nodes taken out: it must not be sent if that failed. An
    action whose wish is already met (`stale`) counts as done.
    """

    def __init__(self) -> None:
        self._jobs: set[JobId] = set()
        self._nodes: set[NodeName] = set()
        self._hung: set[Door] = set()

    def refusal(self, action: Action) -> str:
        """Return why the action must not be tried now; empty if it may."""
        door = row_of(action).door
        if door in self._hung:
            return _HUNG[door]
        if isinstance(action, AnswerAsk) and action.answer is not Answer.STOP and self._is_broken(action):
            return "an action that the answer promises could not be done"
        return ""

    def _is_broken(self, answer: AnswerAsk) -> bool:
        """Return whether an action that the answer promises failed."""
        return answer.job in self._jobs or bool(answer.exclude & self._nodes)

    def note(self, batch: Batch, outcome: str, took_s: float) -> None:
        """Note the outcome of a batch, and whether its command hung."""
        if outcome in ("done", STALE):
            return
        for action in batch:
            self._note(action, took_s)

    def _note(self, action: Any, took_s: float) -> None:
        """Note the failure of one action."""
        row = row_of(action)
        if row.breaks is Breaks.JOB:
            self._jobs.add(action.job)
        elif row.breaks is Breaks.NODE:
            self._nodes.add(action.node)
        if row.door in _HUNG and took_s > _TOO_SLOW_S:
            self._hung.add(row.door)


class Applier:
    """The part that carries out the actions of each plan.

    `apply` is called by the cycle alone. `changed` gets the records touched in Slurm, `listing` asks for a new list of
    instances.
    """

    def __init__(
        self,
        ports: Ports,
        journal: Journal,
        *,
        changed: Callable[[Subject | None], None],
        listing: Callable[[], None],
        ring: Callable[[], None],
        workers: Workers | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the ports, the journal and `ring`, which is called when a slow action ended.

        `workers` carry out slow actions; without them, threads of our own do. `monotonic` measures how long a command
        took. `permit` is called right before each call of a port, and raises Unsent if this head may not act now.
        """
        self._ports, self._journal = ports, journal
        self._changed, self._listing, self._ring = changed, listing, ring
        self._pools = {lane: workers or WorkerPool(size, lane.value) for lane, size in _AT_ONCE.items()}
        self._monotonic, self._permit = monotonic, permit
        self._lock = threading.Lock()
        self._under_way: set[Key] = set()

    def apply(self, actions: Sequence[Action], seen: Observed, alive: Callable[[], None]) -> None:
        """Carry out all actions; never raise for a port's failure. After a hung Slurm command, try no other one.

        Outcomes are written at the end, when no shim waits: after a crash before that, all actions are done again.
        """
        kept, ended = Promises(), list[tuple[Action, str]]()
        waiting = deque(batches(actions))
        # Slurm takes no comment for a job that has ended: the comment of such a job goes out before the job's answer.
        leaving, comments_s = {a.job for a in actions if isinstance(a, AnswerAsk) and a.answer is Answer.STOP}, 0.0
        while waiting:
            batch = waiting.popleft()
            first = batch[0]
            lane = row_of(first).lane
            is_awaited = isinstance(first, CommentJob) and first.job in leaving and comments_s < _COMMENTS_S
            if lane is not None and not is_awaited:
                self._start(self._pools[lane], batch, seen)
            elif refusal := kept.refusal(first):
                ended += self._log_outcomes(batch, NOT_TRIED, refusal)
                kept.note(batch, NOT_TRIED, 0.0)
            else:
                began = self._monotonic()
                outcome, error = self._try(first, partial(self._call_ports, batch, seen))
                if len(batch) > 1 and outcome in _REJECTS_BATCH:
                    middle = len(batch) // 2
                    waiting.extendleft((batch[middle:], batch[:middle]))
                    continue
                ended += self._log_outcomes(batch, outcome, error)
                kept.note(batch, outcome, took_s := self._monotonic() - began)
                comments_s += took_s if is_awaited else 0.0
            alive()
        self._journal.keep(ended)

    def _call_ports(self, batch: Batch, seen: Observed) -> None:
        """Make the call of a batch, and report which records it touched."""
        self._permit()
        try:
            take_effect(self._ports, batch, seen)
        finally:
            if row_of(batch[0]).shows_in_slurm:
                self._changed(touched_by(batch, seen))

    def _start(self, pool: Workers, batch: Batch, seen: Observed) -> None:
        """Carry out a batch in its pool; leave out actions that are under way already."""
        with self._lock:
            new = tuple(action for action in batch if action.key not in self._under_way)
            self._under_way.update(action.key for action in new)
        if new:
            pool.submit(lambda: self._run_slow(new, seen))

    def _run_slow(self, batch: Batch, seen: Observed) -> None:
        """Carry out a slow batch and write its outcome."""
        door = row_of(batch[0]).door
        try:
            outcome, error = self._try(batch[0], lambda: self._call_ports(batch, seen))
            ended = self._log_outcomes(batch, outcome, error)
            # The outcome of a look may be lost, because an old look is repeated anyway. Written at once, a thousand
            # lost nodes would be a thousand writes to the disk.
            write = self._journal.record if door is Door.MACHINES else self._journal.keep
            write(ended)
        finally:
            with self._lock:
                self._under_way.difference_update(action.key for action in batch)
            if door is Door.MACHINES:
                self._listing()
            self._ring()

    def _try(self, first: Action, call: Callable[[], None]) -> tuple[str, str]:
        """Return the outcome of the call in one word, and its error."""
        try:
            call()
        except PortError as error:
            return _outcome_of(error), str(error) or type(error).__name__
        except Exception as error:
            log.exception("%s failed unexpectedly", kind_of(first))
            return ERROR, f"{type(error).__name__}: {error}"
        return "done", ""

    def _log_outcomes(self, batch: Batch, outcome: str, error: str) -> list[tuple[Action, str]]:
        """Log the outcome of each action, and return each action with the text for the journal."""
        for action in batch:
            self._journal.told(action, outcome, error)
        in_slurm = row_of(batch[0]).door in (Door.SLURM, Door.ACCOUNTING)
        has_word = in_slurm or (outcome == REFUSED and _is_launch_for_group(batch[0]))
        return [(action, recorded(outcome, error) if has_word else error) for action in batch]


def _is_launch_for_group(action: Action) -> bool:
    """Return whether the action is a launch for a group: its outcome says whether another try can ever work."""
    return isinstance(action, LaunchInstance) and action.case is None


def _outcome_of(error: PortError) -> str:
    """Return the outcome's word for an error."""
    if isinstance(error, Stale):
        return STALE
    if isinstance(error, Unsent | Deposed):
        return NOT_TRIED
    return REFUSED if isinstance(error, Permanent) else RETRY if isinstance(error, Retryable) else ERROR
