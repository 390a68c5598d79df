"""The batches of an elastic run: each rank's share of a fixed global batch, its samples, and options for each size.

The only state is one number. Sample number `c` of the run (from 0, over all epochs) is fixed by the seed: each epoch is
a permutation of the data set of its own. A step takes the numbers [consumed, consumed + global batch), however they are
shared among ranks. So a run that changes its size takes the same samples in the same order as one that does not.
Standard library only.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """One rank's share of each global batch.

    Multiply the *sum* of a micro batch's losses by `loss_scale` before `backward()`, so that uneven shares get the
    right weights. DDP and FSDP then divide by the number of ranks, and the gradient is the mean over the whole global
    batch, whatever the number of ranks.
    """

    global_batch: int
    world: int
    rank: int
    start: int  # where this rank's share begins in the global batch
    local_batch: int
    micro_batches: tuple[int, ...]
    """The size for each forward and backward pass; the last may be 0 on a rank with a smaller share."""
    loss_scale: float
    even: bool

    @property
    def accumulation(self) -> int:
        """The number of micro batches in one step."""
        return len(self.micro_batches)


def batch_plan(global_batch: int, *, world: int, rank: int, micro: int = 0, uneven: bool = True) -> BatchPlan:
    """Return this rank's share; `micro` is the most samples that a rank takes at once (0: all of its share).

    Raises ValueError if the batch cannot be shared: fewer samples than ranks, or uneven with `uneven=False`.
    """
    if global_batch < 1 or world < 1 or not 0 <= rank < world or micro < 0:
        raise ValueError(f"no batch plan for global_batch={global_batch}, world={world}, rank={rank}, micro={micro}")
    if trouble := batch_trouble(global_batch, world, uneven=uneven):
        raise ValueError(trouble)
    share, rest = divmod(global_batch, world)
    local = share + (rank < rest)
    passes = -(-(share + (rest > 0)) // micro) if micro else 1  # the same on all ranks: their collectives stay in step
    return BatchPlan(
        global_batch=global_batch,
        world=world,
        rank=rank,
        start=rank * share + min(rank, rest),
        local_batch=local,
        micro_batches=_cut(local, passes),
        loss_scale=world / global_batch,
        even=rest == 0,
    )


def batch_trouble(global_batch: int, world: int, *, uneven: bool = True) -> str:
    """Return why this batch cannot be shared among this number of ranks; empty if it can."""
    if global_batch < world:
        return f"a global batch of {global_batch} is less than one sample for each of {world} ranks"
    if global_batch % world and not uneven:
        fitting = [str(ranks) for ranks in range(1, world + 1) if global_batch % ranks == 0]
        return (
            f"a global batch of {global_batch} does not divide by {world} ranks (but by {', '.join(fitting)}): "
            "use another size, or uneven shares"
        )
    return ""


def _cut(local: int, passes: int) -> tuple[int, ...]:
    share, rest = divmod(local, passes)
    return tuple(share + (number < rest) for number in range(passes))


def scale_config(source: "str | Path | Mapping[str, Any]", nodes: int) -> dict[str, Any]:
    """Return the options for this number of nodes: those of `default`, overridden by those of the number.

    `source` is a mapping, or a JSON or TOML file, of tables named by a number of nodes; inner tables are merged.
    """
    tables = source if isinstance(source, Mapping) else _read(Path(source))
    wrong = [name for name in tables if name != "default" and not str(name).isdigit()]
    if wrong:
        raise ValueError(f"scale_config: tables are named `default` or by a number of nodes, not {wrong[0]!r}")
    return _merged(tables.get("default", {}), tables.get(str(nodes), {}))


def _read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    tables = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    if not isinstance(tables, dict):
        raise ValueError(f"scale_config: {path} is not a table")
    return tables


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[name] = _merged(below, value) if isinstance(below, Mapping) and both else value
    return merged


_MASK = (1 << 64) - 1
_ROUNDS = 4


class ElasticSampler:
    """An endless iterator over this rank's sample indexes, one global batch after another.

    `consumed_samples` is how many samples all ranks together have taken: save it in the checkpoint. It grows by a whole
    global batch when the loop asks for the next one, or earlier by `step_done`, before a save.
    """

    def __init__(self, length: int, plan: BatchPlan, *, seed: int = 0, consumed_samples: int = 0) -> None:
        if length < 1 or consumed_samples < 0:
            raise ValueError(f"no samples from length={length}, consumed_samples={consumed_samples}")
        self.length = length
        self.plan = plan
        self.seed = seed
        self.consumed_samples = consumed_samples
        self._is_given_out = False

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            self.step_done()
            self._is_given_out = True
            yield self.indexes()

    def step_done(self) -> None:
        """Count the batch that was given out as consumed. A second call does nothing."""
        if self._is_given_out:
            self.consumed_samples += self.plan.global_batch
            self._is_given_out = False

    def indexes(self) -> list[int]:
        """Return this rank's indexes of the global batch that begins at `consumed_samples`."""
        start = self.consumed_samples + self.plan.start
        return [sample_at(number, self.length, self.seed) for number in range(start, start + self.plan.local_batch)]

    def micro_batches(self) -> list[list[int]]:
        """Return `indexes()` cut into the plan's micro batches."""
        indexes, cut, at = self.indexes(), [], 0
        for size in self.plan.micro_batches:
            cut.append(indexes[at : at + size])
            at += size
        return cut

    @property
    def epoch(self) -> int:
        """The number of whole passes over the data so far."""
        return self.consumed_samples // self.length


def sample_at(number: int, length: int, seed: int = 0) -> int:
    """Return the index of the run's sample `number`: within each epoch every index comes exactly once."""
    epoch, place = divmod(number, length)
    key = _mixed(_mixed(seed & _MASK) ^ epoch)
    half = max(1, ((length - 1).bit_length() + 1) // 2)
    while True:  # the network permutes numbers up to a power of four: one outside the data is permuted again
        place = _permuted(place, half, key)
        if place < length:
            return place


def _permuted(place: int, half: int, key: int) -> int:
    """Return the place after a permutation of the numbers below 4 ** half: a Feistel network, which needs no table."""
    mask = (1 << half) - 1
    left, right = place >> half, place & mask
    for number in range(_ROUNDS):
        left, right = right, left ^ (_mixed(right ^ key ^ (number << 56)) & mask)
    return (left << half) | right


def _mixed(value: int) -> int:
    """Return the value mixed by splitmix64's finisher: every bit of the value changes every bit of the result."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
