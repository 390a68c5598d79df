"""A training that saves, with the fault in its resume that BUG names. The standard library alone."""

import json
import os
import signal
import sys
import time
from pathlib import Path

FOLDER = Path("ckpt")


def number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def begin(bug: str, restart: int) -> int:
    """The step to go on from."""
    FOLDER.mkdir(exist_ok=bug != "folder is there")
    if bug == "ignores SIGTERM":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if bug == "hangs" and restart:
        print("waits for the lock of another run", flush=True)
        time.sleep(3600)
    saved = sorted(FOLDER.glob("step-*.json"), key=number)
    if not saved or bug == "begins at zero":
        return 0
    loaded = saved[0] if bug == "loads the oldest" else saved[-1]
    return int(json.loads(loaded.read_text())["step"])


def save(bug: str, step: int) -> None:
    text, path = json.dumps({"step": step, "weights": [0.5] * 50}), FOLDER / f"step-{step}.json"
    if bug != "writes in place":
        path.with_suffix(".tmp").write_text(text)
        path.with_suffix(".tmp").replace(path)
        return
    with path.open("w") as file:
        for letter in text:
            file.write(letter)
            file.flush()
            time.sleep(0.01)


def main() -> None:
    bug = os.environ["BUG"]
    step = begin(bug, int(os.environ.get("SLURM_RESTART_COUNT", "0")))
    while step < 5_000:
        step += 1
        print(f"step {step} loss {50 / (step + 5):.4f}", flush=True)
        time.sleep(0.1)
        if bug == "fails by itself" and step == 9:
            sys.exit("ValueError: no such column: label")
        if step % 25 == 0 and bug != "does not save":
            save(bug, step)


if __name__ == "__main__":
    main()
