"""The stacks of a job's processes, as the kernel shows them: without a debugger, and without waiting for the processes.

Nothing of their memory is asked, as `cmdline` and `environ` would: a process that hangs can hold up who asks.
"""

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from steward.adapters import proc
from steward.model.text import printable

_PROC = Path("/proc")
_MAX_FILE = 8192
_MAX_THREADS = 64
_STATUS = ("State", "PPid", "Uid", "Threads", "VmRSS")
_PASS_ON = frozenset(
    {"srun", "slurmstepd", "mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "mpiexec.hydra"}
)
"""They pass signals on to tasks, of which some may not expect it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How many processes got the signal, of how many."""

    told: int
    of: int


def describe(pids: Iterable[int]) -> str:
    """Name, state, threads and place in the kernel of each; those that are gone are left out."""
    return "\n".join(text for pid in pids if (text := _process(_PROC / str(pid))))


def signal_those_who_expect_it(pids: Iterable[int], uid: int, word: str) -> Asked:
    """Send SIG`word` to the processes of `uid` that have a handler for it: to no other, it would end them."""
    number, wanted = signal.Signals[f"SIG{word}"], list(pids)
    seen = [seen for pid in wanted if (seen := proc.look(pid)) is not None and _expects(pid, uid, number)]
    return Asked(told=sum(proc.send(one.process, number) for one in seen), of=len(wanted))


def _expects(pid: int, uid: int, number: signal.Signals) -> bool:
    status = _read(_PROC / str(pid) / "status")
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    owner = re.search(r"^Uid:\s*(\d+)", status, re.MULTILINE)
    name = _read(_PROC / str(pid) / "comm").strip()
    if caught is None or owner is None or int(owner[1]) != uid or name in _PASS_ON:
        return False
    return bool(int(caught[1], 16) >> (number - 1) & 1)


def _process(place: Path) -> str:
    status = dict(line.partition(":")[::2] for line in _read(place / "status").splitlines())
    if not status:
        return ""
    facts = " ".join(f"{key}={printable(' '.join(status[key].split()), 40)}" for key in _STATUS if key in status)
    lines = [f"process {place.name} {printable(_read(place / 'comm').strip(), 32)} {facts}"]
    lines += [_thread(one) for one in islice(sorted(_threads(place)), _MAX_THREADS)]
    return "\n".join(lines)


def _threads(place: Path) -> list[Path]:
    try:
        return list((place / "task").iterdir())
    except OSError:
        return []


def _thread(place: Path) -> str:
    """The kernel's stack is for root only; `wchan` is the function in which it waits."""
    state = _read(place / "stat").rpartition(")")[2].split()[:1] or ["?"]
    waits = _read(place / "wchan").strip() or "-"
    frames = [printable(line.split("] ", 1)[-1], 80) for line in _read(place / "stack").splitlines()[:16]]
    stack = f" stack: {' < '.join(frames)}" if frames else ""
    name = printable(_read(place / "comm").strip(), 32)
    return f"  thread {place.name} {name} {printable(state[0], 4)} waits in {printable(waits, 64)}{stack}"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE).decode("utf-8", "replace")
    except OSError:
        return ""
