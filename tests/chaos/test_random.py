"""Some random stories, the same in every run; and that a story that fails is made short and can be told again."""

import pytest

from steward.model.ids import NodeName
from tests.chaos import mutants
from tests.chaos.operations import Operation, story
from tests.chaos.random_run import LENGTH, broken_by, shortest

N2, N6 = NodeName("n2"), NodeName("n6")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1))
def test_a_random_story_breaks_nothing(seed: int) -> None:
    assert broken_by(story(seed, LENGTH)) == []


def test_the_same_seed_is_the_same_story() -> None:
    assert story(7, LENGTH) == story(7, LENGTH)
    assert story(7, LENGTH) != story(8, LENGTH)


def test_shrinking_leaves_only_what_is_needed() -> None:
    assert shortest(list(range(50)), lambda some: {3, 41} <= set(some)) == [3, 41]


@pytest.mark.long
def test_a_broken_head_is_found_out_and_the_story_shrunk_to_what_it_takes() -> None:
    calm = [Operation(0.3, "submit", N2), Operation(0.3, "scontrol fails", N2)]
    told = [*calm, Operation(1.0, "degraded", N2), *calm]

    def fails(some: list[Operation]) -> bool:
        return broken_by(some, mutants.undoes_foreign_drains) != []

    assert broken_by(told) == []
    assert fails(told)
    assert len(shortest(told, fails)) == 1


def test_a_node_whose_repair_was_lost_with_the_store_serves_again() -> None:
    """The file is damaged while nothing can be written, and then the head is killed: nobody remembers the repair."""
    lost = [
        Operation(0.3, "degraded", N6),
        Operation(4.0, "disk full", N6),
        Operation(0.3, "store damaged", N6),
        Operation(1.0, "stewardd away", N6),
    ]
    assert broken_by(lost) == []
