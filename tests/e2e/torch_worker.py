"""A worker that torchrun starts: it meets the others, writes that down, and works with them until its folder has the
file `go`."""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed


def main(folder: Path) -> None:
    torch.distributed.init_process_group("gloo")
    restart = os.environ.get("SLURM_RESTART_COUNT", "0")
    with (folder / "started").open("a") as started:
        started.write(f"{os.environ['SLURMD_NODENAME']} restart={restart} of={torch.distributed.get_world_size()}\n")
    done = torch.zeros(1)
    while not done.item():
        if (folder / "go").exists():
            done[0] = 1
        torch.distributed.all_reduce(done, op=torch.distributed.ReduceOp.MAX)
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
