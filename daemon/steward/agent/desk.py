"""The requests of shims: each ask is held until the head decides, its job ends, or the head is away for too long."""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_EXITS, ask_frame, exits_frame
from steward.adapters.wire.messages import opted_frame, withdraw_frame
from steward.adapters.wire.shimline import (
    OK,
    AskLine,
    EndedLine,
    ExitLine,
    LogLine,
    OptedLine,
    answer_line,
    ok_line,
)
from steward.agent.link import HeadConnection, Outbox
from steward.agent.opted import TELL_EVERY_S, JobsLook, OptedBook, OptedNews, Output, Owners
from steward.model.ask import MAX_SIGNS, Answer, Ask, AskKind, OptedIn
from steward.model.health import Incarnation
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import LogSign, TaskExit
from steward.model.text import cause_and_file
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)


class Exits:
    """The last failed tasks of this node, for the head."""

    def __init__(self, node: NodeName, head: Outbox, clock: Clock) -> None:
        self._node = node
        self._head = head
        self._clock = clock
        self._last: deque[TaskExit] = deque(maxlen=MAX_EXITS)

    def frames(self) -> tuple[Frame, ...]:
        """Return one frame with the last `MAX_EXITS` failed tasks; empty if there are none."""
        return (exits_frame(self._last, self._clock.now()),) if self._last else ()

    def note(self, line: ExitLine) -> None:
        """Keep a failed task, and post it to the head."""
        now = self._clock.now()
        ended = TaskExit(
            job=line.job,
            restart=line.restart,
            step=line.step,
            node=self._node,
            task=line.task,
            status=line.status,
            at=now,
        )
        self._last.append(ended)
        log.info("task ended badly job=%d step=%s task=%d status=%d", line.job, line.step, line.task, line.status)
        self._head.post(exits_frame((ended,), now))


OWN_LOOK_EVERY_S = 2.0
SIGNS_S = 0.5
ROOM_S, LATER_ROOM_S = 0.1, 1.0
"""Timeouts of `make_room` for a first run, and for a later run, which may find files. The shim waits longer."""
NO_STEP = "unknown"
_MAX_ID = 120
"""The longest ask id that repeats; the head refuses ids longer than 128."""

Line = OptedLine | AskLine | ExitLine | EndedLine | LogLine
Decision = tuple[Answer, frozenset[NodeName]]
STOP: Decision = (Answer.STOP, frozenset())


class BriefingPort(Protocol):
    """The variables for a starting script or step, by their names in the shim's protocol."""

    async def words(self, line: OptedLine) -> Mapping[str, str]:
        """Return the variables: within 100 ms for a first run, later for a resumed one, whose past the head sends."""


class ElasticRuns(Protocol):
    """The elastic runs whose base job's script is on this node, as the desk calls them."""

    async def begin(self, opted: OptedIn) -> Mapping[str, str]:
        """Register the run of a base job whose script starts; return the run's variables for the script."""

    def give_up(self, opted: OptedIn) -> None:
        """Note that the script started without these variables."""


class OutputReader(Protocol):
    """The output of jobs, read for the signs of a failure."""

    async def signs(self, line: AskLine) -> tuple[LogSign, ...]:
        """Return the known lines of what failed near the end of its job's output; an error counts as none."""

    def note_success(self, line: EndedLine, uid: int) -> None:
        """Note a step of this user's that ended well."""

    def note_answer(self, line: AskLine, answer: Answer) -> None:
        """Note the answer to a failed step."""


MakeRoom = Callable[[JobId, int, int, float], Awaitable[None]]
"""(job, step number, uid, seconds): move a lost run's files out of the way of a starting step, in that time."""


async def make_no_room(job: JobId, step: int, uid: int, within_s: float) -> None:
    """Do nothing: the default without leftovers to move."""


class OwnLook(JobsLook, Protocol):
    """The agent's own questions to Slurm."""

    async def is_over(self, job: JobId, restart: int) -> bool:
        """Return whether this run of the job has ended. Raises Retryable when Slurm does not answer."""

    async def restarts(self, job: JobId) -> int:
        """Return how often Slurm has restarted the job. Raises Retryable when Slurm does not answer."""


class JobDesk:
    """The desk at which shims make requests about jobs.

    `trusted` users (root) may speak of any job, other users only of jobs not known to be another user's. While the
    owner of a job is not known, every claim goes to the head, which knows the owner.
    """

    def __init__(
        self,
        *,
        node: NodeName,
        incarnation: Incarnation,
        clock: Clock,
        head: HeadConnection,
        opted: OptedBook,
        own_look: OwnLook,
        hold_head_absent_s: float,
        trusted: frozenset[int],
        briefing: BriefingPort,
        exits: Exits,
        outputs: OutputReader,
        elastic: ElasticRuns | None = None,
        make_room: MakeRoom = make_no_room,
        own_look_every_s: float = OWN_LOOK_EVERY_S,
    ) -> None:
        self._node = node
        self._clock = clock
        self._head = head
        self._opted = opted
        self._own_look = own_look
        self._owners = Owners(node, opted, own_look)
        self._news = OptedNews(opted, self._report_opted, TELL_EVERY_S)
        self._hold_head_absent_s = hold_head_absent_s
        self._trusted = trusted
        self._briefing = briefing
        self._exits = exits
        self._elastic = elastic
        self._outputs = outputs
        self._make_room = make_room
        self._own_look_every_s = own_look_every_s
        first = int(clock.now() * 1000)  # so that no number repeats, not even after a restart in the same boot
        self._numbers = itertools.count(first)
        self._here = f"{node}-{incarnation.boot[:8]}"
        self._waiting: dict[AskId, tuple[Ask, asyncio.Future[Decision]]] = {}

    async def serve(self, line: Line, peer: int) -> bytes | None:
        """Return the last line for the shim, None to hang up; cancelled when the shim hangs up."""
        if not self._may_say(line, peer):
            log.warning("shim refused job=%d uid=%d why='not a job of this user'", line.job, peer)
            return None
        match line:
            case OptedLine():
                return await self._opt_in(line, sure=peer in self._trusted)
            case AskLine():
                return await self._ask(line)
            case ExitLine():
                self._exits.note(line)
            case LogLine():
                self._note_output(line, self._claim_of(line, peer))
            case EndedLine():
                if (claim := self._claim_of(line, peer)) is not None:
                    self._outputs.note_success(line, claim.uid)
        return OK

    def frames(self) -> tuple[Frame, ...]:
        """Return the frames for a newly connected head: every ask that still waits, and the failed tasks."""
        return (*self._exits.frames(), *(ask_frame(ask) for ask, _ in self._waiting.values()))

    def decide(self, ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> None:
        """Take the head's answer to an ask; ignore an unknown ask, and turn a retry of a batch job into a stop."""
        if ask not in self._waiting:
            return
        waiting, decision = self._waiting[ask]
        is_invalid = answer is Answer.RETRY and waiting.kind is AskKind.BATCH
        if not decision.done():
            decision.set_result(STOP if is_invalid else (answer, exclude))

    def _may_say(self, line: Line, peer: int) -> bool:
        """Return whether this user may send this line: exits only if trusted (slurmstepd), else about own jobs."""
        if peer in self._trusted:
            return True
        match line:
            case ExitLine():
                return False
            case LogLine() | EndedLine():
                return self._opted.claim_of_user(line.job, peer) is not None
            case _:
                return line.uid == peer and not self._opted.is_owned_by_another(line.job, peer)

    def _claim_of(self, line: LogLine | EndedLine, peer: int) -> OptedIn | None:
        return self._opted.claim_of_user(line.job, peer) or self._opted.claim_on(line.job)

    async def _opt_in(self, line: OptedLine, *, sure: bool) -> bytes:
        opted = OptedIn(
            job=line.job,
            uid=line.uid,
            mode=line.mode,
            restart=line.restart,
            at=self._clock.now(),
            elastic=line.elastic,
            has_steps=line.step is not None,
            has_detached=line.detached,
            has_script=line.is_script,
        )
        if self._opted.add(opted, sure=sure):
            self._news.add(opted, sure=sure)
        if sure and line.step is not None and line.mode.on:
            within_s = LATER_ROOM_S if line.has_past else ROOM_S
            await self._make_room(line.job, line.step, line.uid, within_s)
        await self._owners.drop_wrong_claims(line.job)
        counts = self._opted.claim_on(line.job)
        is_owners = counts is None or counts.uid == line.uid
        if not line.mode.on or not is_owners:
            return OK
        if not line.elastic or self._elastic is None:
            return ok_line(await self._brief(line, opted, sure=sure))
        try:
            words, run = await asyncio.gather(self._brief(line, opted, sure=sure), self._elastic.begin(opted))
        except asyncio.CancelledError:
            self._elastic.give_up(opted)
            raise
        return ok_line({**words, **run})

    async def _brief(self, line: OptedLine, opted: OptedIn, *, sure: bool) -> Mapping[str, str]:
        words = await self._briefing.words(line)
        told = replace(opted, left=words.get("left_behind", ""))
        if told.left and self._opted.add(told, sure=sure):
            self._news.add(told, sure=sure)
        return words

    def _report_opted(self, words: Sequence[OptedIn]) -> None:
        for one in words:
            log.info("opted job=%d uid=%d mode=%s restart=%d", one.job, one.uid, one.mode.text, one.restart)
        self._head.post(opted_frame(words))

    def _note_output(self, line: LogLine, opted: OptedIn | None) -> None:
        if opted is not None:
            self._opted.note_output(opted.job, opted.uid, line.restart, Output(line.out, line.size))

    async def _ask(self, line: AskLine) -> bytes:
        line = await self._with_restart(line)
        reading = asyncio.ensure_future(self._signs_of(line))
        try:
            await asyncio.wait((reading,), timeout=SIGNS_S)
            return await self._ask_head(line, reading)
        finally:
            reading.cancel()

    async def _with_restart(self, line: AskLine) -> AskLine:
        """Return the line with the number of its run."""
        # Slurm tells it in the script's environment alone, which a script that never began has not seen
        if not line.script_unbegun:
            return line
        try:
            return replace(line, restart=await self._own_look.restarts(line.job))
        except PortError as error:
            log.info("run not known job=%d why=%r", line.job, str(error))
            return line

    async def _ask_head(self, line: AskLine, reading: "asyncio.Future[tuple[LogSign, ...]]") -> bytes:
        """Ask the head and return the answer for the shim; send the output's signs later if they are not read yet."""
        ask = self._ask_of(line, reading)
        decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[ask.id] = (ask, decision)
        log.info("ask id=%s kind=%s job=%d status=%d", ask.id, ask.kind.value, ask.job, ask.status)
        self._head.post(ask_frame(ask))
        if ask.is_reading:
            reading.add_done_callback(lambda read: self._add_signs(ask, read))
        answer, exclude = STOP  # as for a shim that hangs up
        try:
            answer, exclude = await self._wait_for_decision(ask, decision)
        finally:
            self._outputs.note_answer(line, answer)
            del self._waiting[ask.id]
            if not decision.done():
                self._head.post(withdraw_frame(ask.id))
        log.info("answer id=%s job=%d answer=%s", ask.id, ask.job, answer.value)
        return answer_line(answer, exclude)

    async def _signs_of(self, line: AskLine) -> tuple[LogSign, ...]:
        try:
            return (await self._outputs.signs(line))[:MAX_SIGNS]
        except (PortError, OSError) as error:
            log.info("output not read job=%d why=%r", line.job, cause_and_file(error))
            return ()

    def _add_signs(self, ask: Ask, read: "asyncio.Future[tuple[LogSign, ...]]") -> None:
        """Send the head the signs of an output that took long to read, unless the shim has its answer."""
        if read.cancelled() or ask.id not in self._waiting:
            return
        whole = replace(ask, signs=read.result(), is_reading=False)
        self._waiting[ask.id] = (whole, self._waiting[ask.id][1])
        self._head.post(ask_frame(whole))

    def _ask_of(self, line: AskLine, reading: "asyncio.Future[tuple[LogSign, ...]]") -> Ask:
        return Ask(
            id=self._id_of(line),
            kind=line.kind,
            job=line.job,
            step=line.step,
            node=self._node,
            uid=line.uid,
            mode=line.mode,
            attempt=line.attempt,
            restart=line.restart,
            status=line.status,
            at=self._clock.now(),
            signs=reading.result() if reading.done() else (),
            is_reading=not reading.done(),
            nodes=line.nodes,
            age=line.age,
            replay=line.replay,
            own=line.own,
            script_gone=line.script_gone,
            script_unbegun=line.script_unbegun,
        )

    def _id_of(self, line: AskLine) -> AskId:
        """Return the ask's id: the same for the same failure and user."""
        # a shim that asks again after the agent's restart must get the decision that was made before, so that no second
        # resume is counted; several users may claim a job; a step without an id looks like any other such step
        own = AskId(f"{self._here}-{line.job}.{line.restart}.{line.step}.{line.uid}")
        if line.step == NO_STEP or own in self._waiting or len(own) > _MAX_ID:
            return AskId(f"{self._here}-{next(self._numbers)}")
        return own

    async def _wait_for_decision(self, ask: Ask, decision: "asyncio.Future[Decision]") -> Decision:
        """Return the head's decision, or STOP when the agent must decide alone."""
        while True:
            await asyncio.wait((decision,), timeout=self._own_look_every_s)
            if decision.done():
                return decision.result()
            if why := await self._why_stop(ask):
                log.warning("stop id=%s job=%d why=%r", ask.id, ask.job, why)
                return STOP

    async def _why_stop(self, ask: Ask) -> str:
        """Return why to stop an ask without the head; empty: keep waiting, always so while the head is connected."""
        since = self._head.away_since
        if since is None:
            return ""
        if self._clock.now() - max(since, ask.at) >= self._hold_head_absent_s:
            return f"the head has been away for {self._hold_head_absent_s:g} s"
        try:
            over = await self._own_look.is_over(ask.job, ask.restart)
        except PortError as error:
            log.info("hold id=%s why=%r", ask.id, str(error))
            return ""
        return "Slurm says that the job is over" if over else ""
