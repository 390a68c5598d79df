"""The elastic runs whose base job's script is on this node.

Starts their coordinators, listens to them and submits their replica jobs, all as the run's user. Decisions are the
head's.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from steward.adapters.node.elastic_start import CoordinatorPlace, listen
from steward.adapters.node.jobs_here import Base
from steward.adapters.offload import PerUser, Threads
from steward.adapters.wire.elastic_messages import (
    elastic_order_frame,
    elastic_order_of,
    elastic_word_frame,
    elastic_word_of,
)
from steward.adapters.wire.frames import Frame, Malformed, sendable_size
from steward.agent.elastic_line import ElasticLine, read_runs, write_runs
from steward.agent.link import HeadConnection
from steward.model.agent_action import ResizeRun, SubmitReplica
from steward.model.ask import OptedIn
from steward.model.elastic import MAX_FAILED, Activity, ElasticSpec, ElasticWord, FailedSubmit, replica_comment
from steward.model.ids import JobId, NodeName
from steward.model.text import cause_and_file
from steward.ports import PortError

log = logging.getLogger(__name__)

MAX_RUNS = 64
MAX_OF_USER = 8
TURN_S = 1.0
LOOK_EVERY_S = 5.0
SAY_EVERY_S = 5.0
LEAST_S, BYTES_PER_S = 0.2, 10_000
"""The shortest time between two reports on a run to the head, and what the last one's size adds to it.

Reports of a coordinator that come faster are merged, because the coordinator is a process of the run's user, who may
have hundreds of runs: a report of 56 kB costs the head 2.5 ms.
"""
AGAIN_S = 10.0
"""The first back-off before a coordinator that failed to start, or went away, is started again; it doubles each
time."""
MAX_AGAIN_S = 320.0
UNTOLD = "its script started before the agent of its node answered, and does not know the coordinator's address"
GRACE_S = 600
HOLD_S = 30.0
"""How long the agent occupies the port of a coordinator that has not started. A base without a coordinator trains alone
after 60 s, and then occupies the port itself."""
ADDRESS_S = 2.0
"""The timeout of the lookup of this node's address, for which a script waits; the script's shim waits for 3 s."""
ADDRESS_EVERY_S = 60.0
_ORDER_S = 150.0
_MAX_TOKENS = 64


class Bases(Protocol):
    """Slurm's list of the jobs on a node."""

    async def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        """Return the jobs that run on the node. Raises Retryable."""


class ElasticStart(Protocol):
    """Actions as the run's user; each blocks and raises PortError."""

    def coordinate(
        self, place: CoordinatorPlace, *, nodes: int, sizes: tuple[int, ...], grace_s: int, listening: int | None
    ) -> None:
        """Start the run's coordinator, on a socket that listens already or on one of its own."""

    def submit(self, place: CoordinatorPlace, asked: Mapping[str, str]) -> None:
        """Submit a replica job of the run."""


@dataclass(kw_only=True)
class _Run:
    """One elastic run: `base` is its base job in Slurm (None before the first look), `tokens` the ordered replicas."""

    opted: OptedIn
    place: CoordinatorPlace
    line: ElasticLine
    base: Base | None = None
    word: ElasticWord | None = None
    reported_at: float = float("-inf")
    pace_s: float = LEAST_S
    """The shortest time until the next report, by the size of the present one."""
    start_at: float = float("-inf")
    failures: int = 0
    """Failed starts of the coordinator in a row."""
    alone: str = ""
    """Why the run has no coordinator; empty if there is one, or none was needed yet."""
    untold: bool = False
    """Whether the script does not know the coordinator's address, so that no coordinator is started."""
    starting: bool = False
    listening: socket.socket | None = None
    """Occupies the coordinator's port until the coordinator has started, `HOLD_S` at most."""
    is_report_due: bool = False
    failed: tuple[FailedSubmit, ...] = ()
    tokens: list[str] = field(default_factory=list)


class Elastic:
    """The elastic runs on this node, in the loop's thread; a file keeps them over a restart of the agent."""

    def __init__(
        self,
        *,
        node: NodeName,
        address: Callable[[], str],
        head: HeadConnection,
        bases: Bases,
        start: ElasticStart,
        folder: Callable[[JobId, int], Path],
        path: Path,
        threads: Callable[[], Threads],
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        """Take `threads`, which makes a pool for each user: work in a user's folders may hang."""
        self._node, self._address, self._head, self._bases, self._start = node, address, head, bases, start
        self._folder, self._path = folder, path
        self._threads, self._of_user, self._dials = threads(), PerUser(threads), PerUser(threads)
        self._runs: dict[JobId, _Run] = {}
        self._look_every_s = look_every_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._looked = float("-inf")
        self._known_address = ""
        self._wake = asyncio.Event()
        for opted, port, token in read_runs(path):
            self._register(opted, port, token)

    async def begin(self, opted: OptedIn) -> Mapping[str, str]:
        """Return the future coordinator's address and token, by their names in the shim's protocol; empty: none."""
        known = self._runs.get(opted.job)
        if known is None or _key(known.opted) != _key(opted):
            if not self._has_room(opted):
                log.warning("no room for an elastic run job=%d uid=%d", opted.job, opted.uid)
                return {}
            self._forget(opted.job)
            try:
                listening = listen()
            except PortError as error:
                log.warning("no elastic run job=%d why=%r", opted.job, str(error))
                return {}
            known = self._register(opted, listening.getsockname()[1], secrets.token_hex(16))
            known.listening = listening
            asyncio.get_running_loop().call_later(HOLD_S, _release_port, known)
            self._save()
        try:
            address = self._known_address = self._known_address or await self._own_address(ADDRESS_S)
        except (OSError, PortError) as error:
            self._mark_untold(known, f"no address of its coordinator for its script: {cause_and_file(error)}")
            return {}
        if known.untold:
            known.untold, known.alone = False, ""
        return {"elastic_address": f"{address}:{known.place.port}", "elastic_token": known.place.token}

    def give_up(self, opted: OptedIn) -> None:
        """Note that the script did not wait for the result of `begin`, so that its job trains on its own nodes only."""
        run = self._runs.get(opted.job)
        if run is not None and _key(run.opted) == _key(opted):
            self._mark_untold(run, UNTOLD)

    def _mark_untold(self, run: _Run, why: str) -> None:
        log.warning("no elastic run job=%d why=%r", run.opted.job, why)
        run.untold = True
        _release_port(run)
        self._go_without_coordinator(run, why)

    def _go_without_coordinator(self, run: _Run, why: str) -> None:
        run.alone = why
        if run.base is not None:
            self._report(run)

    async def _own_address(self, timeout_s: float) -> str:
        """Return this node's address as the head sees it. Raises OSError and PortError."""
        return await self._threads.call(self._address, name="own address", timeout_s=timeout_s)

    async def _refresh_address(self) -> None:
        # before a script needs the address: the lookup of the head's name may take long
        again_s = TURN_S
        while True:
            with contextlib.suppress(OSError, PortError):
                self._known_address = await self._own_address(_ORDER_S)
            again_s = ADDRESS_EVERY_S if self._known_address else min(2 * again_s, ADDRESS_EVERY_S)
            await asyncio.sleep(again_s)

    def frames(self) -> tuple[Frame, ...]:
        """Return the last report on each run."""
        return tuple(
            elastic_word_frame(self._current_report(run)) for run in self._runs.values() if run.base is not None
        )

    def hear(self, frame: Frame) -> None:
        """Take an order of the head without blocking: resize a run or submit a replica. Raises Malformed."""
        order = elastic_order_of(frame, self._node)
        run = self._runs.get(order.run)
        if run is None or run.base is None:
            log.info("an order for a run that is not here run=%d", order.run)
            return
        match order:
            case ResizeRun():
                log.info("resize run=%d generation=%d why=%r", order.run, order.generation, order.why.text)
                run.line.send({**elastic_order_frame(order), "elastic": order.run})
            case SubmitReplica():
                self._submit(run, order)

    async def run(self) -> None:
        """Watch the runs until cancelled; coordinators keep running."""
        keeping = asyncio.get_running_loop().create_task(self._refresh_address())
        try:
            while True:
                self._wake.clear()
                await self._turn()
                await (asyncio.sleep(TURN_S) if self._runs else self._wake.wait())
        finally:
            keeping.cancel()
            for run in self._runs.values():
                run.line.close()

    async def _turn(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._runs and (
            now - self._looked >= self._look_every_s or any(one.base is None for one in self._runs.values())
        ):
            self._looked = now
            await self._look_up_bases()
        # all at once: a coordinator that hangs, which its user chooses, delays no other user's run
        here = [one for one in self._runs.values() if one.base is not None]
        await asyncio.gather(*(self._look_after(run, now) for run in here))

    async def _look_after(self, run: _Run, now: float) -> None:
        """Connect to the run's coordinator, or have it started, and report the run when that is due."""
        if run.line.is_open or await run.line.open():
            run.alone, run.failures = "", 0
        elif not run.starting and not run.untold and now >= run.start_at:
            run.start_at = now + min(AGAIN_S * 2**run.failures, MAX_AGAIN_S)
            self._begin_coordinator(run)
        if now - run.reported_at >= SAY_EVERY_S:
            self._report(run)

    async def _look_up_bases(self) -> None:
        """Look up each run's base job, and end the runs whose job Slurm does not list here for their user."""
        asked = list(self._runs.values())
        try:
            bases = await self._bases.bases(self._node)
        except PortError as error:
            log.info("not known which runs are here why=%r", str(error))
            return
        for run in asked:
            base = bases.get(run.opted.job)
            if base is not None and base.uid == run.opted.uid and base.host == self._node:
                run.base = base
            elif self._runs.get(run.opted.job) is run:
                self._end_run(run)

    def _end_run(self, run: _Run) -> None:
        if run.base is not None:
            log.info("elastic run over run=%d", run.opted.job)
            run.word = replace(self._current_report(run), state=Activity.ENDED)
            self._head.post(elastic_word_frame(run.word))
        self._forget(run.opted.job)
        self._save()

    def _begin_coordinator(self, run: _Run) -> None:
        base = run.base
        if base is None:
            return
        try:
            spec = ElasticSpec.parse(run.opted.elastic, base.nodes)
        except ValueError as error:
            log.warning("elastic run cannot be run=%d why=%r", run.opted.job, str(error))
            run.start_at = float("inf")
            self._go_without_coordinator(run, str(error))
            return
        grace = GRACE_S if spec.grace_s is None else spec.grace_s
        # The thread's copy: `run.listening` may be closed meanwhile.
        passed = run.listening.dup() if run.listening else None

        def start() -> None:
            with passed or contextlib.nullcontext():
                fd = passed.fileno() if passed else None
                self._start.coordinate(run.place, nodes=base.nodes, sizes=spec.sizes, grace_s=grace, listening=fd)

        self._start_task(start, run, "start of the coordinator")

    def _submit(self, run: _Run, order: SubmitReplica) -> None:
        if order.token in run.tokens:
            return
        run.tokens = [*run.tokens, order.token][-_MAX_TOKENS:]
        log.info("replica run=%d token=%s nodes=%d why=%r", order.run, order.token, order.nodes, order.why.text)
        asked = {
            "nodes": str(order.nodes),
            "comment": replica_comment(order.run, order.token),
            "grace": str(max(order.grace_s, 1)),
            "time": str(order.minutes) if order.minutes else "",
            "qos": order.qos,
            "exclude": ",".join(sorted(order.exclude)),
        }

        def submit() -> None:  # in a thread: the lookup of the head's name may take long, and fail
            address = self._known_address or self._address()
            self._start.submit(run.place, {**asked, "address": f"{address}:{run.place.port}"})

        self._start_task(submit, run, f"replica {order.token}", token=order.token)

    def _start_task(self, work: Callable[[], None], run: _Run, name: str, token: str = "") -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(work, run, name, token))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, work: Callable[[], None], run: _Run, name: str, token: str) -> None:
        """Do the work as the run's user, and report a failure: of the replica `token`, or of the coordinator."""
        run.starting = run.starting or not token
        try:
            await self._of_user.of(run.place.uid).call(work, name=name, timeout_s=_ORDER_S)
            if not token:
                _release_port(run)
        except (PortError, OSError) as error:
            log.warning("elastic run=%d %s failed why=%r", run.opted.job, name, cause_and_file(error)[:400])
            if token:
                run.failed = (*run.failed, FailedSubmit(token=token, why=cause_and_file(error)))[-MAX_FAILED:]
                self._report(run)
            elif self._runs.get(run.opted.job) is run:
                run.failures += 1
                if run.failures > 1:  # the first start may have come before the script's
                    self._go_without_coordinator(run, cause_and_file(error))
        finally:
            run.starting = False if not token else run.starting

    def _on_report(self, run: _Run, word: Mapping[str, Any]) -> None:
        """Take a coordinator's report, and overwrite the fields that only the agent may set. Raises Malformed."""
        ours = {"run": run.opted.job, "restart": run.opted.restart, "uid": run.opted.uid, "spec": run.opted.elastic}
        heard = elastic_word_of({**word, **ours, "failed": [], "alone": ""}, self._node, 0.0)
        frame = elastic_word_frame(replace(heard, failed=run.failed, alone=run.alone))
        try:
            size = sendable_size(frame)
        except Malformed as error:
            raise Malformed(f"a word that cannot be passed on: {error}") from error
        run.word, run.pace_s = heard, pace_s(size)
        if not run.is_report_due:
            run.is_report_due, loop = True, asyncio.get_running_loop()
            loop.call_at(max(run.reported_at + run.pace_s, loop.time()), self._report_news, run)

    def _report_news(self, run: _Run) -> None:
        run.is_report_due = False
        if self._runs.get(run.opted.job) is run:
            self._report(run)

    def _current_report(self, run: _Run) -> ElasticWord:
        word = run.word or ElasticWord(
            run=run.opted.job,
            restart=run.opted.restart,
            uid=run.opted.uid,
            node=self._node,
            spec=run.opted.elastic,
            state=Activity.WAITING,
        )
        return replace(word, failed=run.failed, alone=run.alone)

    def _report(self, run: _Run) -> None:
        run.reported_at = asyncio.get_running_loop().time()
        self._head.post(elastic_word_frame(self._current_report(run)))

    def _has_room(self, opted: OptedIn) -> bool:
        others = [one.opted.uid for job, one in self._runs.items() if job != opted.job]
        known = self._runs.get(opted.job)
        is_anothers = known is not None and known.base is not None and known.opted.uid != opted.uid
        return not is_anothers and len(others) < MAX_RUNS and Counter(others)[opted.uid] < MAX_OF_USER

    def _register(self, opted: OptedIn, port: int, token: str) -> _Run:
        folder = self._folder(opted.job, opted.uid) / "elastic"
        place = CoordinatorPlace(run=opted.job, uid=opted.uid, folder=folder, port=port, token=token)
        line = ElasticLine(place, lambda word: self._on_report(run, word), self._dials.of(opted.uid))
        run = self._runs[opted.job] = _Run(opted=opted, place=place, line=line)
        self._wake.set()
        return run

    def _forget(self, job: JobId) -> None:
        run = self._runs.pop(job, None)
        if run is not None:
            run.line.close(end=True)
            _release_port(run)

    def _save(self) -> None:
        write_runs(self._path, [(one.opted, one.place) for one in self._runs.values()])


def pace_s(size: int) -> float:
    """Return the shortest time (s) from a report of so many bytes to the run's next one."""
    return LEAST_S + size / BYTES_PER_S


def _release_port(run: _Run) -> None:
    """Close the socket that occupies the coordinator's port."""
    if run.listening is not None:
        run.listening.close()
        run.listening = None


def _key(opted: OptedIn) -> tuple[int, int, str]:
    return opted.uid, opted.restart, opted.elastic
