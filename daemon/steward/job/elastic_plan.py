"""How a fixed global batch is cut over any number of ranks, and which options hold at which size."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """One rank's share of each global batch.

    The mean over the global batch needs the right weights where shares are uneven: multiply the *sum* of a micro
    batch's losses by `loss_scale` before `backward()`. DDP and FSDP then divide by the number of ranks, and the
    gradient is the mean over the whole global batch, whatever the number of ranks.
    """

    global_batch: int
    world: int
    rank: int
    start: int  # where this rank's share begins in the global batch
    local_batch: int
    micro_batches: tuple[int, ...]  # sizes, one a forward and backward pass; the last may be empty on a rank with less
    loss_scale: float
    even: bool

    @property
    def accumulation(self) -> int:
        """How many micro batches make one step."""
        return len(self.micro_batches)


def batch_plan(global_batch: int, *, world: int, rank: int, micro: int = 0, uneven: bool = True) -> BatchPlan:
    """This rank's share. `micro` is the most that a rank takes at once (0: all of its share).

    ValueError when the batch cannot be cut: fewer samples than ranks, or not even and `uneven=False`.
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
    """Why this batch does not go with this number of ranks; empty when it does."""
    if global_batch < world:
        return f"a global batch of {global_batch} is less than one sample for each of {world} ranks"
    if global_batch % world and not uneven:
        fitting = [str(ranks) for ranks in range(1, world + 1) if global_batch % ranks == 0]
        return (
            f"a global batch of {global_batch} does not divide by {world} ranks (it does by {', '.join(fitting)}): "
            "use another size, or uneven shares"
        )
    return ""


def _cut(local: int, passes: int) -> tuple[int, ...]:
    share, rest = divmod(local, passes)
    return tuple(share + (number < rest) for number in range(passes))


def scale_config(source: "str | Path | Mapping[str, Any]", nodes: int) -> dict[str, Any]:
    """The options for this size: those of `default`, overridden by those of the size.

    `source` is a mapping, or a JSON or TOML file, of tables named by their number of nodes; inner tables are merged.
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
