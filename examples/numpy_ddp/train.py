"""Data-parallel training that goes on from its last checkpoint, with the same result as if nothing had happened.

Started by `srun`, one process a rank. The job is submitted with `sbatch --auto-resume=1` and started again; it finds
its checkpoint and continues. Such a job finds `steward_job` on its PYTHONPATH and tells how far it is (docs/job.md).
"""

import argparse
import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import checkpoint
import model
import numpy as np
from collective import Star, meeting_file

try:
    import steward_job as job
except ImportError:
    job = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What to train. `step_s` is the shortest time of a step, as a bigger model would take."""

    folder: Path
    steps: int
    keep_every: int
    step_s: float
    seed: int
    rank: int
    size: int

    @property
    def kept(self) -> Path:
        return self.folder / "checkpoint.npz"


class Progress:
    """One JSON line a happening in `progress.jsonl`, written by rank 0 only."""

    def __init__(self, run: Run) -> None:
        self._file = run.folder / "progress.jsonl"
        self._silent = run.rank != 0

    def tell(self, what: str, **facts: object) -> None:
        if self._silent:
            return
        line = json.dumps({"at": time.time(), "what": what, **facts}) + "\n"
        with self._file.open("a") as out:
            out.write(line)


BATCH, RATE, MOMENTUM = 128, 0.1, 0.9


def rows_of(step: int, run: Run, count: int) -> np.ndarray:
    """This rank's rows of the step's batch: a pure function of seed, step and rank, so a resumed run sees the same."""
    per_epoch = count // BATCH
    order = np.random.default_rng((run.seed, step // per_epoch)).permutation(count)
    batch = order[(step % per_epoch) * BATCH :][:BATCH]
    return np.array_split(batch, run.size)[run.rank]


def train(run: Run) -> str:
    """Train to the last step; the digest of the final weights."""
    progress = Progress(run)
    star = Star.join(rank=run.rank, size=run.size, meeting=meeting_file(run.folder))
    with np.load(run.folder / "digits.npz") as digits:
        pictures, labels = digits["pictures"], digits["labels"]
    step, weights, momentum = begin(run, star)
    progress.tell("begun", step=step, attempt=os.environ.get("STEWARD_ATTEMPT", "1"), **where())
    while step < run.steps:
        until = time.monotonic() + run.step_s
        rows = rows_of(step, run, len(labels))
        loss, gradient = model.loss_and_gradient(weights, pictures[rows], labels[rows])
        summed = star.sum(np.append(gradient, loss))
        momentum = MOMENTUM * momentum + summed[:-1] / BATCH
        weights = weights - RATE * momentum
        step += 1
        progress.tell("step", step=step, loss=round(summed[-1] / BATCH, 6))
        if job and run.rank == 0:
            job.progress(step)
        if run.rank == 0 and (step % run.keep_every == 0 or step == run.steps):
            checkpoint.save(run.kept, step=step, weights=weights, momentum=momentum)
            progress.tell("kept", step=step)
            if job:
                job.checkpoint_saved(run.kept, step)
        time.sleep(max(0.0, until - time.monotonic()))
    digest = hashlib.sha256(weights.tobytes()).hexdigest()
    right = model.accuracy(weights, pictures, labels)
    progress.tell("done", step=step, weights=digest, accuracy=round(right, 4))
    return digest


def begin(run: Run, star: Star) -> tuple[int, model.Array, model.Array]:
    """Rank 0's checkpoint, or the first weights, at every rank."""
    fresh = model.first_weights(run.seed)
    found = checkpoint.load(run.kept) if run.rank == 0 else None
    step, weights, momentum = found or (0, fresh, np.zeros_like(fresh))
    state = star.broadcast(np.concatenate([[float(step)], weights, momentum]))
    weights, momentum = np.split(state[1:], 2)
    return int(state[0]), weights, momentum


def where() -> dict[str, object]:
    """What a reader of the log wants to know of this start."""
    return {
        "born": born(),
        "node": node(),
        "nodes": os.environ.get("SLURM_STEP_NODELIST", ""),
        "restart": int(os.environ.get("SLURM_RESTART_COUNT", "0")),
    }


def born() -> float:
    """When the kernel started this process (Unix s): the task runs since then, imports included."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def node() -> str:
    return os.environ.get("SLURMD_NODENAME", "")


def asked(words: list[str]) -> Run:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for checkpoint and progress, on a shared file system")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--keep-every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--step-s", type=float, default=0.0, help="shortest time of a step, seconds")
    parser.add_argument("--seed", type=int, default=7)
    said = parser.parse_args(words)
    rank, size = int(os.environ.get("SLURM_PROCID", "0")), int(os.environ.get("SLURM_NTASKS", "1"))
    return Run(**vars(said), rank=rank, size=size)


def main() -> int:
    try:
        train(asked(sys.argv[1:]))
    except OSError as error:
        print(f"rank {os.environ.get('SLURM_PROCID', '0')} on {node()}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
