"""A run that changes its size takes the same samples in the same order, with the same weights, as one that does not."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.job.elastic_batch import ElasticSampler, batch_plan, sample_at, scale_config

SIZES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=12)  # (ranks, steps at that size)


@given(st.integers(1, 200), st.integers(9, 40), st.integers(0, 5), st.integers(-(2**70), 2**70), SIZES)
def test_any_sequence_of_sizes_takes_the_same_samples_in_the_same_order(
    length: int, batch: int, micro: int, seed: int, sizes: list[tuple[int, int]]
) -> None:
    taken: list[int] = []
    consumed = 0
    for world, steps in sizes:
        plans = [batch_plan(batch, world=world, rank=rank, micro=micro) for rank in range(world)]
        ranks = [ElasticSampler(length, plan, seed=seed, consumed_samples=consumed) for plan in plans]
        loops = [iter(each) for each in ranks]
        for _ in range(steps):
            taken += [index for loop in loops for index in next(loop)]
        for each in ranks:
            each.step_done()
            each.step_done()
        assert len({each.consumed_samples for each in ranks}) == 1
        consumed = ranks[0].consumed_samples

    assert taken == [sample_at(number, length, seed) for number in range(consumed)]


@given(st.integers(1, 300), st.integers(0, 3), st.integers())
def test_each_epoch_has_every_sample_exactly_once(length: int, epoch: int, seed: int) -> None:
    numbers = range(epoch * length, (epoch + 1) * length)

    assert sorted(sample_at(number, length, seed) for number in numbers) == list(range(length))


def test_epochs_and_seeds_are_shuffled_each_in_its_own_way() -> None:
    first = [sample_at(number, 1000) for number in range(1000)]
    second = [sample_at(number, 1000) for number in range(1000, 2000)]
    other = [sample_at(number, 1000, seed=1) for number in range(1000)]

    assert len({tuple(first), tuple(second), tuple(other), tuple(range(1000))}) == 4
    assert abs(sum(first[:100]) / 100 - 499.5) < 120


@given(st.integers(1, 500), st.integers(1, 40), st.integers(0, 20), st.integers(0, 2**32))
def test_shares_are_the_whole_batch_and_the_gradient_is_its_mean(batch: int, world: int, micro: int, seed: int) -> None:
    if batch < world:
        with pytest.raises(ValueError, match="less than one sample"):
            batch_plan(batch, world=world, rank=0, micro=micro)
        return
    plans = [batch_plan(batch, world=world, rank=rank, micro=micro) for rank in range(world)]
    losses = [random.Random(seed).randint(-9, 9) for _ in range(batch)]

    assert [plan.start for plan in plans] == [sum(each.local_batch for each in plans[:rank]) for rank in range(world)]
    assert sum(plan.local_batch for plan in plans) == batch
    assert len({plan.accumulation for plan in plans}) == 1
    for plan in plans:
        assert sum(plan.micro_batches) == plan.local_batch
        assert not micro or max(plan.micro_batches) <= micro
    shares = [sum(losses[plan.start : plan.start + plan.local_batch]) for plan in plans]
    averaged = sum(Fraction(world, batch) * share for share in shares) / world
    assert plans[0].loss_scale == world / batch
    assert averaged == Fraction(sum(losses), batch)


def test_a_batch_that_does_not_divide_is_refused_with_the_sizes_that_work() -> None:
    with pytest.raises(ValueError, match=r"does not divide by 3 ranks \(but by 1, 2\): use another size"):
        batch_plan(128, world=3, rank=0, uneven=False)


def test_a_sizes_options_override_the_defaults_table_by_table() -> None:
    tables = {"default": {"lr": 1, "train": {"micro": 4, "cut": 8}}, "3": {"train": {"micro": 2}}}

    assert scale_config(tables, 3) == {"lr": 1, "train": {"micro": 2, "cut": 8}}
    assert scale_config(tables, 4) == {"lr": 1, "train": {"micro": 4, "cut": 8}}
    with pytest.raises(ValueError, match="'three'"):
        scale_config({"three": {}}, 3)
