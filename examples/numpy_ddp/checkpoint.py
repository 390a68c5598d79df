"""Checkpoints that are whole or not there: written beside, synced, then renamed."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def save(file: Path, *, step: int, weights: Array, momentum: Array) -> None:
    """After this returns the checkpoint survives the loss of the machine that wrote it (given a shared file system)."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with draft.open("wb") as out:
        np.savez(out, step=np.int64(step), weights=weights, momentum=momentum)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(file: Path) -> tuple[int, Array, Array] | None:
    """(step, weights, momentum), or None where no checkpoint was written yet."""
    if not file.exists():
        return None
    with np.load(file) as kept:
        return int(kept["step"]), kept["weights"], kept["momentum"]
