"""Read Slurm through `steward-slurm`, a program of ours that is linked with Slurm's library (reader/README.md).

Its answer is believed only if all of it is as declared. Without the program, or without a valid answer in time, the
result is None, and the caller asks Slurm's commands. Whole looks have their own process, so that no small look waits
for them.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from steward.adapters.process import show
from steward.adapters.slurm import record_form
from steward.adapters.slurm.helper import Helper
from steward.adapters.slurm.record_form import GRES, JOB, NODE, PARTITION, Garbled, RecordForm, RecordLines
from steward.model.ids import JobId, NodeName

MOST = 32
"""The most nodes or jobs of a small look: for more, a whole look is as quick."""
NOTHING = "-"
_FEW_S, _ALL_S = 1.0, 3.0
_PROGRAM = "steward-slurm"
_PLACES = (Path(__file__).parents[4] / "reader/build", Path("/usr/lib/steward"))
_ENV = {"SLURM_BITSTR_LEN": "0"}
"""Without this the library shortens the list of an array's tasks."""
NOT_BUILT = "steward-slurm is not built for this Slurm (make shim)"


class Library:
    """The reads of steward-slurm. Safe to call from several threads; the processes end with ours, or with `close`."""

    def __init__(
        self,
        *,
        conf: str = "",
        argv: Sequence[str] = (),
        few_s: float = _FEW_S,
        all_s: float = _ALL_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`argv` is another program than ours; `few_s` and `all_s` are the time limits of small and whole looks."""
        self._argv = argv
        env = {**_ENV, **({"SLURM_CONF": conf} if conf else {})}
        self._few, self._all = (
            Helper(lambda: argv or program(), env, patience_s=patience_s, most=record_form.LONGEST, monotonic=monotonic)
            for patience_s in (few_s, all_s)
        )

    def problem(self) -> str:
        """Return why Slurm's commands are asked instead; empty if steward-slurm had no trouble."""
        if not self._argv and not program():
            return NOT_BUILT
        return next((f"steward-slurm failed: {each.trouble}" for each in (self._few, self._all) if each.trouble), "")

    def nodes(self, stamp: str = NOTHING) -> RecordLines | None:
        """Read all nodes; without lines if none changed since the answer with this stamp."""
        return self._ask(self._all, "nodes", NODE, stamp)

    def node(self, names: Collection[NodeName]) -> RecordLines | None:
        """Read exactly these nodes, without those that Slurm does not have."""
        return self._ask(self._few, "node", NODE, *names)

    def jobs(self, stamp: str = NOTHING) -> RecordLines | None:
        """Read all jobs; without lines if none changed since the answer with this stamp."""
        return self._ask(self._all, "jobs", JOB, stamp)

    def job(self, ids: Collection[JobId]) -> RecordLines | None:
        """Read exactly these jobs, without those that Slurm does not hold."""
        return self._ask(self._few, "job", JOB, *map(str, ids))

    def parts(self, leader: JobId) -> RecordLines | None:
        """Read all parts of a heterogeneous job."""
        return self._ask(self._few, "parts", JOB, str(leader))

    def on(self, names: Collection[NodeName]) -> RecordLines | None:
        """Read the jobs that have one of these nodes and are not over."""
        return self._ask(self._few, "on", JOB, *names)

    def partitions(self) -> RecordLines | None:
        """Read all partitions."""
        return self._ask(self._few, "partitions", PARTITION)

    def gres(self) -> RecordLines | None:
        """Read the GRES in use on each node that has GRES."""
        return self._ask(self._all, "gres", GRES)

    def close(self) -> None:
        """End both processes."""
        for each in (self._few, self._all):
            each.close()

    def _ask(self, helper: Helper, kind: str, form: RecordForm, *words: str) -> RecordLines | None:
        """Ask one of the processes; None without a good answer."""

        def read(got: bytes) -> RecordLines:
            try:
                found = record_form.split_answer(got, kind, form)
            except Garbled as error:
                raise OSError(str(error)) from error
            if found is None:
                raise OSError(f"slurmctld did not tell {kind}: '{show(got[:80].decode('ascii', 'replace'))}'")
            return found

        return helper.ask(f"{' '.join((kind, *words))}\n".encode(), record_form.is_whole, read)


def program() -> tuple[str, ...]:
    """Return the program's path as argv; empty if it was not built. The loader refuses one built for another Slurm."""
    found = shutil.which(_PROGRAM, path=os.pathsep.join(map(str, _PLACES)))
    return (found,) if found else ()
