"""A clock that was set: what was remembered stays as old as it is, and a run stays the same one."""

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from steward.model.deep import Measure
from steward.model.health import Outcome
from steward.model.ids import JobId, Key, NodeName, OnHeadsClock
from steward.model.memory import Breaker, ClockChange, HeadMemory, Memory
from steward.workflows.clock_change import in_time, last_stamp, moved_earlier, since_change, since_set_back
from tests.builders.picture import a_cluster

T0 = 1_700_000_000.0
NO_TIMES = {
    "Measure.value",
    "Baseline.values",
    "Share.vcpu",
    "Share.memory_gib",
    "Trial.previous_share",
    "Trial.share",
    "Case.old_slurmd",
    "SlotRecord.old_slurmd",
    "Served.slurmd_started",
    "Bystander.submitted",
    "ClockChange.by",
}
"""Amounts, and stamps of Slurm that are compared with Slurm's. All other durations and amounts say their unit."""
UNITS = ("_s", "_seconds", ".seconds")


def test_times_become_earlier_and_counts_durations_and_texts_stay() -> None:
    breaker = Breaker(scope="all", tripped=T0, text="too many", patience_s=1800.0)
    memory = Memory(asked={Key("down:n1"): T0 + 5.0}, breakers={"all": breaker}, next_case=7)
    shifted = moved_earlier(memory, 3600.0)
    assert shifted.asked == {"down:n1": T0 - 3595.0}
    assert shifted.breakers == {"all": replace(breaker, tripped=T0 - 3600.0)}
    assert shifted.next_case == 7


def test_a_number_that_is_as_large_as_a_time_stays() -> None:
    rate = Measure(check="disk.write", node=NodeName("n1"), outcome=Outcome.PASSED, value=5e9, unit="B/s")
    assert moved_earlier(rate, 3600.0) == rate


def test_slurms_own_stamps_that_are_compared_with_slurms_stay() -> None:
    (case,) = a_cluster().lost("n2").then().memory.cases.values()
    registered = replace(case, old_slurmd=T0)
    assert moved_earlier(registered, 3600.0).old_slurmd == T0
    assert moved_earlier(registered, 3600.0).opened == case.opened - 3600.0


def test_what_never_was_stays_so() -> None:
    assert moved_earlier(Memory(), 3600.0) == Memory()


def test_of_each_number_in_memory_it_is_said_whether_it_is_a_time() -> None:
    others = {name for name, is_time in floats(Memory, set()) if not is_time and not name.endswith(UNITS)}
    assert others == NO_TIMES


def floats(kind: type, known: set[type]) -> Iterator[tuple[str, bool]]:
    """The fields with a number, of a record and all in it, and whether it is a time."""
    known.add(kind)
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        for part, is_time in parts(hints[field.name]):
            if part is float:
                yield f"{kind.__name__}.{field.name}", is_time
            elif is_dataclass(part) and isinstance(part, type) and part not in known:
                yield from floats(part, known)


def parts(hint: Any) -> Iterator[tuple[Any, bool]]:
    if get_origin(hint) is Annotated:
        yield get_args(hint)[0], any(isinstance(mark, OnHeadsClock) for mark in hint.__metadata__)
    elif isinstance(hint, UnionType) or get_origin(hint) is not None:
        for each in get_args(hint):
            yield from parts(each)
    else:
        yield hint, False


def test_memory_of_the_future_is_moved_once_and_it_is_remembered_how_far() -> None:
    memory = Memory(asked={Key("down:n1"): T0}, looked=T0 + 10.0)
    moved = since_set_back(memory, T0 - 3590.0)
    assert (moved.asked, moved.looked) == ({"down:n1": T0 - 3600.0}, T0 - 3590.0)
    assert moved.head == HeadMemory(clock_change=ClockChange(at=T0 - 3590.0, by=3600.0))
    assert since_set_back(moved, T0 - 3590.0) is moved


def test_memory_of_the_past_stays() -> None:
    memory = Memory(asked={Key("down:n1"): T0})
    assert since_set_back(memory, T0) is memory


def test_the_last_stamp_is_that_of_a_case_where_nothing_else_is_remembered() -> None:
    case = a_cluster().lost("n2").then().memory.cases
    (opened,) = (each.entered for each in case.values())
    assert last_stamp(Memory(cases=case)) == opened
    assert last_stamp(Memory(cases=case, looked=opened + 1.0)) == opened + 1.0
    assert last_stamp(Memory()) == 0.0


def test_a_run_is_the_same_afterwards_as_slurm_stamped_it_before() -> None:
    runs = a_cluster().job(7).opted_in(7).then(500.0)
    job = runs.seen.jobs[JobId(7)]
    for by in (60.0, 3600.0):
        memory = since_set_back(replace(runs.memory, looked=runs.now), now := runs.now - by)
        assert memory.head.clock_change is not None
        assert memory.jobs[JobId(7)].started == in_time(job, memory.head.clock_change, now).started, by


def test_a_job_with_no_time_in_the_future_stays_the_very_record() -> None:
    job = a_cluster().job(7).seen.jobs[JobId(7)]
    assert job.started is not None
    assert in_time(job, ClockChange(at=job.started + 10.0, by=60.0), job.started + 10.0) is job


def test_a_run_began_after_its_submission_also_by_the_clock_of_today() -> None:
    job = a_cluster().job(7).seen.jobs[JobId(7)]
    assert job.started is not None
    fresh = replace(job, submitted=job.started - 2.0)
    back = in_time(fresh, ClockChange(at=job.started - 3590.0, by=3600.0), job.started - 3590.0)
    assert (back.submitted, back.started) == (job.started - 3602.0, job.started - 3600.0)


def test_a_run_is_the_same_also_after_the_clock_was_set_forward() -> None:
    runs = a_cluster().job(7).opted_in(7).then(500.0)
    job = runs.seen.jobs[JobId(7)]
    assert job.started is not None
    for by in (60.0, 3600.0):
        change = ClockChange(at=runs.now + by, by=-by)
        memory = since_change(runs.memory, change)
        assert memory.jobs[JobId(7)].started == in_time(job, change, runs.now + by).started == job.started + by
        later = in_time(replace(job, started=runs.now + by + 1.0), change, runs.now + by + 5.0)
        assert later.started == runs.now + by + 1.0, "a run that began after it"
