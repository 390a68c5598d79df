"""Which samples a rank takes, exactly, at any number of ranks: the only state is one number. Standard library only.

Sample number `c` of the run (from 0, over all epochs) is a fixed one, given by the seed: each epoch is a permutation
of the data set of its own. A step takes the numbers [consumed, consumed + global batch); how these are cut over ranks
does not change which they are. So a run that changes its size takes the same samples in the same order as one that
does not.
"""

from collections.abc import Iterator

from steward.job.elastic_plan import BatchPlan

_MASK = (1 << 64) - 1
_ROUNDS = 4


class ElasticSampler:
    """Yields this rank's sample indexes of one global batch after another, without end.

    `consumed_samples` is what a checkpoint keeps: how many samples all ranks together have taken. It moves by a whole
    global batch when the loop comes for the next one (`step_done` says so earlier, before a save).
    """

    def __init__(self, length: int, plan: BatchPlan, *, seed: int = 0, consumed_samples: int = 0) -> None:
        if length < 1 or consumed_samples < 0:
            raise ValueError(f"no samples from length={length}, consumed_samples={consumed_samples}")
        self.length = length
        self.plan = plan
        self.seed = seed
        self.consumed_samples = consumed_samples
        self._is_out = False

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            self.step_done()
            self._is_out = True
            yield self.indexes()

    def step_done(self) -> None:
        """The batch that was given out is trained on: it counts as consumed. A second call does nothing."""
        if self._is_out:
            self.consumed_samples += self.plan.global_batch
            self._is_out = False

    def indexes(self) -> list[int]:
        """This rank's indexes of the global batch that begins at `consumed_samples`."""
        start = self.consumed_samples + self.plan.start
        return [sample_at(number, self.length, self.seed) for number in range(start, start + self.plan.local_batch)]

    def micro_batches(self) -> list[list[int]]:
        """The same indexes, cut into the plan's micro batches."""
        indexes, cut, at = self.indexes(), [], 0
        for size in self.plan.micro_batches:
            cut.append(indexes[at : at + size])
            at += size
        return cut

    @property
    def epoch(self) -> int:
        """Whole passes over the data so far."""
        return self.consumed_samples // self.length


def sample_at(number: int, length: int, seed: int = 0) -> int:
    """The index of the run's sample `number`: within each epoch every index comes exactly once."""
    epoch, place = divmod(number, length)
    key = _mixed(_mixed(seed & _MASK) ^ epoch)
    half = max(1, ((length - 1).bit_length() + 1) // 2)
    while True:  # the network permutes the next power of four; what falls outside is permuted again
        place = _permuted(place, half, key)
        if place < length:
            return place


def _permuted(place: int, half: int, key: int) -> int:
    """A Feistel network: a permutation of the numbers below 4 ** half, without a table of them."""
    mask = (1 << half) - 1
    left, right = place >> half, place & mask
    for number in range(_ROUNDS):
        left, right = right, left ^ (_mixed(right ^ key ^ (number << 56)) & mask)
    return (left << half) | right


def _mixed(value: int) -> int:
    """The finisher of splitmix64: every bit of the value moves every bit of the result."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
