"""PyTorch training whose number of nodes may change at any step: DDP, or FSDP with `--fsdp`; checkpoints by DCP.

The global batch is fixed and each step takes the same samples at any size. When Steward asks, all ranks save and wait;
torchrun starts them again at the new size. Without Steward it is a plain training that goes on from its checkpoint.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from steward import job
from steward.job import elastic

LENGTH, WIDTH = 4096, 16


class Training:
    """Model, optimizer and how far it is: what a checkpoint holds."""

    def __init__(self, asked: argparse.Namespace) -> None:
        torch.manual_seed(asked.seed)
        layers = (torch.nn.Linear(WIDTH, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
        plain = torch.nn.Sequential(*layers).double()
        self.model: torch.nn.Module = fully_shard(plain) if asked.fsdp else DistributedDataParallel(plain)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.plan = elastic.batch_plan(
            asked.batch, world=dist.get_world_size(), rank=dist.get_rank(), micro=asked.micro
        )
        self.sampler = elastic.ElasticSampler(LENGTH, self.plan, seed=asked.seed)
        self.step = 0

    def advance(self) -> float:
        """One step on this rank's share; uneven shares get the right weight by the plan's loss scale."""
        self.optimizer.zero_grad()
        total = torch.zeros((), dtype=torch.float64)
        for indexes in self.sampler.micro_batches():
            rows, wanted = samples(indexes)
            loss = (self.model(rows) - wanted).square().sum()
            (loss * self.plan.loss_scale).backward()
            total += loss.detach()
        self.optimizer.step()
        dist.all_reduce(total)
        self.step += 1
        self.sampler.consumed_samples += self.plan.global_batch
        return float(total) / self.plan.global_batch

    def save(self, folder: Path) -> None:
        """All ranks write their part; the checkpoint gets its name when it is whole."""
        kept = folder / f"step-{self.step:08d}"
        if not of_first(kept.exists()):
            draft = folder / f".step-{self.step:08d}-{elastic.generation()}"
            dcp.save(self.state(), checkpoint_id=draft)
            if dist.get_rank() == 0:
                job.checkpoint_saved(draft.rename(kept), self.step)
        dist.barrier()

    def load(self, folder: Path) -> None:
        """The newest whole checkpoint, if there is one, whatever the number of ranks that wrote it."""
        if whole := of_first(max(folder.glob("step-*"), default=None)):
            state = self.state()
            dcp.load(state, checkpoint_id=whole)
            set_state_dict(
                self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
            )
            self.step, self.sampler.consumed_samples = (int(number) for number in state["progress"])

    def state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        progress = torch.tensor([self.step, self.sampler.consumed_samples])
        return {"model": model, "optimizer": optimizer, "progress": progress}


def of_first(seen: Any) -> Any:
    """What rank 0 saw, on all ranks: a shared file system may show other nodes an older picture for a while."""
    told = [seen]
    dist.broadcast_object_list(told)
    return told[0]


def samples(indexes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Made-up data, the same for the same index."""
    grid = torch.arange(1, WIDTH + 1, dtype=torch.float64)
    rows = torch.sin(torch.tensor(indexes, dtype=torch.float64).reshape(-1, 1) * grid * 0.37)
    return rows, rows[:, :1] * rows[:, 1:2] + rows[:, 2:3]


def tell(folder: Path, what: str, **facts: object) -> None:
    """One JSON line in `progress.jsonl`."""
    line = json.dumps({"at": time.time(), "what": what, "generation": elastic.generation(), **facts}) + "\n"
    with (folder / "progress.jsonl").open("a") as out:
        out.write(line)


def train(asked: argparse.Namespace) -> None:
    training, is_first = Training(asked), dist.get_rank() == 0
    if is_first:
        for torn in asked.folder.glob(".step-*"):
            shutil.rmtree(torn)
    dist.barrier()
    training.load(asked.folder)
    if is_first:
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT")
        tell(asked.folder, "begun", step=training.step, world=dist.get_world_size(), restarts=restarts)
    while training.step < asked.steps:
        taken = training.sampler.indexes()
        loss = training.advance()
        tell(asked.folder, "step", step=training.step, rank=dist.get_rank(), loss=loss, samples=taken)
        job.progress(training.step)
        time.sleep(asked.step_s)
        consumed = training.sampler.consumed_samples
        if elastic.resize_wanted(training.step, consumed):
            elastic.save_and_wait(lambda: training.save(asked.folder), training.step, consumed)
        if training.step % asked.keep_every == 0:
            training.save(asked.folder)
    training.save(asked.folder)
    if is_first:
        tell(asked.folder, "done", step=training.step, world=dist.get_world_size())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for checkpoints and progress, on a shared file system")
    parser.add_argument("--fsdp", action="store_true", help="shard the model over all ranks, instead of DDP")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=48, help="samples of one step over all ranks")
    parser.add_argument("--micro", type=int, default=12, help="samples that one rank takes at once")
    parser.add_argument("--keep-every", type=int, default=25, help="steps between checkpoints")
    parser.add_argument("--step-s", type=float, default=0.0, help="pause after each step, seconds")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        train(asked)
    except RuntimeError as error:
        if "by peer" not in str(error):
            raise
        sys.exit(
            f"rank {dist.get_rank()} ends: another one is gone ({error})"
        )  # its node died, or the job is cancelled
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
