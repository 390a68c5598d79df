"""A head goes on with what could be read of a damaged store: with any part of its memory lost no plan fails, and no
machine that serves is ended, drained or downed."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.store import sections
from steward.model.action import DownNode, DrainNode, ForgetNode, RebootInstance, TerminateInstance
from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.policy.plan import plan
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.picture import T0, Picture, a_cluster

HARMS = (DownNode, DrainNode, ForgetNode, RebootInstance, TerminateInstance)
TURNS = (0.0, 1.0, 30.0, 61.0, 130.0, 400.0, 4000.0)
"""A stray is ended after a minute."""
Row = tuple[str, str, str]


def rows_of(memory: Memory) -> Sequence[Row]:
    return sections.changes(Memory(), memory).put


def left(memory: Memory, lost: Sequence[bool]) -> Memory:
    """What a new store has of it when these rows were on bad pages (`mend._drop_halves`)."""
    rows = [row for row, is_lost in zip(rows_of(memory), lost, strict=True) if not is_lost]
    gone = {row[0] for row, is_lost in zip(rows_of(memory), lost, strict=True) if is_lost}
    halves = frozenset[str]().union(*(each for each in sections.TOGETHER if each & gone))
    found, unreadable = sections.memory(row for row in rows if row[0] not in halves)
    assert unreadable == ()
    return found


def harms(seen: Observed, want: Desired, memory: Memory) -> list[str]:
    found = []
    for after_s in TURNS:
        now = T0 + after_s
        made = plan(replace(seen, at=now, listed_at=now if seen.listed_at is not None else None), want, memory, now)
        found += [f"{type(one).__name__} {one.why}" for one in made.actions if isinstance(one, HARMS)]
        memory = made.memory
    return found


def with_tokens() -> ApiPicture:
    """Each machine bears the token of its slot, by which a stray is known."""
    picture = an_api_cluster()
    machines = dict(picture.seen.instances)
    for record in picture.memory.slots.values():
        if record.instance in machines:
            machines[record.instance] = replace(machines[record.instance], token=record.token)
    return picture.see(instances=machines, listed_at=T0)


API = with_tokens()


@given(st.lists(st.booleans(), min_size=len(rows_of(API.memory)), max_size=len(rows_of(API.memory))))
def test_of_a_cluster_of_the_api_no_machine_is_ended(lost: Sequence[bool]) -> None:
    assert harms(API.seen, API.want, API.memory) == []
    assert harms(API.seen, API.want, left(API.memory, lost)) == []


def in_repair() -> Picture:
    """A job was hit and put back, its node is being replaced, and another node is suspected."""
    picture = a_cluster().job().opted_in().then().lost("n2").then(1.0).marked("n2").then(1.0)
    return picture.agent_lost("n5").then(1.0).heard("n5").then(1.0)


REPAIR = in_repair()


@given(st.lists(st.booleans(), min_size=len(rows_of(REPAIR.memory)), max_size=len(rows_of(REPAIR.memory))))
def test_in_the_middle_of_a_repair_no_sound_node_is_touched(lost: Sequence[bool]) -> None:
    memory = left(REPAIR.memory, lost)
    touched = [text for text in harms(REPAIR.seen, REPAIR.want, memory) if "n2" not in text]
    assert touched == []
