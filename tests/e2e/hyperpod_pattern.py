"""A training loop as HyperPod's documentation shows it, but for the import: poll, save, return, end with status 0."""

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist

from steward.job.elastic import elastic_event_detected, generation


def train_loop(folder: Path, first: int, last: int) -> None:
    for step in range(first, last):
        total = torch.ones(1)
        dist.all_reduce(total)
        time.sleep(0.05)
        tell(folder, "step", step=step + 1)
        if elastic_event_detected():
            save(folder, step + 1)
            return
    save(folder, last)


def save(folder: Path, step: int) -> None:
    if dist.get_rank() == 0:
        (folder / ".draft").write_text(str(step))
        (folder / ".draft").rename(folder / "step")
    dist.barrier()


def tell(folder: Path, what: str, **facts: object) -> None:
    """For the tests: one JSON line in `progress.jsonl`, of the first rank."""
    if (rank := dist.get_rank()) == 0:
        line = {"at": time.time(), "what": what, "generation": generation(), "rank": rank, **facts}
        with (folder / "progress.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    asked = parser.parse_args()
    dist.init_process_group("gloo")
    first = int((asked.folder / "step").read_text()) if (asked.folder / "step").exists() else 0
    tell(asked.folder, "begun", step=first, world=dist.get_world_size())
    train_loop(asked.folder, first, asked.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
