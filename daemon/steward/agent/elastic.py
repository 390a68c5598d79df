"""The elastic runs whose base's script is on this node: their coordinators are started and listened to, their replica
jobs submitted, all in their users' names. Nothing is decided here."""

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from steward.adapters.node.elastic_start import Place, free_port
from steward.adapters.node.jobs_here import Base
from steward.adapters.offload import PerUser, Threads
from steward.adapters.wire.elastic_messages import (
    Resize,
    Submit,
    elastic_order_frame,
    elastic_order_of,
    elastic_word_frame,
    elastic_word_of,
)
from steward.adapters.wire.frames import Frame, Malformed, why_unsendable
from steward.agent.elastic_line import ElasticLine, read_runs, write_runs
from steward.agent.link import Head
from steward.model.ask import OptedIn
from steward.model.elastic import MAX_FAILED, Activity, ElasticSpec, ElasticWord, FailedSubmit, replica_comment
from steward.model.ids import JobId, NodeName
from steward.ports import PortError

log = logging.getLogger(__name__)

MAX_RUNS = 64
MAX_OF_USER = 8
TURN_S = 1.0
LOOK_EVERY_S = 5.0
SAY_EVERY_S = 5.0
LEAST_S = 0.2
"""Words of a run that come more quickly are told to the head as one: the coordinator is its user's."""
AGAIN_S = 10.0
"""A coordinator that could not be started, or went away, is started anew so much later, and then each time after twice
as long."""
MAX_AGAIN_S = 320.0
UNTOLD = "its script began before its node's agent had answered, and knows nothing of it"
GRACE_S = 600
ADDRESS_S = 2.0
"""A script waits for it, where it is not known yet; its shim waits for three seconds."""
ADDRESS_EVERY_S = 60.0
_ORDER_S = 150.0
_MAX_TOKENS = 64


class Bases(Protocol):
    async def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        """The jobs that run on the node. Raises Retryable."""


class Start(Protocol):
    """Acts in the user's name; each blocks and raises PortError."""

    def coordinate(self, place: Place, *, nodes: int, sizes: tuple[int, ...], grace_s: int) -> None: ...

    def submit(self, place: Place, asked: Mapping[str, str]) -> None: ...


@dataclass(kw_only=True)
class _Run:
    """`base` is what Slurm says of it; None: not asked yet. `tokens` are replicas that were asked for."""

    opted: OptedIn
    place: Place
    line: ElasticLine
    base: Base | None = None
    word: ElasticWord | None = None
    said_at: float = float("-inf")
    start_at: float = float("-inf")
    failures: int = 0
    """Starts of its coordinator that failed, one after the other."""
    alone: str = ""
    """Why it has no coordinator."""
    untold: bool = False
    """Its script knows of no coordinator, so that none is started."""
    starting: bool = False
    unsaid: bool = False
    failed: tuple[FailedSubmit, ...] = ()
    tokens: list[str] = field(default_factory=list)


class Elastic:
    """In the loop's thread. What is known of runs is kept in a file: an agent's restart forgets none."""

    def __init__(
        self,
        *,
        node: NodeName,
        address: Callable[[], str],
        head: Head,
        bases: Bases,
        start: Start,
        folder: Callable[[JobId, int], Path],
        path: Path,
        threads: Callable[[], Threads],
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        """Each user has `threads` of his own: what is done in his folders may hang."""
        self._node, self._address, self._head, self._bases, self._start = node, address, head, bases, start
        self._folder, self._path = folder, path
        self._threads, self._of_user, self._dials = threads(), PerUser(threads), PerUser(threads)
        self._runs: dict[JobId, _Run] = {}
        self._look_every_s = look_every_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._looked = float("-inf")
        self._known_address = ""
        for opted, port, token in read_runs(path):
            self._know(opted, port, token)

    async def begin(self, opted: OptedIn) -> Mapping[str, str]:
        """The script of a run's base begins: where its coordinator will be, by the names of the shim's protocol."""
        known = self._runs.get(opted.job)
        if known is None or _key(known.opted) != _key(opted):
            if not self._has_room(opted):
                log.warning("no room for an elastic run job=%d uid=%d", opted.job, opted.uid)
                return {}
            self._forget(opted.job)
            try:
                known = self._know(opted, free_port(), secrets.token_hex(16))
            except PortError as error:
                log.warning("no elastic run job=%d why=%r", opted.job, str(error))
                return {}
            self._save()
        try:
            address = self._known_address = self._known_address or await self._own_address(ADDRESS_S)
        except (OSError, PortError) as error:
            self._leave_alone(known, f"its script could be told no address of it: {error}")
            return {}
        if known.untold:
            known.untold, known.alone = False, ""
        return {"elastic_address": f"{address}:{known.place.port}", "elastic_token": known.place.token}

    def give_up(self, opted: OptedIn) -> None:
        """The script did not wait for what `begin` had to tell: it trains on its own nodes."""
        run = self._runs.get(opted.job)
        if run is not None and _key(run.opted) == _key(opted):
            self._leave_alone(run, UNTOLD)

    def _leave_alone(self, run: _Run, why: str) -> None:
        log.warning("no elastic run job=%d why=%r", run.opted.job, why)
        run.untold = True
        self._stay_alone(run, why)

    def _stay_alone(self, run: _Run, why: str) -> None:
        run.alone = why
        if run.base is not None:
            self._say(run)

    async def _own_address(self, timeout_s: float) -> str:
        """Raises OSError and PortError."""
        return await self._threads.call(self._address, name="own address", timeout_s=timeout_s)

    async def _keep_address(self) -> None:
        """Looking the head's name up may take long: it is known before a script wants it."""
        while True:
            with contextlib.suppress(OSError, PortError):
                self._known_address = await self._own_address(_ORDER_S)
            await asyncio.sleep(ADDRESS_EVERY_S if self._known_address else TURN_S)

    def frames(self) -> tuple[Frame, ...]:
        """The last word of each run."""
        return tuple(elastic_word_frame(self._word(run)) for run in self._runs.values() if run.base is not None)

    def hear(self, frame: Frame) -> None:
        """An order of the head; never blocks. Raises Malformed."""
        order = elastic_order_of(frame)
        run = self._runs.get(order.run)
        if run is None or run.base is None:
            log.info("an order for a run that is not here run=%d", order.run)
            return
        match order:
            case Resize():
                log.info("resize run=%d generation=%d why=%r", order.run, order.generation, order.why)
                run.line.send({**elastic_order_frame(order), "elastic": order.run})
            case Submit():
                self._submit(run, order)

    async def run(self) -> None:
        """Until cancelled. Coordinators live on."""
        keeping = asyncio.get_running_loop().create_task(self._keep_address())
        try:
            while True:
                await self._turn()
                await asyncio.sleep(TURN_S)
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
            await self._look()
        for run in [one for one in self._runs.values() if one.base is not None]:
            if run.line.is_open or await run.line.open():
                run.alone, run.failures = "", 0
            elif not run.starting and not run.untold and now >= run.start_at:
                run.start_at = now + min(AGAIN_S * 2**run.failures, MAX_AGAIN_S)
                self._begin_coordinator(run)
            if now - run.said_at >= SAY_EVERY_S:
                self._say(run)

    async def _look(self) -> None:
        """Runs that Slurm does not show here under that user are over, or were another's."""
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
                self._over(run)

    def _over(self, run: _Run) -> None:
        if run.base is not None:
            log.info("elastic run over run=%d", run.opted.job)
            run.word = replace(self._word(run), state=Activity.ENDED)
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
            self._stay_alone(run, str(error))
            return
        grace = GRACE_S if spec.grace_s is None else spec.grace_s
        start = partial(self._start.coordinate, run.place, nodes=base.nodes, sizes=spec.sizes, grace_s=grace)
        self._do(start, run, "start of the coordinator")

    def _submit(self, run: _Run, order: Submit) -> None:
        if order.token in run.tokens:
            return
        run.tokens = [*run.tokens, order.token][-_MAX_TOKENS:]
        log.info("replica run=%d token=%s nodes=%d why=%r", order.run, order.token, order.nodes, order.why)
        asked = {
            "nodes": str(order.nodes),
            "comment": replica_comment(order.run, order.token),
            "grace": str(max(order.grace_s, 1)),
            "time": str(order.minutes) if order.minutes else "",
            "qos": order.qos,
            "exclude": ",".join(sorted(order.exclude)),
        }

        def submit() -> None:  # in a thread: looking the head's name up may take long, and fail
            address = self._known_address or self._address()
            self._start.submit(run.place, {**asked, "address": f"{address}:{run.place.port}"})

        self._do(submit, run, f"replica {order.token}", token=order.token)

    def _do(self, what: Callable[[], None], run: _Run, name: str, token: str = "") -> None:
        task = asyncio.get_running_loop().create_task(self._done(what, run, name, token))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _done(self, what: Callable[[], None], run: _Run, name: str, token: str) -> None:
        run.starting = run.starting or not token
        try:
            await self._of_user.of(run.place.uid).call(what, name=name, timeout_s=_ORDER_S)
        except (PortError, OSError) as error:
            log.warning("elastic run=%d %s failed why=%r", run.opted.job, name, str(error)[:400])
            if token:
                run.failed = (*run.failed, FailedSubmit(token=token, why=str(error)))[-MAX_FAILED:]
                self._say(run)
            elif self._runs.get(run.opted.job) is run:
                run.failures += 1
                if run.failures > 1:  # the first one may have come before its script
                    self._stay_alone(run, str(error))
        finally:
            run.starting = False if not token else run.starting

    def _hear_word(self, run: _Run, word: Mapping[str, Any]) -> None:
        """Take in a coordinator's word; what is not the coordinator's to say is put in its place. Raises Malformed."""
        ours = {"run": run.opted.job, "restart": run.opted.restart, "uid": run.opted.uid, "spec": run.opted.elastic}
        heard = elastic_word_of({**word, **ours, "failed": [], "alone": ""}, self._node, 0.0)
        if why := why_unsendable(elastic_word_frame(replace(heard, failed=run.failed, alone=run.alone))):
            raise Malformed(f"a word that cannot be passed on: {why}")
        run.word = heard
        if not run.unsaid:
            run.unsaid, loop = True, asyncio.get_running_loop()
            loop.call_at(max(run.said_at + LEAST_S, loop.time()), self._say_news, run)

    def _say_news(self, run: _Run) -> None:
        run.unsaid = False
        if self._runs.get(run.opted.job) is run:
            self._say(run)

    def _word(self, run: _Run) -> ElasticWord:
        word = run.word or ElasticWord(
            run=run.opted.job,
            restart=run.opted.restart,
            uid=run.opted.uid,
            node=self._node,
            spec=run.opted.elastic,
            state=Activity.WAITING,
        )
        return replace(word, failed=run.failed, alone=run.alone)

    def _say(self, run: _Run) -> None:
        run.said_at = asyncio.get_running_loop().time()
        self._head.post(elastic_word_frame(self._word(run)))

    def _has_room(self, opted: OptedIn) -> bool:
        others = [one.opted.uid for job, one in self._runs.items() if job != opted.job]
        known = self._runs.get(opted.job)
        is_anothers = known is not None and known.base is not None and known.opted.uid != opted.uid
        return not is_anothers and len(others) < MAX_RUNS and Counter(others)[opted.uid] < MAX_OF_USER

    def _know(self, opted: OptedIn, port: int, token: str) -> _Run:
        folder = self._folder(opted.job, opted.uid) / "elastic"
        place = Place(run=opted.job, uid=opted.uid, folder=folder, port=port, token=token)
        line = ElasticLine(place, lambda word: self._hear_word(run, word), self._dials.of(opted.uid))
        run = self._runs[opted.job] = _Run(opted=opted, place=place, line=line)
        return run

    def _forget(self, job: JobId) -> None:
        run = self._runs.pop(job, None)
        if run is not None:
            run.line.close(end=True)

    def _save(self) -> None:
        write_runs(self._path, [(one.opted, one.place) for one in self._runs.values()])


def _key(opted: OptedIn) -> tuple[int, int, str]:
    return opted.uid, opted.restart, opted.elastic
