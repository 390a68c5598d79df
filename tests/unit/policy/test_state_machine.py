"""What all state machines have in common, shown by a door."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import pytest

from steward.policy.state_machine import StateMachine, Table


class Step(Enum):
    SHUT = "shut"
    OPEN = "open"
    BROKEN = "broken"


class Fact(Enum):
    KICKED = "somebody kicked it"
    PUSHED = "somebody pushed it"
    CARRIED_OFF = "it was carried off"


@dataclass(frozen=True)
class Door:
    step: Step
    true: frozenset[Fact]
    moves: tuple[str, ...] = ()


TABLE = Table(
    {
        (Step.SHUT, Fact.KICKED): Step.BROKEN,
        (Step.SHUT, Fact.PUSHED): Step.OPEN,
        (Step.OPEN, Fact.CARRIED_OFF): None,
        (Step.OPEN, Fact.PUSHED): Step.SHUT,
    }
)


def holds(fact: Fact) -> Callable[[Door], bool]:
    return lambda door: fact in door.true


QUESTIONS = {fact: holds(fact) for fact in Fact}


def entered(door: Door, fact: Fact, step: Step | None) -> Door | None:
    return None if step is None else replace(door, step=step, moves=(*door.moves, fact.name), true=door.true - {fact})


DOORS = StateMachine(table=TABLE, step_of=lambda door: door.step, questions=QUESTIONS, enter=entered)


def moved(*true: Fact) -> Door | None:
    return DOORS.move(Door(Step.SHUT, frozenset(true)))


def test_nothing_true_moves_nothing() -> None:
    assert moved() == Door(Step.SHUT, frozenset())


def test_the_first_fact_that_is_true_decides() -> None:
    door = moved(Fact.PUSHED, Fact.KICKED)
    assert door == Door(Step.BROKEN, frozenset({Fact.PUSHED}), moves=("KICKED",))


def test_it_moves_as_far_as_the_facts_let_it_until_it_is_no_more() -> None:
    assert moved(Fact.PUSHED, Fact.CARRIED_OFF) is None


def test_a_loop_in_the_table_ends() -> None:
    def stays_true(door: Door, fact: Fact, step: Step | None) -> Door | None:
        return None if step is None else replace(door, step=step, moves=(*door.moves, fact.name))

    looping = replace(DOORS, enter=stays_true)
    door = looping.move(Door(Step.SHUT, frozenset({Fact.PUSHED})))
    assert door is not None
    assert len(door.moves) == 2 * len(Step)


def test_what_is_noted_counts_for_the_questions_that_follow() -> None:
    noting = replace(DOORS, noted=lambda door: replace(door, true=door.true | {Fact.KICKED}))
    door = noting.move(Door(Step.SHUT, frozenset()))
    assert door is not None
    assert door.step is Step.BROKEN


def test_each_fact_has_one_question() -> None:
    with pytest.raises(ValueError, match="a fact without a question"):
        replace(DOORS, questions={Fact.KICKED: QUESTIONS[Fact.KICKED]})
    with pytest.raises(ValueError, match="a question that no row asks"):
        replace(DOORS, table=Table({(Step.SHUT, Fact.KICKED): None}))


def test_the_page_shows_every_row() -> None:
    page = TABLE.page("# A door", Step.SHUT, lambda step: "none")
    assert "    [*] --> SHUT\n" in page
    assert "    OPEN --> [*]: carried_off\n" in page
    assert "    BROKEN --> [*]\n" in page
    assert "| shut | none | kicked → broken; pushed → open |\n" in page
    assert "| open | none | carried_off → gone; pushed → shut |\n" in page
    assert "| pushed | somebody pushed it |\n" in page
