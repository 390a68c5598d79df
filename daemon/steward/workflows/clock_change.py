"""Move remembered times after the head's clock was set, so that all that is remembered is as old as it really is.

A head that sees its clock set moves its memory, writes it and ends. If the clock was set back while no head ran, the
times that an earlier head remembered are in the future, and the next head moves them. If it was set forward while no
head ran, that looks like a longer absence, and nothing is moved.
"""

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args, get_origin

from steward.model.ids import OnHeadsClock
from steward.model.job import Job
from steward.model.memory import ClockChange, Memory

T = TypeVar("T")

NOTICED_S = 1.0
"""Times up to this far in the future are left alone, because Slurm's times are whole seconds."""


def since_set_back(memory: Memory, now: float) -> Memory:
    """Return the memory; with its times moved into the past if the clock was set back since they were noted."""
    last = last_stamp(memory)
    moved = since_stamp(memory, last, now)
    return memory if moved is memory else since_change(memory, ClockChange(at=now, by=last - now))


def since_change(memory: Memory, change: ClockChange) -> Memory:
    """Return the memory with its times moved by the change, and with the change noted."""
    moved = moved_earlier(memory, change.by)
    # as Slurm stamped them, so that a run is still the same one
    jobs = {
        id: replace(job, started=_since(memory.jobs[id].started, change, change.at)) for id, job in moved.jobs.items()
    }
    head = replace(moved.head, clock_change=change)
    return replace(moved, head=head, jobs=MappingProxyType(jobs))


def since_stamp(value: T, last: float, now: float) -> T:
    """Return a record; with its times moved into the past if `last`, the time of its last change, is in the future."""
    return moved_earlier(value, last - now) if last - now > NOTICED_S else value


def moved_earlier(value: T, by: float) -> T:
    """Return a record with each `UnixTime` in it moved `by` seconds into the past; 0 means never, and stays 0."""
    if not is_dataclass(value):
        return value
    kind: Any = type(value)
    hints = _hints(kind)
    news = {name: _moved(getattr(value, name), hint, by) for name, hint in hints.items()}
    return replace(value, **{name: new for name, new in news.items() if new is not getattr(value, name)})  # type: ignore[type-var]


@cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def _moved(value: Any, hint: Any, by: float) -> Any:
    if dataclasses.is_dataclass(value):
        return moved_earlier(value, by)
    if isinstance(value, float):
        return value - by if value and _is_time(hint) else value
    if isinstance(value, Mapping):
        return MappingProxyType({key: _moved(part, get_args(hint)[1], by) for key, part in value.items()})
    if isinstance(value, tuple):
        return tuple(_moved(part, get_args(hint)[0], by) for part in value)
    return value


def _is_time(hint: Any) -> bool:
    """Return whether numbers of this type, or of a member of this union, are times by the head's clock."""
    if get_origin(hint) is Annotated:
        return any(isinstance(mark, OnHeadsClock) for mark in hint.__metadata__)
    return any(_is_time(each) for each in get_args(hint))


def last_stamp(memory: Memory) -> float:
    """Return the latest time that the memory noted (Unix s); 0 if it noted none."""
    # Only times of this host count: agents' clocks may be ahead.
    looks = (memory.looked, memory.head.looked_at_marks or 0.0, memory.head.looked_at_ends or 0.0)
    notes = (*memory.asked.values(), *memory.noted.values(), *looks, *(ask.at for ask in memory.asks.values()))
    steps = [case.entered for case in memory.cases.values()] + [slot.entered for slot in memory.slots.values()]
    jobs = [job.started or 0.0 for job in memory.jobs.values()]
    jobs += [job.hang.since for job in memory.jobs.values() if job.hang is not None]
    return max(*notes, *steps, *jobs, *(incident.since for incident in memory.incidents.values()), 0.0)


def in_time(job: Job, change: ClockChange, now: float) -> Job:
    """Return the job with its submission, start and end by today's clock, if Slurm stamped them before the change."""
    stamps = (job.submitted, job.started, job.ended)
    submitted, started, ended = (_since(stamp, change, now) for stamp in stamps)
    if (submitted, started, ended) == stamps:
        return job
    return replace(job, submitted=submitted, started=started, ended=ended)


def _since(stamp: float | None, change: ClockChange, now: float) -> float | None:
    """Return Slurm's stamp; moved by the change if it was surely made before the change.

    If the clock was set back, that is a stamp in the future; if it was set forward, one of before the hour that was
    left out.
    """
    if stamp is None:
        return None
    is_of_before = stamp > now + NOTICED_S if change.by > 0.0 else stamp <= change.at + change.by
    return min(stamp - change.by, change.at) if is_of_before else stamp
