"""What is measured on one node alone, one part after the other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steward.deep.budget import Budget
from steward.deep.cpu import check_cpu
from steward.deep.disk import check_disk
from steward.deep.gpu import check_gpus, has_gpu
from steward.deep.memory import check_memory
from steward.deep.said import Here
from steward.deep.tell import Teller
from steward.deep.torch_door import TorchDoor
from steward.model.deep import Measure

_MARGIN_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StressLimits:
    memory_share: float = 0.5
    memory_bytes: int = 1 << 50
    disk_folder: Path = Path("/var/tmp")
    disk_bytes: int = 1 << 30
    torch: TorchDoor = field(default_factory=TorchDoor)
    dcgm_level: int = 0


Part = tuple[str, float, Callable[[Budget], list[Measure]]]
"""Name, share of the time that is left when it begins, what to do."""


def parts(here: Here, limits: StressLimits) -> Iterator[Part]:
    gpus = 0.6 if has_gpu() else 0.05
    yield "gpu", gpus, lambda budget: check_gpus(here, budget, torch=limits.torch, dcgm_level=limits.dcgm_level)
    yield "cpu", 0.35, lambda budget: check_cpu(here, budget)
    yield (
        "memory",
        0.6,
        lambda budget: check_memory(here, budget, share=limits.memory_share, most_bytes=limits.memory_bytes),
    )
    yield "disk", 0.6, lambda budget: check_disk(here, budget, limits.disk_folder, limits.disk_bytes)


def check_node(here: Here, teller: Teller, budget: Budget, limits: StressLimits) -> None:
    """Over within the budget; each part is told when it is over."""
    mine = Budget(budget.until - min(_MARGIN_S, budget.left_s / 4))
    for name, share, measure in parts(here, limits):
        teller.progress(name)
        teller.tell(measure(mine.part(share)))
