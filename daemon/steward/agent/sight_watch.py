"""The watch of every job's ranks on this node: how often they are looked at, and what of it the head is told."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Protocol

from steward.adapters.node.step_walk import RankName, StepLook
from steward.adapters.offload import PerUser, Threads
from steward.adapters.proc import ProcessKey
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_STEPS, sight_frame
from steward.agent.link import Outbox
from steward.agent.log_watch import LogWatch, aged
from steward.agent.rank_network import Sockets
from steward.agent.sight import JobSight, NodeLook
from steward.model.fair import fair_share
from steward.model.ids import NodeName
from steward.model.job_sight import StepSight
from steward.model.probe import Gpu
from steward.model.text import cause_and_file
from steward.ports import PortError

log = logging.getLogger(__name__)

EVERY_S = 15.0
"""The shortest time between two looks."""
MOST_CPU = 0.0005
"""The share of a core that looks may take: they are rarer where they cost more, as with thousands of processes."""
RAREST_S = 60.0
"""The longest time between two looks."""
MOST_NEW = 256
"""The most processes of one user whose environment is read in one look."""
_TIMEOUT_S = 10.0
Held = Mapping[ProcessKey, frozenset[int] | None]
"""The TCP sockets that processes hold; None: they may hold others that carry something."""


class SightEyes(Protocol):
    """The looks at steps, called in a thread because each may block for a while."""

    def now(self) -> float:
        """Return the time (s since the machine's boot)."""

    def steps(self) -> Sequence[StepLook]:
        """Return a look at each step. Raises OSError."""

    def owner(self, pid: int) -> int:
        """Return the real user of a process; -1 if it is gone."""

    def names(self, keys: Iterable[ProcessKey]) -> Mapping[ProcessKey, RankName | None]:
        """Return the number of each process; reading it may hang."""

    def gpus(self) -> Sequence[Gpu] | None:
        """Return what the GPUs of this node do; None if NVML does not answer."""

    def network_bytes(self) -> int:
        """Return the bytes that the machine has sent and received through the kernel, also to itself."""

    def fabric_bytes(self) -> int:
        """Return the bytes that the machine has sent and received past the kernel."""

    def sockets(self, keys: Iterable[ProcessKey]) -> Held:
        """Return the TCP sockets of each process; None if it may have others. Reading them may hang."""

    def tcp_bytes(self, sockets: Set[int]) -> Mapping[int, int]:
        """Return the bytes that each of these sockets carried. Raises OSError."""

    def waits_in(self, pid: int) -> str:
        """Return where a process waits in the kernel."""

    def cpu_s(self) -> float:
        """Return the CPU time of the calling thread (s)."""


class SightWatch:
    """The watch of the ranks of all jobs on this node, with what `logs` makes of their output."""

    def __init__(
        self, *, node: NodeName, eyes: SightEyes, head: Outbox, threads: Callable[[], Threads], logs: LogWatch
    ) -> None:
        self._eyes, self._head, self._logs = eyes, head, logs
        self._threads, self._of_user = threads(), PerUser(threads)
        self._sight = JobSight(node, waits_in=eyes.waits_in)
        self._names: dict[ProcessKey, RankName | None] = {}
        self._owners: dict[ProcessKey, int] = {}
        self._sent: tuple[StepSight, ...] = ()
        self._sent_at = 0.0
        self._cost_s = 0.0

    def frames(self) -> tuple[Frame, ...]:
        """Return what the ranks do for a newly connected head, even if there are none: the head may know old ones."""
        passed = self._eyes.now() - self._sent_at
        return (sight_frame(_aged(one, passed) for one in self._sent),)

    @property
    def pause_s(self) -> float:
        """Return how long to wait for the next look."""
        return min(max(EVERY_S, self._cost_s / MOST_CPU), RAREST_S)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.turn()
            await asyncio.sleep(self.pause_s)

    async def turn(self) -> None:
        """Look once, and tell the head what has changed. Of a look that fails it hears that nothing is known.

        Else what was seen last would count on while it is not seen.
        """
        try:
            steps = await self._threads.call(self._look_at_steps, name="steps", timeout_s=_TIMEOUT_S)
            await self._learn_names(steps)
            await self._logs.turn(steps, self._names, self._owners, self._eyes.now())
            look, asked = await self._threads.call(partial(self._look, steps), name="ranks", timeout_s=_TIMEOUT_S)
            sockets = await self._sockets_of(asked)
            told = await self._threads.call(partial(self._note, look, sockets), name="ranks", timeout_s=_TIMEOUT_S)
        except (PortError, OSError) as error:
            log.info("ranks not looked at why=%r", cause_and_file(error))
            told = ()
        if _essence(told) != _essence(self._sent):
            self._sent, self._sent_at = told, self._eyes.now()
            self._head.post(sight_frame(told))

    async def _learn_names(self, steps: Sequence[StepLook]) -> None:
        """Learn the numbers of new processes, each user's in a thread of his own; of those that hang none is known."""
        here, now = {one.key for step in steps for one in step.processes}, self._eyes.now()
        # a task that has not begun its own program yet names no number
        is_sure = partial(_is_sure, now=now)
        self._names = {key: name for key, name in self._names.items() if key in here and is_sure(key, name)}
        of_user: defaultdict[int, list[ProcessKey]] = defaultdict(list)
        for key in sorted(here - self._names.keys(), key=lambda key: key.started):
            of_user[self._owners[key]].append(key)
        await asyncio.gather(*(self._learn_names_of(uid, keys[:MOST_NEW]) for uid, keys in of_user.items()))

    async def _learn_names_of(self, uid: int, keys: list[ProcessKey]) -> None:
        read = partial(self._eyes.names, keys)
        try:
            self._names |= await self._of_user.of(uid).call(read, name=f"ranks of {uid}", timeout_s=_TIMEOUT_S)
        except (PortError, OSError) as error:
            log.info("ranks not numbered uid=%d why=%r", uid, cause_and_file(error))

    async def _sockets_of(self, asked: Set[ProcessKey]) -> Held:
        """Return the TCP sockets of these processes, each user's looked at in a thread of his own."""
        of_user: defaultdict[int, list[ProcessKey]] = defaultdict(list)
        for key in sorted(asked, key=lambda key: key.started):
            of_user[self._owners[key]].append(key)
        found = await asyncio.gather(*(self._sockets_of_user(uid, keys) for uid, keys in of_user.items()))
        return {key: inodes for its in found for key, inodes in its.items()}

    async def _sockets_of_user(self, uid: int, keys: Sequence[ProcessKey]) -> Held:
        read = partial(self._held_by, keys)
        try:
            found, cost_s = await self._of_user.of(uid).call(read, name=f"sockets of {uid}", timeout_s=_TIMEOUT_S)
        except (PortError, OSError) as error:
            log.info("sockets not looked at uid=%d why=%r", uid, cause_and_file(error))
            return {}
        self._cost_s += cost_s
        return found

    # In a thread

    def _look_at_steps(self) -> Sequence[StepLook]:
        began = self._eyes.cpu_s()
        steps = self._eyes.steps()
        here = {one.key for step in steps for one in step.processes}
        known = {key: uid for key, uid in self._owners.items() if key in here}
        self._owners = known | {key: self._eyes.owner(key.pid) for key in here - known.keys()}
        self._cost_s = self._eyes.cpu_s() - began
        return steps

    def _look(self, steps: Sequence[StepLook]) -> tuple[NodeLook, frozenset[ProcessKey]]:
        """Return a look without sockets, and the processes whose sockets it needs."""
        began = self._eyes.cpu_s()
        gpus = self._eyes.gpus() if steps else ()
        look = NodeLook(
            at=self._eyes.now(),
            steps=steps,
            names=self._names,
            gpus=gpus,
            network_bytes=self._eyes.network_bytes() if steps else 0,
            fabric_bytes=self._eyes.fabric_bytes() if steps else 0,
        )
        asked = self._sight.asks(look)
        self._cost_s += self._eyes.cpu_s() - began
        return look, asked

    def _held_by(self, keys: Sequence[ProcessKey]) -> tuple[Held, float]:
        """Return the sockets of these processes, and the CPU time that it took (s)."""
        began = self._eyes.cpu_s()
        found = self._eyes.sockets(keys)
        return found, self._eyes.cpu_s() - began

    def _note(self, look: NodeLook, held: Held) -> tuple[StepSight, ...]:
        began = self._eyes.cpu_s()
        self._sight.note(replace(look, sockets=self._carried(held)))
        seen = (replace(one, log=self._logs.words(one.job, one.step, look.at)) for one in self._sight.told(look.at))
        told = self._fair(tuple(seen), look.steps)
        self._cost_s += self._eyes.cpu_s() - began
        return told

    def _carried(self, held: Held) -> Sockets:
        """Return what the sockets of each process carried; empty if the kernel does not tell."""
        try:
            bytes_of = self._eyes.tcp_bytes({inode for inodes in held.values() for inode in inodes or ()})
        except OSError as error:
            log.info("sockets not looked at why=%r", cause_and_file(error))
            return {}
        # one that is not among them is closed
        return {
            key: None if inodes is None else {inode: bytes_of.get(inode, 0) for inode in inodes}
            for key, inodes in held.items()
        }

    def _fair(self, told: tuple[StepSight, ...], steps: Sequence[StepLook]) -> tuple[StepSight, ...]:
        """Return at most `MAX_STEPS`, of each user as many as of another."""
        users = {step.stepd.job: self._owners[step.processes[0].key] for step in steps if step.processes}
        kept = fair_share({index: users.get(one.job, -1) for index, one in enumerate(told)}, MAX_STEPS)
        return tuple(one for index, one in enumerate(told) if index in kept)


def _aged(step: StepSight, by_s: float) -> StepSight:
    """Return the same, some time later."""
    groups = (replace(one, for_s=one.for_s + by_s) for one in step.groups)
    log = tuple(aged(word, by_s) for word in step.log)
    slow = tuple(replace(one, for_s=one.for_s + by_s) for one in step.slow)
    return replace(step, step_s=step.step_s + by_s, groups=tuple(groups), log=log, slow=slow)


def _is_sure(key: ProcessKey, name: RankName | None, now: float) -> bool:
    """Return whether the number of a process is settled."""
    return name is not None or now - key.began_s > 2 * EVERY_S


def _essence(told: tuple[StepSight, ...]) -> list[object]:
    """Return what is news if it changes: not for how long, which the head counts itself."""
    return [
        (
            *(one.job, one.step),
            [(of.doing, of.ranks, of.rank, of.pid) for of in one.groups],
            [(word.state, word.rule, word.rank) for word in one.log],
            [(slow.rank, slow.gpu, slow.why) for slow in one.slow],
        )
        for one in told
    ]
