"""Lets a training loop change its number of nodes while it runs: asked at the end of each step, agreed by all ranks.

    from steward.job import elastic

    if elastic.resize_wanted(step, consumed):          # the same answer on all ranks
        elastic.save_and_wait(lambda: save(step), step, consumed)

After that the ranks are stopped and started again at the new size; they go on from the checkpoint. HyperPod's
pattern works too: when `elastic_event_detected()` is true, save, return and end with status 0. Outside an elastic run
all of it does nothing and answers "no". Standard library only: torch is used where the script has imported it.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.job.elastic_batch import BatchPlan, ElasticSampler, batch_plan, batch_trouble, sample_at, scale_config

__all__ = [
    "BatchPlan",
    "ElasticSampler",
    "active",
    "batch_plan",
    "batch_trouble",
    "elastic_event_detected",
    "generation",
    "resize_wanted",
    "sample_at",
    "save_and_wait",
    "saved",
    "scale_config",
    "wait_for_resize",
]

FOLDER, GENERATION = "STEWARD_ELASTIC_LOCAL", "STEWARD_ELASTIC_GENERATION"
WORDS = "words"
TELL_EVERY_S = 1.0
LONGEST_WAIT_S = 600.0
_LOOK_S = 0.05
_SAY_AGAIN_S = 5.0


class _Run:
    """This process's memory of its run: a worker lives for one generation."""

    def __init__(self) -> None:
        self.calls = 0
        self.told_at = float("-inf")
        self.gave_up = False
        self.saved: dict[str, Any] | None = None
        self.socket: socket.socket | None = None


_run = _Run()


def active() -> bool:
    """Whether this process is a rank of an elastic run."""
    return bool(os.environ.get(FOLDER)) and generation() > 0


def generation() -> int:
    """How often this run has formed, counted from 1; 0 outside an elastic run."""
    text = os.environ.get(GENERATION, "")
    return int(text) if text.isdigit() else 0


def resize_wanted(
    step: int | None = None,
    consumed: int | None = None,
    *,
    every: int = 1,
    agree: Callable[[bool], bool] | None = None,
) -> bool:
    """Whether all ranks should save now: call it on every rank at the end of every step.

    The ranks agree by one all-reduce of one number, at each call or at each `every`-th. `step` and `consumed` (samples)
    are told to Steward, about once a second; a loop without a step says once that it makes steps. `agree`: true on all
    ranks when it is called with true on one; a loop without torch.distributed gives it.
    """
    if not active():
        return False
    _tell_step(step, consumed)
    _run.calls += 1
    if _run.gave_up or _run.calls % max(1, every):
        return False
    if not (agree or _agreed)(_is_asked()):
        return False
    _tell({"what": "noticed", "step": step, "consumed": consumed})
    return True


def elastic_event_detected() -> bool:
    """HyperPod's question, by its name: true means save a checkpoint, leave the loop and end with status 0."""
    return resize_wanted()


def save_and_wait(save: Callable[[], object], step: int, consumed: int | None = None) -> None:
    """Call `save`, tell that this rank's part is saved, and wait to be stopped and started at the new size."""
    save()
    saved(step, consumed)
    wait_for_resize()


def saved(step: int, consumed: int | None = None) -> None:
    """This rank's part of the checkpoint of this step is on disk."""
    if active():
        _run.saved = {"what": "saved", "step": step, "consumed": consumed}
        _tell(_run.saved)


def wait_for_resize(longest_s: float = LONGEST_WAIT_S) -> None:
    """Wait for the end of this process, which torchrun brings about. A rank that waits too long trains on as it was."""
    if not active():
        return
    until = time.monotonic() + longest_s
    told_at = time.monotonic()
    while time.monotonic() < until:
        time.sleep(_LOOK_S)
        if _run.saved is not None and time.monotonic() - told_at >= _SAY_AGAIN_S:  # a datagram may be lost
            told_at = time.monotonic()
            _tell(_run.saved)
    _run.gave_up = True


def _is_asked() -> bool:
    return (Path(os.environ[FOLDER]) / f"resize-{generation()}").exists()


def _agreed(asked: bool) -> bool:
    """True on all ranks when it is true on one. Without torch.distributed each process speaks for itself."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return asked
    device = "cuda" if "nccl" in str(torch.distributed.get_backend()) else "cpu"
    flag = torch.tensor([1.0 if asked else 0.0], device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item() > 0)


def _tell_step(step: int | None, consumed: int | None) -> None:
    """The run may change its size from the first one on."""
    if os.environ.get("RANK", "0") != "0":
        return
    if step is None and not _run.calls:
        _tell({"what": "started"})
    elif step is not None and time.monotonic() - _run.told_at >= TELL_EVERY_S:
        _run.told_at = time.monotonic()
        _tell({"what": "step", "step": step, "consumed": consumed})


def _tell(words: dict[str, Any]) -> None:
    """One datagram to torchrun's agent on this node. A lost one costs time, never the run: no step waits to be told."""
    words |= {"generation": generation(), "local_rank": os.environ.get("LOCAL_RANK", "0")}
    words |= {"ranks": os.environ.get("LOCAL_WORLD_SIZE", "1"), "at": time.time()}
    try:
        if _run.socket is None:
            _run.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        _run.socket.settimeout(0 if words["what"] == "step" else 1)
        _run.socket.sendto(json.dumps(words, default=str).encode(), os.path.join(os.environ[FOLDER], WORDS))
    except OSError:
        _run.socket = None
