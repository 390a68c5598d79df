"""A rank of a parallel program that PMIx launches (`srun --mpi=pmix`), as an MPI library speaks it.

Each tells the others where it is and learns where they are; `pmix_rank.py DIR` writes that down, and ends when DIR has
the file `go`. It runs with the system's Python, which has the binding (Debian's python3-pmix).
"""

import os
import sys
import time
from pathlib import Path

import pmix  # type: ignore[import-not-found]


def main(folder: Path) -> None:
    client = pmix.PMIxClient()
    done, me = client.init([])
    if done != pmix.PMIX_SUCCESS:
        sys.exit(f"PMIx: no server ({done})")
    client.put(pmix.PMIX_GLOBAL, "node", {"value": os.environ["SLURMD_NODENAME"], "val_type": pmix.PMIX_STRING})
    client.commit()
    everybody = {"nspace": me["nspace"], "rank": pmix.PMIX_RANK_WILDCARD}
    client.fence([everybody], [{"key": pmix.PMIX_COLLECT_DATA, "value": True, "val_type": pmix.PMIX_BOOL}])
    ranks = range(int(os.environ["SLURM_STEP_NUM_TASKS"]))
    all_nodes = [client.get({"nspace": me["nspace"], "rank": rank}, "node", [])[1]["value"] for rank in ranks]
    restart = os.environ.get("SLURM_RESTART_COUNT", "0")
    with (folder / "started").open("a") as started:
        started.write(f"restart={restart} rank={me['rank']} {','.join(all_nodes)}\n")
    while not (folder / "go").exists():
        time.sleep(0.05)
    client.finalize([])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
