"""A training loop as HyperPod's documentation shows it, but for the import: poll, save, return, end with status 0."""

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from steward.job.elastic import elastic_event_detected


def train_loop(folder: Path, first: int, last: int) -> None:
    for step in range(first, last):
        total = torch.ones(1)
        dist.all_reduce(total)
        time.sleep(0.05)
        if elastic_event_detected():
            save(folder, step + 1)
            return
    save(folder, last)


def save(folder: Path, step: int) -> None:
    if dist.get_rank() == 0:
        (folder / ".draft").write_text(str(step))
        (folder / ".draft").rename(folder / "step")
    dist.barrier()


def main() -> None:
    folder, last = Path(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo")
    first = int((folder / "step").read_text()) if (folder / "step").exists() else 0
    if dist.get_rank() == 0:
        with (folder / "progress.jsonl").open("a") as out:
            out.write(json.dumps({"what": "begun", "step": first, "world": dist.get_world_size()}) + "\n")
    train_loop(folder, first, last)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
