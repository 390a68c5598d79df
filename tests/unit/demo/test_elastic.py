"""What the elastic demo reads from the training's log, and the picture of a run."""

from examples.demo.elastic import changes_of, is_exact, stretches_of
from examples.demo.measure import Happening
from steward.job.elastic_batch import sample_at
from steward.policy.elastic.picture import Stretch, picture

BATCH = 48


def begun(at: float, step: int, generation: int, world: int) -> Happening:
    return Happening(at=at, what="begun", step=step, facts={"generation": generation, "world": world})


def step(at: float, number: int, generation: int, world: int) -> list[Happening]:
    """Of all ranks."""
    order = [sample_at(index, 4096, 7) for index in range((number - 1) * BATCH, number * BATCH)]
    share = BATCH // world
    return [
        Happening(
            at=at,
            what="step",
            step=number,
            facts={"generation": generation, "rank": rank, "samples": order[rank * share : (rank + 1) * share]},
        )
        for rank in range(world)
    ]


LOG = (
    begun(0.0, 0, 1, 2),
    *step(0.1, 1, 1, 2),
    *step(0.6, 2, 1, 2),
    *step(1.1, 3, 1, 2),
    begun(2.0, 2, 2, 3),
    *step(2.1, 3, 2, 3),
    *step(2.6, 4, 2, 3),
)


def test_steps_that_were_made_again_are_lost_and_count_for_their_change() -> None:
    event = {"at": 1.5, "before": 2, "after": 3, "cause": "fault", "saved_s": None, "done": 2.1}
    start = {"at": 0.0, "before": 0, "after": 2, "cause": "start", "saved_s": None, "done": 0.1}

    (change,) = changes_of([start, event], LOG)

    assert (change.before, change.after, change.steps_lost) == (2, 3, 1)
    assert change.first_step_s is not None
    assert round(change.first_step_s, 6) == 0.6


def test_a_step_that_took_other_samples_is_found() -> None:
    assert is_exact(LOG, 4)
    assert not is_exact(LOG, 5), "one was never made"
    assert not is_exact((*LOG, *step(3.0, 4, 3, 2)[:1]), 4), "half a batch"


def test_while_no_step_is_made_no_node_counts() -> None:
    assert [one.nodes for one in stretches_of(LOG)] == [2, 2, 2, 0, 3]


def test_a_picture_has_a_row_for_each_node_and_the_throughput_below() -> None:
    drawn = picture(
        [Stretch(began=0, ended=10, nodes=1, rate=50), Stretch(began=10, ended=20, nodes=2, rate=100)], width=40
    )

    assert drawn[1] == "    2 │" + " " * 20 + "█" * 20
    assert drawn[2] == "    1 │" + "█" * 40
    assert drawn[-2].strip() == "▄" * 20 + "█" * 20
    assert drawn[-1].endswith("(full height: 100)")


def test_a_large_run_has_a_dozen_rows_at_most_and_an_empty_one_none() -> None:
    assert len([text for text in picture([Stretch(began=0, ended=9, nodes=1000)]) if "│" in text]) == 12
    assert picture([]) == []
