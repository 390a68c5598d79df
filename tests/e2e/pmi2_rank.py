"""A rank of a parallel program that PMI-2 launches (`srun --mpi=pmi2`), as an MPI library speaks it.

Each tells the others where it is and learns where they are; `pmi2_rank.py DIR` writes that down, and ends when DIR has
the file `go`.
"""

import os
import sys
import time
from pathlib import Path

PMI = int(os.environ["PMI_FD"])
WIDTH = 6
"""Of the number of bytes that follow."""


def ask(command: str, **fields: str) -> dict[str, str]:
    words = "".join(f"{key}={value};" for key, value in {"cmd": command, **fields}.items())
    os.write(PMI, f"{len(words):{WIDTH}}{words}".encode())
    told = read(int(read(WIDTH)))
    return dict(word.split("=", 1) for word in told.split(";") if "=" in word)


def read(size: int) -> str:
    got = b""
    while len(got) < size:
        if not (more := os.read(PMI, size - len(got))):
            sys.exit("PMI-2: no answer")
        got += more
    return got.decode()


def main(folder: Path) -> None:
    rank, size, job = os.environ["PMI_RANK"], int(os.environ["PMI_SIZE"]), os.environ["PMI_JOBID"]
    os.write(PMI, b"cmd=init pmi_version=2 pmi_subversion=0\n")
    while read(1) != "\n":
        pass
    ask("fullinit", pmijobid=job, pmirank=rank, threaded="FALSE")
    ask("kvs-put", key=f"node-{rank}", value=os.environ["SLURMD_NODENAME"])
    ask("kvs-fence")
    all_nodes = [ask("kvs-get", jobid=job, key=f"node-{other}")["value"] for other in range(size)]
    attempt = os.environ.get("STEWARD_ATTEMPT", "1")
    with (folder / "started").open("a") as started:
        started.write(f"attempt={attempt} rank={rank} {','.join(all_nodes)}\n")
    while not (folder / "go").exists():
        time.sleep(0.05)
    ask("finalize")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
