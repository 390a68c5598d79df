"""Calls by which a training loop changes its number of nodes while it runs.

The loop asks at the end of each step, and all ranks agree on the answer:

    from steward.job import elastic

    if elastic.resize_wanted(step, consumed):          # the same answer on all ranks
        elastic.save_and_wait(lambda: save(step), step, consumed)

Then the ranks are stopped and started again at the new size, and continue from the checkpoint. HyperPod's pattern works
too: if `elastic_event_detected()` is true, save, return and end with status 0. Outside an elastic run the calls do
nothing and answer "no". Standard library only: torch is used if the script has imported it.
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
_POLL_S = 0.05
_REPEAT_S = 5.0


class _Run:
    """The state of this process, which lives for one generation."""

    def __init__(self) -> None:
        self.calls = 0
        self.told_at = float("-inf")
        self.gave_up = False
        """Whether a wait for a resize timed out, so that this process asks for none any more."""
        self.saved: dict[str, Any] | None = None
        """The report of this process's last save, to be repeated."""
        self.socket: socket.socket | None = None


_run = _Run()


def active() -> bool:
    """Return whether this process is a rank of an elastic run."""
    return bool(os.environ.get(FOLDER)) and generation() > 0


def generation() -> int:
    """Return the number of this generation of the run, counted from 1; 0 outside an elastic run."""
    text = os.environ.get(GENERATION, "")
    return int(text) if text.isdigit() else 0


def resize_wanted(
    step: int | None = None,
    consumed: int | None = None,
    *,
    every: int = 1,
    agree: Callable[[bool], bool] | None = None,
) -> bool:
    """Return whether all ranks should save now. Call this on every rank at the end of every step.

    The ranks agree by one all-reduce of one number, at each call or at each `every`-th. `step` and `consumed` (samples)
    are reported to Steward about once a second; a loop that passes no `step` reports only its first call. Without
    torch.distributed pass `agree`: a function that returns true on all ranks if one rank calls it with true.
    """
    if not active():
        return False
    _report_step(step, consumed)
    _run.calls += 1
    if _run.gave_up or _run.calls % max(1, every):
        return False
    if not (agree or _on_any_rank)(_is_resize_ordered()):
        return False
    _send({"what": "noticed", "step": step, "consumed": consumed})
    return True


def elastic_event_detected() -> bool:
    """Return whether to save a checkpoint, leave the loop and end with status 0; the name is HyperPod's."""
    return resize_wanted()


def save_and_wait(save: Callable[[], object], step: int, consumed: int | None = None) -> None:
    """Call `save`, report that this rank has saved, and wait to be stopped; the script starts again at the new size."""
    save()
    saved(step, consumed)
    wait_for_resize()


def saved(step: int, consumed: int | None = None) -> None:
    """Report that this rank's part of the checkpoint of this step is on disk."""
    if active():
        _run.saved = {"what": "saved", "step": step, "consumed": consumed}
        _send(_run.saved)


def wait_for_resize(longest_s: float = LONGEST_WAIT_S) -> None:
    """Wait for torchrun to end this process; return after `longest_s` so that the rank trains on at the old size."""
    if not active():
        return
    until = time.monotonic() + longest_s
    told_at = time.monotonic()
    while time.monotonic() < until:
        time.sleep(_POLL_S)
        if _run.saved is not None and time.monotonic() - told_at >= _REPEAT_S:  # a datagram may be lost
            told_at = time.monotonic()
            _send(_run.saved)
    _run.gave_up = True


def _is_resize_ordered() -> bool:
    return (Path(os.environ[FOLDER]) / f"resize-{generation()}").exists()


def _on_any_rank(here: bool) -> bool:
    """Return whether `here` is true on any rank; without torch.distributed, `here` itself."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return here
    device = "cuda" if "nccl" in str(torch.distributed.get_backend()) else "cpu"
    flag = torch.tensor([1.0 if here else 0.0], device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item() > 0)


def _report_step(step: int | None, consumed: int | None) -> None:
    """Report rank 0's step, once a second at most; after the first report the run may change its size."""
    if os.environ.get("RANK", "0") != "0":
        return
    if step is None and not _run.calls:
        _send({"what": "started"})
    elif step is not None and time.monotonic() - _run.told_at >= TELL_EVERY_S:
        _run.told_at = time.monotonic()
        _send({"what": "step", "step": step, "consumed": consumed})


def _send(message: dict[str, Any]) -> None:
    """Send a message to torchrun's agent on this node. Never raises; a lost message only delays the run."""
    message |= {"generation": generation(), "local_rank": os.environ.get("LOCAL_RANK", "0")}
    message |= {"ranks": os.environ.get("LOCAL_WORLD_SIZE", "1"), "at": time.time()}
    try:
        if _run.socket is None:
            _run.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        _run.socket.settimeout(0 if message["what"] == "step" else 1)
        _run.socket.sendto(json.dumps(message, default=str).encode(), os.path.join(os.environ[FOLDER], WORDS))
    except OSError:
        _run.socket = None
