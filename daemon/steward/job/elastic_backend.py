"""The rendezvous backend `steward` as torchrun finds it: an entry point of the group `torchrun.handlers`.

Every process that imports torch.distributed's launcher loads this module, training processes too, while torch is half
imported. So this module imports torch only when torchrun makes a rendezvous handler.
"""

from collections.abc import Callable
from typing import Any


def handler() -> Callable[[Any], Any]:
    """Return the function that makes a rendezvous handler from torchrun's parameters."""
    return _create


def _create(parameters: Any) -> Any:
    from steward.job.rendezvous import create  # noqa: PLC0415 - imports torch

    return create(parameters)
