"""PyTorch data-parallel training that goes on from its last checkpoint, on GPUs where there are any. Started by
`torchrun` on every node of a step.

The job is submitted with `sbatch --auto-resume=1` and started again, by `srun` in its allocation or by a requeue; it
finds its newest whole checkpoint and continues. Such a job finds
`steward_job` on its PYTHONPATH and tells how far it is (docs/job.md).
"""

import argparse
import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from sklearn.datasets import load_digits
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

try:
    import steward_job as job
except ImportError:
    job = None

BATCH = 128


class Training:
    """Model, optimizer and the number of steps done: what a checkpoint holds."""

    def __init__(self, seed: int, device: torch.device) -> None:
        torch.manual_seed(seed)
        layers = (torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
        self.model = DistributedDataParallel(torch.nn.Sequential(*layers).to(device))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.step = 0

    def advance(self, pictures: torch.Tensor, labels: torch.Tensor) -> float:
        """One step on this rank's share of the batch; the gradients are averaged over the ranks."""
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(pictures), labels)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return float(loss)

    def save(self, folder: Path) -> None:
        """All ranks write their part; the checkpoint gets its name when it is whole."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        draft = folder / f".step-{self.step:08d}"
        dcp.save({"model": model, "optimizer": optimizer, "step": torch.tensor(self.step)}, checkpoint_id=draft)
        if dist.get_rank() == 0:
            kept = draft.rename(folder / f"step-{self.step:08d}")
            if job:
                job.checkpoint_saved(kept, self.step)
        dist.barrier()

    def load(self, folder: Path) -> None:
        """The newest whole checkpoint that rank 0 sees, if there is one: a shared file system may show other nodes an
        older picture for a while."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        state: dict[str, Any] = {"model": model, "optimizer": optimizer, "step": torch.tensor(0)}
        newest = [max(folder.glob("step-*"), default=None)]
        dist.broadcast_object_list(newest)
        if newest[0]:
            dcp.load(state, checkpoint_id=newest[0])
            set_state_dict(
                self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
            )
            self.step = int(state["step"])


def rows_of(step: int, count: int, seed: int) -> torch.Tensor:
    """This rank's rows of the step's batch: a pure function of seed, step and rank."""
    per_epoch = count // BATCH
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed + step // per_epoch))
    batch = order[(step % per_epoch) * BATCH :][:BATCH]
    return batch.chunk(dist.get_world_size())[dist.get_rank()]


def tell(folder: Path, what: str, **facts: object) -> None:
    """One JSON line in `progress.jsonl`, by rank 0."""
    if dist.get_rank() == 0:
        line = json.dumps({"at": time.time(), "what": what, **facts}) + "\n"
        with (folder / "progress.jsonl").open("a") as out:
            out.write(line)


def own_device() -> torch.device:
    """This rank's GPU, or the processor on a node without one."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def train(asked: argparse.Namespace, device: torch.device) -> None:
    pictures, labels = (torch.tensor(each, device=device) for each in load_digits(return_X_y=True))
    pictures = (pictures / 16.0).float()
    training = Training(asked.seed, device)
    if dist.get_rank() == 0:
        for torn in asked.folder.glob(".step-*"):
            shutil.rmtree(torn)
    dist.barrier()
    training.load(asked.folder)
    attempt = os.environ.get("STEWARD_ATTEMPT", "1")
    tell(asked.folder, "begun", step=training.step, attempt=attempt, device=str(device))
    while training.step < asked.steps:
        rows = rows_of(training.step, len(labels), asked.seed)
        loss = training.advance(pictures[rows], labels[rows])
        tell(asked.folder, "step", step=training.step, loss=round(loss, 6))
        if job:
            job.progress(training.step)
        if training.step % asked.keep_every == 0:
            training.save(asked.folder)
        time.sleep(asked.step_s)
    weights = torch.cat([each.detach().flatten() for each in training.model.parameters()])
    right = (training.model(pictures).argmax(dim=1) == labels).float().mean()
    digest = hashlib.sha256(weights.cpu().numpy().tobytes()).hexdigest()
    tell(asked.folder, "done", step=training.step, weights=digest, accuracy=round(float(right), 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for checkpoints and progress, on a shared file system")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--keep-every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--step-s", type=float, default=0.0, help="pause after each step, seconds")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    device = own_device()
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")
    train(asked, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
