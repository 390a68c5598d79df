"""The head's orders about a job on this node: end leftover slurmstepds, and collect the stacks of its tasks.

A leftover slurmstepd belongs to a lost run of the job, has no task left and keeps the node COMPLETING. The files that a
killed slurmstepd left behind are renamed when a step of the same number begins.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from steward.adapters.node import job_look, job_processes
from steward.adapters.node.stepds import Stepd
from steward.adapters.offload import PerUser, Threads
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_BUNDLE, bundle_frames
from steward.agent.job_folder import STACKS, JobFolders
from steward.agent.link import Outbox
from steward.agent.opted import OptedBook
from steward.agent.tasks import OneEach
from steward.model.agent_action import CollectStacks, LetGo
from steward.model.ask import OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.text import cause_and_file
from steward.ports import PortError

log = logging.getLogger(__name__)

_LET_GO_S = 10.0
_ROOM_THREADS = 4


class StepdsPort(Protocol):
    """The slurmstepds of this node."""

    def end_idle(self, job: JobId, uid: int, before: float) -> tuple[Stepd, ...]:
        """Kill and return slurmstepds of the user's job without a task, begun before `before` (Unix s, this node's)."""

    def set_aside(self, job: JobId, step: int, uid: int, until: float) -> tuple[Path, ...]:
        """Rename and return a killed slurmstepd's files of this step, on which the step's next slurmstepd would fail.

        Renames nothing after `until` (monotonic s), because the step has begun by then.
        """


class LostRunCleanup:
    """The cleanup of lost runs: one order at a time for each job; the head repeats it while the node is COMPLETING."""

    def __init__(
        self,
        stepds: StepdsPort,
        *,
        opted: OptedBook,
        skew_s: Callable[[], float | None],
        threads: Callable[[], Threads],
    ) -> None:
        """Take `threads`, which makes a pool for each user: reading a user's processes may hang."""
        self._stepds = stepds
        self._opted = opted
        self._skew_s = skew_s
        self._of_user = PerUser(threads)
        self._room = Threads(_ROOM_THREADS)
        self._tasks = OneEach[JobId]()

    def obey(self, order: LetGo) -> None:
        """Start carrying out the order, or log why it does not apply."""
        skew, known = self._skew_s(), self._opted.claim_of_user(order.job, order.uid)
        if order.job in self._tasks:
            return
        if skew is None:
            log.info("not let go job=%d why='the clocks were not compared yet'", order.job)
        elif known is not None and known.restart > order.restart:
            log.warning("not let go job=%d why='restart %d of it began here'", order.job, known.restart)
        else:
            self._tasks.begin(order.job, self._end(order, order.before - skew))

    async def make_room(self, job: JobId, step: int, uid: int, within_s: float) -> None:
        """Rename the leftovers of a lost run before this step begins; log an error or a timeout and return."""
        work = partial(self._stepds.set_aside, job, step, uid, time.monotonic() + within_s)
        try:
            left = await self._room.call(work, name=f"room {job}.{step}", timeout_s=within_s)
        except (PortError, OSError) as error:
            log.warning("no room made job=%d step=%d why=%r", job, step, cause_and_file(error))
            return
        for path in left:
            log.warning("set aside job=%d step=%d path=%s why='a slurmstepd that was killed left it'", job, step, path)

    async def rest(self) -> None:
        """Wait until no order is being carried out."""
        await self._tasks.rest()

    async def _end(self, order: LetGo, before: float) -> None:
        try:
            ended = await self._of_user.of(order.uid).call(
                lambda: self._stepds.end_idle(order.job, order.uid, before),
                name=f"let go {order.job}",
                timeout_s=_LET_GO_S,
            )
        except (PortError, OSError) as error:
            log.warning("not let go job=%d why=%r", order.job, cause_and_file(error))
            return
        for stepd in ended:
            pid = stepd.process.pid
            log.warning(
                "let go job=%d step=%s pid=%d restart=%d why=%r",
                order.job,
                stepd.step,
                pid,
                order.restart,
                order.why.text,
            )


WRITE_S = 2.0
"""The time that tasks have to write their stacks after the signal."""
_STACKS_S = 15.0
_MAX_FILES = 64
_MAX_FILE = 32 << 10
_MAX_PROCESSES = 256


class Stacks:
    """The collection of stacks: one order at a time for each job, and only for jobs that opted in on this node."""

    def __init__(
        self,
        *,
        node: NodeName,
        opted: OptedBook,
        folders: JobFolders,
        head: Outbox,
        threads: Callable[[], Threads],
        progress: Callable[[], tuple[Frame, ...]],
        written: Callable[[], None] = lambda: time.sleep(WRITE_S),
        pids: Callable[[OptedIn], list[int]] | None = None,
    ) -> None:
        """Take `threads`, which makes a pool for each user: reading a user's processes may hang."""
        self._node, self._opted, self._folders, self._head = node, opted, folders, head
        self._progress = progress
        self._of_user, self._written, self._pids = PerUser(threads), written, pids or _pids
        self._tasks = OneEach[JobId]()

    def obey(self, order: CollectStacks) -> None:
        """Post the jobs' progress and start collecting the stacks, without blocking."""
        # a running job may only seem to stand still, because the head's clock was set forward since the last report
        for frame in self._progress():
            self._head.post(frame)
        known = self._opted.claim_of_user(order.job, order.uid)
        if order.job in self._tasks:
            return
        if known is None or not known.mode.on:
            log.info("no stacks job=%d why='none of its opted-in processes ran here'", order.job)
            self._post(order, f"job {order.job} on {self._node}: none of its opted-in processes ran here\n")
            return
        self._tasks.begin(order.job, self._collect(order, known))

    async def rest(self) -> None:
        """Wait until no order is being carried out."""
        await self._tasks.rest()

    async def _collect(self, order: CollectStacks, opted: OptedIn) -> None:
        try:
            text = await self._of_user.of(opted.uid).call(
                lambda: self._text_of_stacks(order, opted), name=f"stacks {order.job}", timeout_s=_STACKS_S
            )
        except (PortError, OSError) as error:
            text = f"the agent of {self._node} failed to read the stacks: {cause_and_file(error)}\n"
        log.info("stacks kept job=%d name=%s characters=%d", order.job, order.name, len(text))
        self._post(order, text)

    def _post(self, order: CollectStacks, text: str) -> None:
        """Post the text to the head, even if it only says that there are no stacks: the head waits for an answer."""
        for frame in bundle_frames(order.name, text):
            self._head.post(frame)

    def _text_of_stacks(self, order: CollectStacks, opted: OptedIn) -> str:
        pids = self._pids(opted)[:_MAX_PROCESSES]
        outcome = f"no signal was sent: the job names none in stacks={opted.mode.stacks}"
        if order.signal and order.signal == opted.mode.stacks:
            signalled = job_processes.signal_those_who_expect_it(pids, opted.uid, order.signal)
            outcome = f"SIG{order.signal} was sent to the {signalled.told} of {signalled.of} processes that expect it"
            if signalled.told:
                self._written()
        title = f"job {order.job} on {self._node}: {len(pids)} processes; {outcome}\n\n"
        return _clean(title + job_processes.describe(pids) + "\n\n" + self._own_stacks(opted))[:MAX_BUNDLE]

    def _own_stacks(self, opted: OptedIn) -> str:
        """Return the stacks that the tasks wrote themselves: the end of each file."""
        folder = self._folders.folder(opted.job, opted.uid)
        names = [name for name in job_look.names(folder, 1024) if name == STACKS or name.startswith(f"{STACKS}.")]
        texts = ((name, job_look.text_of(folder, name, opted.uid, _MAX_FILE)) for name in names[:_MAX_FILES])
        return "\n".join(f"{name}:\n{text}" for name, text in texts if text)


def _pids(opted: OptedIn) -> list[int]:
    return sorted(pid for pid, _ in job_processes.processes({opted.job: opted.uid}))


def _clean(text: str) -> str:
    """Replace all characters but printable ASCII, line feeds and tabs by question marks."""
    return "".join(c if " " <= c <= "~" or c in "\n\t" else "?" for c in text)
