"""Single nodes and jobs, read through a process that is linked with Slurm's library (`single_child.py`).

Only what is beyond doubt is told: no answer, a late one, one of another form or of another Slurm's library is None, and
then the commands are asked as ever. A process that failed is ended, and not asked again for a while.
"""

import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.slurm.helper import Helper
from steward.adapters.slurm.versions import Version
from steward.model.ids import JobId, NodeName

JOBS = "#"
"""Before numbers of jobs, in the words of `single_child.py`."""
MOST = 32
"""For more nodes, or jobs, the commands, which have all of them sent, are as quick."""
_PATIENCE_S = 2.0
_MAX_BYTES = 1 << 20
_PLACES = ("lib/slurm", "lib/*/slurm-wlm", "lib/*/slurm", "lib64/slurm")
_LIBRARY = "libslurmfull.so"
_HEAD = re.compile(rb"ok (\d{1,9}) (\d{1,7})\n")
_SIZE = re.compile(rb"(\d{1,7})\n")
_BY_ITSELF = re.compile(rb" (?:RunTime|LastSchedEval)=\S*")
"""The fields of a job's text that change by themselves."""
_EXCLUDED = re.compile(rb" ExcNodeList=(\S*)\s+NodeList=")
_ONCE = (b" JobState=", b" NodeList=")
"""The library prints them for each job: where there is one of each, no user wrote it."""
_NODE = re.compile(r"Node data as of \d+, record count 1\n+(NodeName=(\S+) [^\n]*)\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """`lines` are as scontrol prints them, but without partitions. Two answers with one `parts` are of the same
    partitions with the same nodes; of what another process told nothing is the same."""

    lines: Mapping[NodeName, str]
    parts: object


@dataclass(frozen=True, slots=True)
class _Answer:
    """`who` is another one for each process."""

    who: object
    serial: int
    body: bytes


class Single:
    """Safe to call from several threads; the process ends with ours, or with `close`."""

    def __init__(
        self,
        *,
        conf: str = "",
        argv: Sequence[str] = (),
        patience_s: float = _PATIENCE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`argv` is another program than ours that is asked; `monotonic` tells when a failed one may be asked again."""
        env = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC", **({"SLURM_CONF": conf} if conf else {})}
        self._helper = Helper(lambda: argv or _argv(), env, patience_s=patience_s, most=_MAX_BYTES, monotonic=monotonic)

    def nodes(self, names: Sequence[NodeName], version: Version) -> Told | None:
        """Just these, each of them; without names only `parts` is told. None: ask the commands."""
        answer = self._answer(" ".join(names), version)
        return None if answer is None or not answer.serial else _told(answer, names)

    def jobs(self, ids: Sequence[JobId], version: Version) -> Mapping[JobId, bytes]:
        """Slurm's text on each job, which may hold anything that its user wrote: two equal texts mean the same job in
        the same state, and only `excluded` may be read out of them. Jobs that are not sure are left out."""
        answer = self._answer(" ".join([JOBS, *map(str, ids)]), version) if ids else None
        return {} if answer is None else _texts(answer.body, ids)

    def _answer(self, question: str, version: Version) -> _Answer | None:
        return self._helper.ask(lambda: question.encode() + b"\n", _is_whole, self._read, version.text)

    def _read(self, got: bytes) -> _Answer | None:
        head = _HEAD.match(got)
        return _Answer(self._helper.who, int(head[1]), got[head.end() :]) if head and _is_whole(got) else None

    def close(self) -> None:
        self._helper.close()


def _is_whole(got: bytes) -> bool:
    """Whether nothing more is to come, also of what is no answer."""
    head = _HEAD.match(got)
    return len(got) == head.end() + int(head[2]) if head else b"\n" in got


def excluded(text: bytes) -> str | None:
    """Which nodes a job excludes, in Slurm's words, from what `jobs` tells of it; None: not sure, or it is a task of an
    array."""
    found = _EXCLUDED.findall(text)
    is_sure = len(found) == text.count(b" ExcNodeList=") == 1 and b" ArrayJobId=" not in text
    return found[0].decode("ascii", "replace") if is_sure else None


def _told(answer: _Answer, names: Sequence[NodeName]) -> Told | None:
    text, lines = answer.body.decode("utf-8", "replace"), {}
    for name in names:
        found = _NODE.match(text)
        if found is None or found[2] != name:
            return None
        text, lines[name] = text[found.end() :], found[1]
    return None if text else Told(lines=lines, parts=(answer.who, answer.serial))


def _texts(body: bytes, ids: Sequence[JobId]) -> dict[JobId, bytes]:
    """Empty for an answer of another form."""
    found = {}
    for id in ids:
        size = _SIZE.match(body)
        if size is None or len(body) < (end := size.end() + int(size[1])):
            return {}
        text, body = body[size.end() : end], body[end:]
        if all(text.count(word) == 1 for word in _ONCE):
            found[id] = _BY_ITSELF.sub(b"", text)
    return {} if body else found


def _argv() -> tuple[str, ...]:
    """With the library that belongs to the scontrol which is run; empty where that is not clear."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return ()
    prefix = Path(scontrol).resolve().parent.parent
    found = {path.resolve() for place in _PLACES for path in prefix.glob(f"{place}/{_LIBRARY}")}
    child = Path(__file__).with_name("single_child.py")
    return (sys.executable, "-I", "-S", str(child), str(found.pop())) if len(found) == 1 else ()
