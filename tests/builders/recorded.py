"""What probes brought back, as text that a person can read and write.

A line `=== WORD ...` begins a part: `file PATH` (its text follows), `absent PATH`, `program STATUS` (its output
follows; status `none` where it is not installed), `processes` (a line each: pid, parent, uid, state, ticks, age in s,
name), `mount PATH WHAT`, `disk PATH PERCENT`, `clock yes|no`, and `next` for what the check's next probe brought.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from steward.model.probe import Disk, Process, Raw

NOW = 1_800_000_000.0
_MARK = "=== "


def recorded(path: Path) -> tuple[Raw, ...]:
    """One Raw for each probe. Raises ValueError on a word that there is none of."""
    raws = [Raw()]
    for head, body in _parts(path.read_text()):
        word, _, rest = head.partition(" ")
        if word == "next":
            raws.append(Raw())
        else:
            raws[-1] = _READ[word](raws[-1], rest, body)
    return tuple(raws)


def a_process(
    pid: int, name: str, *, parent: int = 1, uid: int = 0, state: str = "S", ticks: int = 5, age_s: float = 9999.0
) -> Process:
    return Process(pid=pid, parent=parent, uid=uid, state=state, name=name, started=NOW - age_s, ticks=ticks)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    for part in ("\n" + text).split("\n" + _MARK)[1:]:
        head, _, body = part.partition("\n")
        yield head, body if body.endswith("\n") or not body else body + "\n"


def _file(raw: Raw, path: str, body: str) -> Raw:
    return replace(raw, files={**raw.files, path: body})


def _absent(raw: Raw, path: str, body: str) -> Raw:
    return replace(raw, files={**raw.files, path: None})


def _program(raw: Raw, status: str, body: str) -> Raw:
    return replace(raw, returncode=None if status == "none" else int(status), output=body)


def _processes(raw: Raw, rest: str, body: str) -> Raw:
    rows = (line.split(None, 6) for line in body.splitlines())
    return replace(raw, processes=tuple(_process(*row) for row in rows))


def _process(pid: str, parent: str, uid: str, state: str, ticks: str, age_s: str, name: str) -> Process:
    return a_process(
        int(pid), name, parent=int(parent), uid=int(uid), state=state, ticks=int(ticks), age_s=float(age_s)
    )


def _mount(raw: Raw, rest: str, body: str) -> Raw:
    path, _, what = rest.partition(" ")
    return replace(raw, mounts={**raw.mounts, path: what})


def _disk(raw: Raw, rest: str, body: str) -> Raw:
    path, percent, *flags = rest.split()
    disk = Disk(total=1000, free=1000 - 10 * int(percent), inodes=1000, inodes_free=999, read_only="ro" in flags)
    return replace(raw, disks={**raw.disks, path: disk})


def _clock(raw: Raw, word: str, body: str) -> Raw:
    return replace(raw, synchronised=word == "yes")


_READ: dict[str, Callable[[Raw, str, str], Raw]] = {
    "file": _file,
    "absent": _absent,
    "program": _program,
    "processes": _processes,
    "mount": _mount,
    "disk": _disk,
    "clock": _clock,
}
