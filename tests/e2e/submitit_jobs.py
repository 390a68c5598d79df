"""A user's program that submits an array with submitit: `submit DIR` prints the array's ids, `results DIR ID...` what
each task returned. A task counts until the file `go` is there; its checkpoint is itself."""

import os
import sys
import time
from pathlib import Path

import submitit

TASKS = ("a", "b", "c")


class Count:
    """What it has counted goes with it when submitit has it requeued."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self, who: str, folder: str) -> str:
        begun = f"{who} {os.environ['SLURMD_NODENAME']} {os.environ.get('SLURM_RESTART_COUNT', '0')} {self.at > 0}"
        with Path(folder, "started").open("a") as started:
            started.write(f"{begun}\n")
        while not Path(folder, "go").exists():
            self.at += 1
            time.sleep(0.05)
        return f"{who} is done"

    def checkpoint(self, who: str, folder: str) -> submitit.helpers.DelayedSubmission:
        return submitit.helpers.DelayedSubmission(self, who, folder)


def main(what: str, folder: str, *ids: str) -> None:
    logs = Path(folder, "logs")
    if what == "results":
        print(*(submitit.SlurmJob(logs, id, [0]).result() for id in ids), sep="\n")
        return
    executor = submitit.SlurmExecutor(folder=logs)
    wishes = {"auto_resume": "1", "gres": "gpu:8"}
    executor.update_parameters(time=5, nodes=1, ntasks_per_node=1, mem="100M", additional_parameters=wishes)
    jobs = executor.map_array(Count(), TASKS, [folder] * len(TASKS))
    print(*(job.job_id for job in jobs), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
