"""Actions become calls of ports. Each is idempotent by its key: it may be tried again after any failure or crash.

What is quick is done at once and in order. What may be slow (machines, the second witness) is done in a pool; its
outcome rings the bell. An answer is a promise that what came before it was done: it is withheld when that failed.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from steward.model.action import (
    Action,
    AllowRequeue,
    AnswerAsk,
    BackUpNode,
    CheckNow,
    CollectStacks,
    CommentJob,
    DownNode,
    DrainNode,
    ExtendLimit,
    ForgetNode,
    LaunchInstance,
    LetGo,
    LookAtAlarms,
    MendNode,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    RequeueJob,
    ReturnNode,
    SetFeature,
    SetGate,
    SetNice,
    SetUpNode,
    SignalJob,
    TerminateInstance,
    WritePartitions,
)
from steward.model.ask import Answer
from steward.model.ids import Key
from steward.model.observed import Observed
from steward.model.outcome import ERROR, REFUSED, RETRY, STALE, recorded
from steward.model.subject import Subject
from steward.ports import Permanent, PortError, ProviderPort, Retryable, Stale
from steward.workflows.batch import Batch, batches, nodes_of
from steward.workflows.effects import EffectAction, Ports, take_effect
from steward.workflows.journal import Journal
from steward.workflows.pool import Pool, Workers
from steward.workflows.promises import AccountAction, JobAction, Promises, SlurmAction
from steward.workflows.subject import kind_of, touched_by

log = logging.getLogger(__name__)

Machine = LaunchInstance | TerminateInstance | RebootInstance | BackUpNode | LookAtAlarms
Slow = ProbeNode | Machine | CommentJob | ExtendLimit
"""Slurm keeps who changes a running job waiting for 5 s while the job's record in its database is not there yet: nobody
else waits for a comment or a limit."""
_SLOW_AT_ONCE = 8
_ONE_OF_THEM = (STALE, REFUSED)
"""Slurm took none of a batch because of one or some of it: they are found by halves."""


class Applier:
    """`apply` is called by the cycle alone; `changed` is told what was touched in Slurm, `listing` of instances."""

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
    ) -> None:
        """`workers` carry out what is slow; threads of our own when none are given. `monotonic` tells how long a
        command took, seconds."""
        self._ports, self._journal = ports, journal
        self._changed, self._listing, self._ring = changed, listing, ring
        self._pool = workers or Pool(_SLOW_AT_ONCE, "slow")
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._under_way: set[Key] = set()

    def apply(self, actions: Sequence[Action], seen: Observed, alive: Callable[[], None]) -> None:
        """Do all of it; never raises for a port's failure. After a Slurm command that hung, no other is tried.

        How it went is written down later, when nobody waits: after a crash before that all of it is done again.
        """
        kept, ended = Promises(), list[tuple[Action, str]]()
        waiting = deque(batches(actions))
        # Slurm takes no comment of a job that has ended: that one goes out before the answer.
        leaving = {a.job for a in actions if isinstance(a, AnswerAsk) and a.answer is Answer.STOP}
        while waiting:
            batch = waiting.popleft()
            first = batch[0]
            if isinstance(first, Slow) and not (isinstance(first, CommentJob) and first.job in leaving):
                self._start(first, seen)
            elif refusal := kept.refusal(first):
                ended += self._tell(batch, "not tried", refusal)
                kept.note(batch, "not tried", 0.0)
            else:
                began = self._monotonic()
                outcome, error = self._try(first, partial(self._do, batch, seen))
                if len(batch) > 1 and outcome in _ONE_OF_THEM:
                    middle = len(batch) // 2
                    waiting.extendleft((batch[middle:], batch[:middle]))
                    continue
                ended += self._tell(batch, outcome, error)
                kept.note(batch, outcome, self._monotonic() - began)
            alive()
        self._journal.keep(ended)

    def _do(self, batch: Batch, seen: Observed) -> None:
        match first := batch[0]:
            case AnswerAsk():
                self._ports.agents.answer(first.ask, first.answer, first.exclude)
            case CheckNow():
                self._ports.agents.check_now(first.nodes, first.budget_s)
            case LetGo():
                self._ports.agents.let_go(first)
            case CollectStacks():
                self._ports.agents.collect_stacks(first)
            case MendNode():
                self._ports.agents.mend(first)
            case SetUpNode():
                self._ports.agents.set_up(first)
            case (
                ProbeNode() | LaunchInstance() | TerminateInstance() | RebootInstance() | BackUpNode() | LookAtAlarms()
            ):
                raise AssertionError(f"{kind_of(first)} is for the pool")
            case _:
                try:
                    self._do_in_slurm(first, batch)
                finally:
                    self._changed(touched_by(batch, seen))

    def _do_in_slurm(self, first: SlurmAction | EffectAction, batch: Batch) -> None:
        slurm = self._ports.slurm
        match first:
            case _ if isinstance(first, EffectAction):
                take_effect(self._ports, first)
            case DrainNode():
                slurm.drain(nodes_of(batch), first.mark)
            case DownNode():
                slurm.down(nodes_of(batch), first.mark)
            case ReturnNode():
                slurm.give_back(nodes_of(batch), first.mark, first.command)
            case ForgetNode():
                slurm.forget_nodes(nodes_of(batch))
            case SetFeature():
                slurm.set_feature(first.nodes, first.prefix, first.word)
            case SetGate():
                slurm.set_gate(first.partition, open=first.open)
            case WritePartitions():
                slurm.write_partitions(first.text)
            case _:
                self._do_to_job(first)

    def _do_to_job(self, first: JobAction) -> None:
        slurm = self._ports.slurm
        match first:
            case RequeueJob():
                slurm.requeue(first.job, first.exclude, restart=first.restart)
            case NudgeJob():
                run = first.restart
                slurm.nudge(first.job, first.exclude, release=first.release, delay_s=first.delay_s, restart=run)
            case AllowRequeue():
                slurm.allow_requeue(first.job)
            case ExtendLimit():
                slurm.extend(first.job, first.limit_s)
            case SetNice():
                slurm.set_nice(first.job, first.nice)
            case CommentJob():
                slurm.comment(first.job, first.text)
            case SignalJob():
                slurm.signal(first.job, first.signal)
            case _:
                assert_never(first)

    def _start(self, action: Slow, seen: Observed) -> None:
        """In the pool, unless the same wish is under way."""
        with self._lock:
            if action.key in self._under_way:
                return
            self._under_way.add(action.key)
        self._pool.submit(lambda: self._run_slow(action, seen))

    def _run_slow(self, action: Slow, seen: Observed) -> None:
        try:
            outcome, error = self._try(action, lambda: self._do_slow(action, seen))
            self._journal.record(self._tell((action,), outcome, error))
        finally:
            with self._lock:
                self._under_way.discard(action.key)
            if isinstance(action, Machine):
                self._listing()
            self._ring()

    def _do_slow(self, action: Slow, seen: Observed) -> None:
        match action:
            case ProbeNode():
                node = seen.nodes.get(action.node)
                if node is None:
                    raise Stale(f"{action.node} is not a node of Slurm any more")
                address = node.address or node.name
                self._ports.agents.have_looked_at(action.node, address, node.port, action.peers)
                self._ports.agents.saw(action.node, self._ports.witness.look(address, node.port))
            case LaunchInstance():
                self._provider().launch(action.slot, action.token)
            case TerminateInstance():
                self._provider().terminate(action.instance)
            case RebootInstance():
                self._provider().reboot(action.instance, action.token)
            case BackUpNode():
                self._ports.site.back_up(action.node, action.instance, restore=action.restore)
            case CommentJob() | ExtendLimit():
                self._do_in_slurm(action, (action,))
                self._changed(touched_by((action,), seen))
            case LookAtAlarms():
                if firing := self._ports.site.firing(action.alarms):
                    raise Permanent(f"firing: {', '.join(firing)}")
            case _:
                assert_never(action)

    def _provider(self) -> ProviderPort:
        if self._ports.provider is None:
            raise Permanent("no provider is configured for this node's group")
        return self._ports.provider

    def _try(self, first: Action, call: Callable[[], None]) -> tuple[str, str]:
        """The outcome in a word, and the error."""
        try:
            call()
        except PortError as error:
            return _word(error), str(error) or type(error).__name__
        except Exception as error:
            log.exception("%s failed in an unforeseen way", kind_of(first))
            return ERROR, f"{type(error).__name__}: {error}"
        return "done", ""

    def _tell(self, batch: Batch, outcome: str, error: str) -> list[tuple[Action, str]]:
        """What is written down of each: of a Slurm command with the word for its outcome."""
        for action in batch:
            self._journal.told(action, outcome, error)
        return [(a, recorded(outcome, error) if isinstance(a, SlurmAction | AccountAction) else error) for a in batch]


def _word(error: PortError) -> str:
    if isinstance(error, Stale):
        return STALE
    return REFUSED if isinstance(error, Permanent) else RETRY if isinstance(error, Retryable) else ERROR
