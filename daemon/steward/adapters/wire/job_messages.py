"""Messages between agent and head on opted-in jobs. Input is hostile. Times travel as ages, so no clocks are compared.

Their subjects: waiting shims with the known lines of the job's log, tasks that ended badly, progress, what the ranks of
steps do, a resumed job's past, the collected stacks of its tasks, and the jobs that the site opts in by default.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from steward.adapters.codec import FrameCodec, list_field, readable_records, text_field
from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.messages import mode_of, record_of
from steward.model.ask import Ask
from steward.model.bounds import Called, Job, Lenient, Lines, Range, Token
from steward.model.ids import JobId, NodeName
from steward.model.job_report import Progress, ResumeFacts, TaskExit
from steward.model.job_sight import StepSight
from steward.model.resume_mode import SiteDefault

MAX_JOBS = 64
MAX_STEPS = 32
MAX_EXITS = 64
MAX_DEFAULTS = 64
_MAX_WORD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _PastWanted:
    """An agent's request for a job's past."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """The past of a resumed job, as the head knows it."""

    job: Job
    facts: ResumeFacts | None


_ASK = FrameCodec(Ask, "ask")
_EXIT = FrameCodec(TaskExit)
_PROGRESS = FrameCodec(Progress)
_SIGHT = FrameCodec(StepSight)
_WANTED = FrameCodec(_PastWanted, "facts?")
_FACTS = FrameCodec(_Past, "facts")


def ask_frame(ask: Ask) -> Frame:
    return _ASK.write(ask)


def ask_of(frame: Frame, node: NodeName) -> Ask:
    """Return the ask in a frame from the agent of `node`. Raises Malformed."""
    return _ASK.read(frame, node=node)


def exits_frame(exits: Iterable[TaskExit], now: float) -> Frame:
    """Return the frame of the exits, whose times are by the agent's clock `now` and are sent as ages."""
    return {"t": "exits", "exits": [_EXIT.write(one, now) for one in exits]}


def exits_of(frame: Frame, node: NodeName, now: float) -> tuple[TaskExit, ...]:
    """Return the exits in the frame, with times by the clock of `now`. Raises Malformed."""
    return readable_records(frame, "exits", MAX_EXITS, lambda one: _EXIT.read(one, now, node=node))


def progress_frame(jobs: Iterable[Progress], now: float) -> Frame:
    """Return the frame of the progress of the node's jobs; times are by the clock of `now`."""
    return {"t": "progress", "jobs": [_PROGRESS.write(one, now) for one in jobs][:MAX_JOBS]}


def progress_of(frame: Frame, node: NodeName, now: float) -> tuple[Progress, ...]:
    """Return the progress in the frame, with times by the clock of `now`. Raises Malformed."""
    return readable_records(frame, "jobs", MAX_JOBS, lambda one: _PROGRESS.read(one, now, node=node, at=now))


def sight_frame(steps: Iterable[StepSight]) -> Frame:
    return {"t": "sight", "steps": [_SIGHT.write(one) for one in steps][:MAX_STEPS]}


def sight_of(frame: Frame, node: NodeName, now: float) -> tuple[StepSight, ...]:
    """Return what the ranks of the node's steps do, as of `now`. Raises Malformed."""
    return readable_records(frame, "steps", MAX_STEPS, lambda one: _SIGHT.read(one, node=node, at=now))


def facts_wanted_frame(job: JobId) -> Frame:
    return _WANTED.write(_PastWanted(job=job))


def facts_wanted_of(frame: Frame) -> JobId:
    """Return the job whose past is asked for. Raises Malformed."""
    return _WANTED.read(frame).job


def facts_frame(job: JobId, facts: ResumeFacts | None) -> Frame:
    """Return the frame of a job's past; `facts` is None if nothing is known."""
    if facts is not None:
        facts = replace(facts, culprits=tuple(sorted(facts.culprits)), excluded=tuple(sorted(facts.excluded)))
    return _FACTS.write(_Past(job=job, facts=facts))


def facts_of(frame: Frame) -> tuple[JobId, ResumeFacts | None]:
    """Return the job and its past, None if nothing is known. Raises Malformed."""
    told = _FACTS.read(frame)
    return told.job, told.facts


def defaults_records(defaults: Iterable[SiteDefault]) -> list[dict[str, str]]:
    """Return the records of the site's defaults in the head's welcome; the first that fits a job counts."""
    return [
        {"partition": one.partition, "account": one.account, "qos": one.qos, "mode": one.mode.text} for one in defaults
    ][:MAX_DEFAULTS]


def defaults_of(frame: Frame) -> tuple[SiteDefault, ...]:
    """Return the site's defaults in the head's welcome. Raises Malformed."""
    return tuple(_default_of(value) for value in list_field(frame, "defaults", MAX_DEFAULTS))


def _default_of(value: object) -> SiteDefault:
    record = record_of(value)
    return SiteDefault(
        partition=text_field(record, "partition", _MAX_WORD),
        account=text_field(record, "account", _MAX_WORD),
        qos=text_field(record, "qos", _MAX_WORD),
        mode=mode_of(record),
    )


MAX_BUNDLE = 256 << 10
"""The most characters of one node's part of a bundle."""
PIECE = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class BundlePiece:
    """A part of a node's stacks, from character `offset` on: printable ASCII, line feeds and tabs."""

    name: Token
    offset: Annotated[int, Range(high=MAX_BUNDLE)]
    text: Annotated[str, Lines(PIECE)]
    is_last: Annotated[bool, Called("last"), Lenient()]


_PIECES = FrameCodec(BundlePiece, "bundle")


def bundle_frames(name: str, content: str) -> list[Frame]:
    """Return the frames of a bundle, cut to the limit; there is always a last piece, even if empty."""
    kept = content[:MAX_BUNDLE]
    starts = range(0, max(len(kept), 1), PIECE)
    return [
        _PIECES.write(BundlePiece(name=name, offset=at, text=kept[at : at + PIECE], is_last=at == starts[-1]))
        for at in starts
    ]


def bundle_of(frame: Frame) -> BundlePiece:
    """Return the piece of a bundle in the frame. Raises Malformed."""
    piece = _PIECES.read(frame)
    if piece.offset + len(piece.text) > MAX_BUNDLE:
        raise Malformed(f"offset={piece.offset} with {len(piece.text)} characters is over the {MAX_BUNDLE} of a bundle")
    return piece
