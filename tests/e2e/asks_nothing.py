"""A training that knows nothing of Steward: it counts steps, keeps every tenth and begins from what it kept. With a
second word its ranks meet at each step, over gloo."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

KEEP_EVERY = 10
STEP_S = 0.1


def main(folder: Path, *, meets: bool) -> None:
    rank = int(os.environ.get("RANK") or os.environ["SLURM_PROCID"])
    world = int(os.environ.get("WORLD_SIZE") or os.environ["SLURM_NTASKS"])
    generation = int(os.environ.get("STEWARD_ELASTIC_GENERATION", "1"))
    kept = folder / "step"
    step = int(kept.read_text()) if kept.exists() else 0

    def tell(what: str, **facts: object) -> None:
        line = {"at": time.time(), "what": what, "step": step, "generation": generation, "rank": rank, **facts}
        with (folder / "progress.jsonl").open("a") as out:
            out.write(json.dumps(line) + "\n")

    meet = met(world) if meets else lambda: None
    if rank == 0:
        tell("begun", world=world)
    while True:
        time.sleep(STEP_S)
        meet()
        step += 1
        if rank == 0:
            tell("step")
            if step % KEEP_EVERY == 0:
                (folder / ".draft").write_text(str(step))
                (folder / ".draft").rename(kept)


def met(world: int) -> Callable[[], None]:
    """Returns when all ranks are there."""
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    dist.init_process_group("gloo")

    def meet() -> None:
        there = torch.ones(1)
        dist.all_reduce(there)
        assert there.item() == world

    return meet


if __name__ == "__main__":
    main(Path(sys.argv[1]), meets=len(sys.argv) > 2)
