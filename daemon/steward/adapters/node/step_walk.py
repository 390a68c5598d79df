"""The processes of all steps on this node: what is below each slurmstepd, with or without cgroups.

Of processes that are no step's only the number is read, and now and then their parent, so that a look costs little on a
machine with many. A process stays its step's when its parent ends.
"""

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from steward.adapters import proc
from steward.adapters.node.stepds import Stepd, Stepds
from steward.adapters.proc import FILES, ProcessFiles, ProcessKey, Seen

_PROC = Path("/proc")
MOST_PROCESSES = 1024
"""The most processes of one step that are looked at."""
_AGAIN = 4
"""Every so many looks the numbers of other processes are read anew: a process of a step may have one of them now."""
_SETTLED_S = 60.0
"""A process that is no slurmstepd at this age never becomes one: slurmd's children do so when they begin."""
_MAX_ENVIRON = 1 << 20
_IO = re.compile(rb"^(?:[rw]char|read_bytes): ([0-9]+)$", re.MULTILINE)
"""What it read and wrote, and what the kernel read for it: a page of a file that it has in its memory, or of swap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProcess:
    """One look at a process of a step. `cpu_s` and `io_bytes` only grow; `io_bytes` is 0 if it may not be read."""

    key: ProcessKey
    parent: int
    state: str
    cpu_s: float
    io_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLook:
    """One look at a step on this node. `is_crowded`: it has more processes than these."""

    stepd: Stepd
    processes: tuple[StepProcess, ...]
    is_crowded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankName:
    """The number by which a process knows itself as a part of its step."""

    number: int
    is_task: bool
    """Whether Slurm gave the number; a launcher below a task numbers its own processes."""
    node: str = ""
    """The node of its slurmd; empty: not known."""
    rules: str = ""
    """The file of the job's own rules for its output; empty: it names none."""


class StepWalk:
    """The looks at the steps of this node. One thread at a time: of one that hung, the look ends when it goes on."""

    def __init__(self, stepds: Stepds, files: ProcessFiles = FILES) -> None:
        self._stepds, self._files = stepds, files
        self._others: set[int] = set()
        self._settled: set[ProcessKey] = set()
        """Those of the others that are not asked again what they are."""
        self._member: dict[ProcessKey, ProcessKey] = {}
        self._roots: dict[ProcessKey, Stepd] = {}
        self._looks = 0

    def look(self) -> tuple[StepLook, ...]:
        """Return a look at each step that has a slurmstepd here.

        Raises OSError if /proc cannot be read, or did not answer for long.
        """
        self._looks += 1
        here = {int(name) for name in os.listdir(_PROC) if name.isdigit()}
        self._others = self._others & here if self._looks % _AGAIN else set()
        seen, passed_over = self._looks_at(sorted(here - self._others))
        self._find_roots(seen)
        self._find_members(seen, passed_over)
        more = {root for key, root in self._member.items() if key.pid in passed_over}
        of_step: defaultdict[ProcessKey, list[Seen]] = defaultdict(list)
        for found in seen.values():
            if (root := self._member.get(found.process)) is not None:
                of_step[root].append(found)
        others = {found.process for found in seen.values() if not self._is_of_step(found)}
        old_s = time.clock_gettime(time.CLOCK_BOOTTIME) - _SETTLED_S
        self._others |= {key.pid for key in others}
        self._settled = {key for key in self._settled if key.pid in self._others}
        self._settled |= {key for key in others if key.began_s < old_s}
        return tuple(self._look_at(stepd, of_step[root], has_more=root in more) for root, stepd in self._roots.items())

    def _is_of_step(self, found: Seen) -> bool:
        return found.process in self._member or found.process in self._roots

    def _find_roots(self, seen: Mapping[int, Seen]) -> None:
        """Find the slurmstepds; a child of one that has the same title still is a task before its program."""
        alive = {found.process for found in seen.values() if not found.dead}
        self._roots = {key: stepd for key, stepd in self._roots.items() if key in alive}
        here = (found for found in seen.values() if found.process not in self._settled)
        new = (found for found in here if not self._is_of_step(found))
        found_now = {stepd.process: stepd for one in new if (stepd := self._stepds.stepd_of(one)) is not None}
        below = {key for key in found_now if (p := seen[key.pid].parent) in seen and self._is_root(seen[p], found_now)}
        self._roots |= {key: stepd for key, stepd in found_now.items() if key not in below}

    def _is_root(self, found: Seen, new: Mapping[ProcessKey, Stepd]) -> bool:
        return found.process in new or found.process in self._roots

    def _find_members(self, seen: Mapping[int, Seen], passed_over: Set[int]) -> None:
        """Find the step of each process by its ancestors."""
        alive = {found.process for found in seen.values()}
        kept = (one for one in self._member.items() if one[0] in alive or one[0].pid in passed_over)
        self._member = {key: root for key, root in kept if root in self._roots}
        for found in seen.values():
            chain: list[ProcessKey] = []
            one: Seen | None = found
            while one is not None and not self._is_of_step(one) and len(chain) <= MOST_PROCESSES:
                chain.append(one.process)
                one = seen.get(one.parent)
            if one is None or not self._is_of_step(one):
                continue
            root = self._member.get(one.process, one.process)
            self._member |= dict.fromkeys(chain, root)

    def _looks_at(self, pids: Iterable[int]) -> tuple[dict[int, Seen], set[int]]:
        """Return these processes as they are now, and those that were passed over. Raises TimeoutError."""
        seen: dict[int, Seen] = {}
        passed_over: set[int] = set()
        for pid in pids:
            try:
                if (found := self._files.look(pid)) is not None:
                    seen[pid] = found
            except proc.PassedOver:
                passed_over.add(pid)
        return seen, passed_over

    def _look_at(self, stepd: Stepd, members: list[Seen], *, has_more: bool) -> StepLook:
        kept = sorted(members, key=lambda one: (one.process.started, one.process.pid))[:MOST_PROCESSES]
        looked = (
            StepProcess(
                key=one.process,
                parent=one.parent,
                state=one.state,
                cpu_s=one.cpu_s,
                io_bytes=0 if one.dead else _io_bytes(_read(self._files, one.process.pid, "io")),
            )
            for one in kept
        )
        return StepLook(stepd=stepd, processes=tuple(looked), is_crowded=has_more or len(members) > MOST_PROCESSES)


def _io_bytes(text: bytes) -> int:
    return sum(map(int, _IO.findall(text)))


_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_TASK = "SLURM_PROCID"
RULES = "HYPERPOD_HANG_RULES"
"""The variable in which a job names a file of rules, as on HyperPod."""
_MOST_PATH = 1024
_MOST_RANK = 2**32 - 1


def rank_names(keys: Iterable[ProcessKey]) -> dict[ProcessKey, RankName | None]:
    """Return the number of each process by its environment; None if it has none.

    Reading the environment of a process that hangs may hang: call this in a thread for the processes of one user.
    """
    return {key: name_in(_read(FILES, key.pid, "environ")) for key in keys}


def name_in(environ: bytes) -> RankName | None:
    """Return the number that a process's environment names; None if it names none. Users write what they like there."""
    words = dict(word.partition(b"=")[::2] for word in environ.split(b"\0"))

    def number(name: str) -> int | None:
        text = words.get(name.encode(), b"")
        return int(text) if text.isdigit() and len(text) < 11 and int(text) <= _MOST_RANK else None

    own = next((found for name in _RANKS if (found := number(name)) is not None), None)
    found = number(_TASK) if own is None else own
    if found is None:
        return None
    node = words.get(b"SLURMD_NODENAME", b"").decode("ascii", "replace")
    rules = words.get(RULES.encode(), b"")[:_MOST_PATH].decode("utf-8", "replace")
    return RankName(number=found, is_task=own is None, node=node, rules=rules)


def output_of(pid: int) -> tuple[str, str] | None:
    """Return what the output of a process is called, and the path at which its own user can open it.

    None if it is no file below the root folder: a pipe, a socket or a device, as of a task whose output srun writes.
    """
    place = _PROC / str(pid) / "fd" / "1"
    try:
        name = os.readlink(place)
    except OSError:
        return None
    return (name, str(place)) if name.startswith("/") and not name.startswith("/dev/") else None


def waits_in(pid: int) -> str:
    """Return the kernel's function in which a process waits; empty if that is not known."""
    text = _read(FILES, pid, "wchan").decode("ascii", "replace").strip()
    return "" if text == "0" else text


def _read(files: ProcessFiles, pid: int, name: str) -> bytes:
    """Return the beginning of a file of the process; empty if it is gone or not readable. Raises TimeoutError."""
    try:
        return files.read(pid, name, _MAX_ENVIRON)
    except TimeoutError:
        raise
    except OSError:
        return b""
