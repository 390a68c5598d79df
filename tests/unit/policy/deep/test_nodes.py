"""Which nodes a deep check begins with."""

from dataclasses import replace

import pytest

from steward.model.deep import DeepState
from tests.builders.deep import a_run, with_run
from tests.builders.picture import T0, Picture, a_cluster
from tests.builders.want import but

FOUR = ("n1", "n2", "n3", "n4")
GATHER_S = 2.0


def a_check(**fields: float) -> Picture:
    """Of four nodes; one cleans up after a user's job, which has just ended."""
    picture = a_cluster(4)
    deep = but(picture.want.deep, gather_s=GATHER_S, at_once_percent=100.0)
    picture = replace(picture, want=replace(picture.want, deep=deep))
    return with_run(picture, a_run(*FOUR, **fields)).node("n1", flags=frozenset({"COMPLETING"}))


def begun(picture: Picture) -> list[list[str]]:
    runs = picture.plan().memory.deeps.values()
    return [sorted(run.nodes) for run in runs if run.state is DeepState.RESERVED]


first_try_or_second = pytest.mark.parametrize(
    "check",
    [a_check(asked=T0), a_check(asked=T0 - 60, entered=T0 - 5, tries=1)],
    ids=["just asked", "stepped back before"],
)


@first_try_or_second
def test_nodes_that_are_free_wait_for_the_others(check: Picture) -> None:
    assert begun(check) == []
    assert begun(check.then(GATHER_S / 2).node("n1", flags=frozenset())) == [list(FOUR)]


@first_try_or_second
def test_they_do_not_wait_long(check: Picture) -> None:
    assert check.plan().wake_at == T0 + GATHER_S
    assert begun(check.then(GATHER_S)) == [list(FOUR[1:])]
