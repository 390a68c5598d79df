"""`decode(encode(x)) == x` for everything that the store keeps, through real JSON text."""

import json
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.codec import codec, decode, encode
from steward.adapters.store import sections
from steward.model.agent_action import Action
from steward.model.case import Case, CaseStep
from steward.model.events import Event
from steward.model.memory import Memory
from steward.model.resume import JobMemory
from tests.builders.actions import KINDS

_PLAIN = {
    float: st.floats(allow_nan=False),
    str: st.text(alphabet=st.characters(codec="utf-8"), max_size=20),
    int: st.integers(min_value=-(2**63), max_value=2**63),
}
for _kind, _values in _PLAIN.items():
    st.register_type_strategy(_kind, _values)


def through_json(kind: Any, value: Any) -> Any:
    return decode(kind, json.loads(json.dumps(encode(kind, value), ensure_ascii=False)))


@given(st.from_type(Case))
def test_a_case_comes_back_as_it_was(case: Case) -> None:
    assert through_json(Case, case) == case


@given(st.from_type(JobMemory))
def test_a_jobs_memory_comes_back_as_it_was(job: JobMemory) -> None:
    assert through_json(JobMemory, job) == job


_ACTIONS: st.SearchStrategy[Action] = st.one_of([st.from_type(kind) for kind in KINDS])


@given(_ACTIONS)
def test_an_action_comes_back_as_it_was(action: Action) -> None:
    found = through_json(type(action), action)
    assert found == action


@given(st.from_type(Event))
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    assert through_json(Event, event) == event


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    """A few sections of it each: whole ones are too large to draw."""
    kinds = get_type_hints(Memory)
    names = draw(st.sets(st.sampled_from(sorted(kinds)), max_size=3))
    return Memory(**{name: draw(st.from_type(kinds[name])) for name in sorted(names)})


@given(memories(), memories())
def test_changes_applied_to_one_memorys_rows_give_the_other(before: Memory, after: Memory) -> None:
    rows = {row[:2]: row for row in sections.changes(Memory(), before).put}
    changes = sections.changes(before, after)
    for row in changes.gone:
        del rows[row]
    rows.update({row[:2]: row for row in changes.put})

    assert sections.memory(rows.values()) == (after, ())
    assert sections.changes(after, after) == sections.Changes(put=(), gone=())


def test_an_upgraded_head_reads_a_stored_row_without_a_field_that_is_new() -> None:
    stored = encode(Event, Event(at=1.0, kind="x", text="y"))
    del stored["data"]
    assert decode(Event, stored) == Event(at=1.0, kind="x", text="y")


def test_a_head_that_goes_back_leaves_out_a_stored_field_that_it_does_not_have() -> None:
    event = Event(at=1.0, kind="x", text="y")
    assert decode(Event, {**encode(Event, event), "colour": "red"}) == event


@pytest.mark.parametrize(
    ("kind", "stored"),
    [(CaseStep, "dance"), (int, "1"), (int, True), (bool, 1), (str, None), (float, "x"), (Event, {"at": 1})],
)
def test_what_is_not_of_the_type_is_refused(kind: Any, stored: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        decode(kind, stored)


@pytest.mark.parametrize("kind", [list[int], object, int | str])
def test_a_type_that_is_not_understood_is_refused_when_the_codec_is_made(kind: Any) -> None:
    with pytest.raises(TypeError):
        codec(kind)
