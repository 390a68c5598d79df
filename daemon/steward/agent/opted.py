"""The opted-in jobs of this node, as its slurmstepds and their users reported them, in a file that outlives the agent.

Slurm settles disputes: the owner of a job that several users claim and, now and then, which jobs are gone, so that they
are forgotten and their folders removed.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from steward.adapters.files import read_json, write_json
from steward.adapters.offload import Threads
from steward.adapters.wire.messages import MAX_OPTED, opted_of, opted_record
from steward.agent.job_folder import JobFolders
from steward.agent.tasks import Debounced
from steward.model.ask import OptedIn
from steward.model.ids import JobId, NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

CROWDED = 64
CLAIMS = 32
"""A user with more unconfirmed claims than this is the first to lose one when the book is full."""
YOUNG_S = 600.0
SAVE_EVERY_S = 0.5
"""The shortest interval between writes of the book, because a user can change the book at will.

The head has the claims that a killed agent had not written yet.
"""
TELL_EVERY_S = 0.5
"""The shortest interval between reports of one user's unconfirmed claims to the head."""

_Key = tuple[JobId, int]


@dataclass(frozen=True, slots=True)
class Output:
    """The output file of a job's script, as its user says; empty if not known.

    `start` is the file's size at the start of the run (`--open-mode=append`): these bytes are of earlier runs.
    """

    path: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A user's claim on a job; `sure` if root or Slurm confirms that the job is this user's."""

    opted: OptedIn
    sure: bool = False
    out: Output = Output()

    def holds(self, opted: OptedIn) -> bool:
        """Return whether this claim already holds all that `opted` says."""
        same_sizes = opted.elastic in ("", self.opted.elastic)  # only the script of a run's base job sends sizes
        is_news = (
            (opted.has_steps and not self.opted.has_steps)
            or (opted.has_detached and not self.opted.has_detached)
            or (opted.has_script and not self.opted.has_script)
            or opted.left not in ("", self.opted.left)
        )
        return same_sizes and not is_news and (self.opted.mode, self.opted.restart) == (opted.mode, opted.restart)


class OptedBook:
    """The claims on jobs, one of each user who claims a job, so that no user hides the owner's claim.

    Holds at most `MAX_OPTED` claims. The oldest claim of the user with the most claims goes first, so that no user can
    push out another user's job. Of another boot of this node than `boot` nothing is known any more.
    """

    def __init__(self, path: Path, boot: str = "") -> None:
        self._path, self._boot = path, boot
        self._claims = {(one.opted.job, one.opted.uid): one for one in _read(path, boot)}
        self._save = Debounced(self._write, SAVE_EVERY_S)
        self._bells: list[Callable[[], None]] = []

    def call_at_words(self, bell: Callable[[], None]) -> None:
        """Have `bell` called at each claim, new or repeated: a script or step of the job starts on this node."""
        self._bells.append(bell)

    def all(self) -> tuple[OptedIn, ...]:
        """Return every claim."""
        return tuple(one.opted for one in self._claims.values())

    def claims_that_count(self) -> tuple[OptedIn, ...]:
        """Return one claim on each job: the owner's, or the first while the owner is not known."""
        first: dict[JobId, OptedIn] = {}
        for one in sorted(self._claims.values(), key=lambda one: not one.sure):
            first.setdefault(one.opted.job, one.opted)
        return tuple(first.values())

    def claim_on(self, job: JobId) -> OptedIn | None:
        """Return the claim on the job that counts, as in `that_count`; None if there is none."""
        first = min(self._claims_on(job), key=lambda one: not one.sure, default=None)
        return None if first is None else first.opted

    def claim_of_user(self, job: JobId, uid: int) -> OptedIn | None:
        """Return this user's own claim on the job; None if there is none."""
        known = self._claims.get((job, uid))
        return None if known is None else known.opted

    def is_owned_by_another(self, job: JobId, uid: int) -> bool:
        """Return whether the job is known to be another user's."""
        return any(one.sure and one.opted.uid != uid for one in self._claims_on(job))

    def is_disputed(self, job: JobId) -> bool:
        """Return whether several users claim the job."""
        return len(self._claims_on(job)) > 1

    def add(self, opted: OptedIn, *, sure: bool = False) -> bool:
        """Add a claim; with `sure` (its user owns the job) forget other users' claims on the job.

        Returns False if the claim was known: each step of a job repeats the claim.
        """
        is_news = self._add(opted, sure=sure)
        for bell in self._bells:
            bell()
        return is_news

    def _add(self, opted: OptedIn, *, sure: bool) -> bool:
        key = (opted.job, opted.uid)
        known = self._claims.get(key)
        if known is not None and known.holds(opted):
            if sure:
                self.confirm_owners({opted.job: opted.uid})
            return False
        of_run = known if known is not None and known.opted.restart == opted.restart else _Claim(opted=opted)
        before = of_run.opted
        opted = replace(
            opted,
            elastic=opted.elastic or before.elastic,
            has_steps=opted.has_steps or before.has_steps,
            has_detached=opted.has_detached or before.has_detached,
            has_script=opted.has_script or before.has_script,
            left=opted.left or before.left,
        )
        claims = {**self._claims, key: _Claim(opted=opted, sure=known is not None and known.sure, out=of_run.out)}
        self._set_claims(_settled(claims, {opted.job: opted.uid} if sure else {}))
        return True

    def confirm_owners(self, owners: Mapping[JobId, int]) -> None:
        """Confirm the owners of these jobs, and forget other users' claims on them."""
        claims = _settled(self._claims, owners)
        if claims != self._claims:
            self._set_claims(claims)

    def output_of(self, job: JobId, uid: int) -> Output:
        """Return the output file of the job's script, as this user says."""
        known = self._claims.get((job, uid))
        return Output() if known is None else known.out

    def note_output(self, job: JobId, uid: int, restart: int, out: Output) -> None:
        """Keep the output file of the job's current run; ignore that of another run."""
        known = self._claims.get((job, uid))
        if known is not None and known.opted.restart == restart and known.out != out:
            self._set_claims({**self._claims, (job, uid): replace(known, out=out)})

    @property
    def is_crowded(self) -> bool:
        """Return whether the book is so full that Slurm is to be asked which jobs are still on this node."""
        return len(self._claims) > CROWDED

    def prune(self, owners: Mapping[JobId, int], now: float) -> None:
        """Forget the jobs that left the node, and claims on other users' jobs; `owners` holds the jobs on the node.

        The youngest jobs stay: Slurm may not list them yet.
        """
        claims = _settled(self._claims, owners)
        self._set_claims({key: one for key, one in claims.items() if key[0] in owners or now - one.opted.at < YOUNG_S})

    def _claims_on(self, job: JobId) -> list[_Claim]:
        return [one for one in self._claims.values() if one.opted.job == job]

    def _set_claims(self, claims: Mapping[_Key, _Claim]) -> None:
        kept = _fair_share(sorted(claims.values(), key=lambda one: one.opted.at))
        self._claims = {(one.opted.job, one.opted.uid): one for one in kept}
        self._save.wish()

    def close(self) -> None:
        """Write the changes that are not saved yet."""
        self._save.now()

    def _write(self) -> None:
        try:
            write_json(self._path, [_record(one, self._boot) for one in self._claims.values()])
        except PortError as error:
            log.warning("opted jobs not saved why=%r", str(error))


def _settled(claims: Mapping[_Key, _Claim], owners: Mapping[JobId, int]) -> dict[_Key, _Claim]:
    return {
        (job, uid): replace(one, sure=True) if job in owners else one
        for (job, uid), one in claims.items()
        if owners.get(job, uid) == uid
    }


def _fair_share(oldest_first: list[_Claim]) -> list[_Claim]:
    kept = list(oldest_first)
    while len(kept) > MAX_OPTED:
        claims = [one for one in kept if not one.sure]
        kept.remove(_oldest_of_crowd(claims, CLAIMS) or _oldest_of_crowd(kept, 0) or kept[0])
    return kept


def _oldest_of_crowd(claims: list[_Claim], more_than: int) -> _Claim | None:
    """Return the oldest claim of the user with the most claims; None if that user has at most `more_than`."""
    crowd = Counter(one.opted.uid for one in claims).most_common(1)
    if not crowd or crowd[0][1] <= more_than:
        return None
    return next(one for one in claims if one.opted.uid == crowd[0][0])


def _record(one: _Claim, boot: str) -> dict[str, Any]:
    told = {"boot": boot, "sure": one.sure, "out": one.out.path, "out_start": one.out.start}
    return {**opted_record(one.opted), **told}


def _read(path: Path, boot: str) -> list[_Claim]:
    records = read_json(path)
    found = []
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict) and record.get("boot") != boot:
            continue
        try:
            opted = opted_of(record)
        except PortError as error:
            log.warning("opted job dropped from=%s why=%r", path, str(error))
        else:
            found.append(_Claim(opted=opted, sure=record.get("sure") is True, out=_output_of(record)))
    return found


def _output_of(record: dict[str, Any]) -> Output:
    """Return the job's output file as the record names it; unknown without a path and its start."""
    path, start = record.get("out"), record.get("out_start")
    return Output(path, start) if isinstance(path, str) and isinstance(start, int) else Output()


class OptedNews:
    """The new claims of a book, sent to the head.

    Confirmed claims are sent at once. Of an unconfirmed user's claims the first is sent at once and the rest `every_s`
    seconds later, as they are then, so that a user cannot load the head at will.
    """

    def __init__(self, book: OptedBook, tell: Callable[[Sequence[OptedIn]], None], every_s: float) -> None:
        self._book, self._tell, self._every_s = book, tell, every_s
        self._jobs: defaultdict[int, dict[JobId, None]] = defaultdict(dict)
        self._pace: dict[int, Debounced] = {}

    def add(self, opted: OptedIn, *, sure: bool) -> None:
        """Send a claim that the book already holds, at once or later."""
        uid = opted.uid
        if sure:
            self._tell([opted])
            return
        self._jobs[uid][opted.job] = None
        if uid not in self._pace:
            self._pace[uid] = Debounced(partial(self._flush, uid), self._every_s)
        self._pace[uid].wish()

    def _flush(self, uid: int) -> None:
        claims = [self._book.claim_of_user(job, uid) for job in self._jobs.pop(uid, ())]
        if known := [one for one in claims if one is not None]:
            self._tell(known)


PATIENCE_S = 0.1
EVERY_S = 1.0
TIDY_EVERY_S = 600.0
_REMOVE_S = 30.0


class JobsLook(Protocol):
    """Slurm's list of the jobs on a node."""

    async def on(self, node: NodeName) -> Mapping[JobId, int]:
        """Return the uid of each job that has the node now. Raises Retryable when Slurm does not answer."""


class Owners:
    """The owners of disputed jobs, asked of Slurm at most once a second so that users cannot load Slurm at will."""

    def __init__(self, node: NodeName, opted: OptedBook, look: JobsLook) -> None:
        self._node, self._opted, self._look = node, opted, look
        self._inquiry: asyncio.Task[None] | None = None
        self._asked = float("-inf")

    async def drop_wrong_claims(self, job: JobId) -> None:
        """Forget wrong claims on the job; return after `PATIENCE_S` at most, even if Slurm answers later."""
        now = asyncio.get_running_loop().time()
        if not self._opted.is_disputed(job):
            return
        if self._inquiry is None and now >= self._asked + EVERY_S:
            self._asked = now
            self._inquiry = asyncio.get_running_loop().create_task(self._ask_slurm())
        if self._inquiry is not None:
            await asyncio.wait((self._inquiry,), timeout=PATIENCE_S)

    async def _ask_slurm(self) -> None:
        try:
            self._opted.confirm_owners(await self._look.on(self._node))
        except PortError as error:
            log.info("not known whose jobs are why=%r", str(error))
        finally:
            self._inquiry = None


# Jobs that are gone.


async def keep_tidy(
    opted: OptedBook,
    folders: JobFolders,
    look: JobsLook,
    node: NodeName,
    clock: Clock,
    *,
    every_s: float = TIDY_EVERY_S,
) -> None:
    """Forget jobs that are gone and remove their folders, until cancelled; then close the book.

    Asks Slurm only if the book is crowded or a job has a folder here, and forgets nothing without Slurm's answer.
    """
    threads = Threads(1)
    try:
        while True:
            await asyncio.sleep(every_s)
            if opted.is_crowded or folders.all():
                await _tidy(opted, folders, look, node, clock, threads)
    finally:
        opted.close()


async def _tidy(
    opted: OptedBook, folders: JobFolders, look: JobsLook, node: NodeName, clock: Clock, threads: Threads
) -> None:
    try:
        opted.prune(await look.on(node), clock.now())
        await threads.call(partial(_remove, folders, _without_claim(folders, opted)), name="tidy", timeout_s=_REMOVE_S)
    except PortError as error:
        log.info("opted jobs kept why=%r", str(error))


def _without_claim(folders: JobFolders, opted: OptedBook) -> frozenset[JobId]:
    """Return the jobs that have a folder but no claim in the book."""
    return folders.all() - {one.job for one in opted.all()}


def _remove(folders: JobFolders, jobs: frozenset[JobId]) -> None:
    for job in jobs:
        folders.remove(job)
