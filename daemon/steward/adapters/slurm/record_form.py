"""The records of steward-slurm (reader/README.md): the one declaration of their fields, and strict reading.

An answer is refused as a whole if one byte of it is not as declared: then the program is not ours, or was cut off.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_TEXT = r"([ -\[\]-~]*(?:\\[0-9a-f]{2}[ -\[\]-~]*)*)"
_NUMBER = r"(-?[0-9]{1,20})"
_MAYBE = r"(-?[0-9]{0,20})"
_YES = r"([01])"
_STATE = r"([A-Z][A-Z_]*(?:\+[A-Z][A-Z_0-9]*)*)"
_ESCAPED = re.compile(r"\\([0-9a-f]{2})")
_HEAD = re.compile(
    rb"([a-z]{1,16}) (-|[0-9]{1,12}(?:\.[0-9]{1,18})?) (?:(same)|([0-9]{1,9}) ([0-9]{1,10}) ([a-z_,]{1,2000}))\n"
)
_LONGEST_HEAD = 4096
LONGEST = 512 << 20
"""The longest answer in bytes. A record has some 400 bytes."""


class Garbled(ValueError):
    """An answer, or a record, that steward-slurm would not have written."""


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The fields of one kind of record in their order, with the pattern of each."""

    fields: Mapping[str, str]
    names: bytes = field(init=False)
    line: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", ",".join(self.fields).encode())
        object.__setattr__(self, "line", re.compile("\t".join(self.fields.values())))

    def read(self, line: str) -> dict[str, str]:
        """Return the texts of a record's fields, still escaped. Raises Garbled."""
        found = self.line.fullmatch(line)
        if found is None:
            raise Garbled(f"a record of another form: {line[:200]!r}")
        return dict(zip(self.fields, found.groups(), strict=True))


NODE = RecordForm({
    "name": _TEXT, "state": _STATE, "reason": _TEXT, "reason_user": _TEXT, "reason_at": _MAYBE, "partitions": _TEXT,
    "features": _TEXT, "active_features": _TEXT, "address": _TEXT, "hostname": _TEXT, "port": _MAYBE, "cpus": _MAYBE,
    "threads": _MAYBE, "memory_mb": _NUMBER, "gres": _TEXT, "boot_time": _MAYBE, "slurmd_started": _MAYBE,
})  # fmt: skip
JOB = RecordForm({
    "id": _NUMBER, "name": _TEXT, "state": _STATE, "user_id": _NUMBER, "reason": _TEXT, "described": _TEXT,
    "nodes": _TEXT, "batch_host": _TEXT, "is_batch": _YES, "restarts": _NUMBER, "requeue": _YES,
    "exit_status": _MAYBE, "excluded": _TEXT, "array_job_id": _MAYBE, "array_task": _MAYBE, "array_tasks": _TEXT,
    "het_job_id": _MAYBE, "partition": _TEXT, "account": _TEXT, "node_count": _MAYBE, "most_nodes": _MAYBE,
    "submitted": _MAYBE, "eligible": _MAYBE, "started": _MAYBE, "ended": _MAYBE, "preempted": _MAYBE,
    "admin_comment": _TEXT, "comment": _TEXT, "qos": _TEXT, "limit_minutes": _MAYBE, "reservation": _TEXT,
    "priority": _MAYBE, "nice": _NUMBER, "submit_host": _TEXT, "expedited": _YES, "requested": _TEXT,
    "allocated": _TEXT, "node_sizes": _TEXT, "tres_per_job": _TEXT, "tres_per_node": _TEXT, "tasks_per_node": _MAYBE,
    "tasks": _MAYBE, "required": _TEXT, "features": _TEXT, "exclusive": _YES,
    "memory_per_cpu": _YES, "planned": _TEXT,
})  # fmt: skip
PARTITION = RecordForm({
    "name": _TEXT, "state": _STATE, "nodes": _TEXT, "loaded": _NUMBER, "allow_qos": _TEXT, "deny_qos": _TEXT,
    "allow_accounts": _TEXT, "deny_accounts": _TEXT, "own_qos": _TEXT, "max_minutes": _MAYBE,
})  # fmt: skip
GRES = RecordForm({
    "name": _TEXT, "used": _TEXT,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLines:
    """One answer. `stamp` goes with the next question, for changes since; `lines` is None if nothing changed."""

    stamp: str
    lines: Sequence[str] | None


def is_whole(got: bytes | bytearray) -> bool:
    """Return whether the answer is complete, or already malformed, so that no more bytes need to come."""
    head = _HEAD.match(got)
    if head is None:
        return b"\n" in got[:_LONGEST_HEAD] or len(got) >= _LONGEST_HEAD
    return bool(head[3]) or len(got) >= head.end() + int(head[5])


def split_answer(got: bytes, kind: str, form: RecordForm) -> RecordLines | None:
    """Return an answer as lines; None if Slurm did not answer the program (`no ...`). Raises Garbled."""
    if got.startswith(b"no ") and got.endswith(b"\n"):
        return None
    head = _HEAD.match(got)
    if head is None or head[1] != kind.encode():
        raise Garbled(f"no answer of kind {kind}: {got[:200]!r}")
    stamp, rest = head[2].decode(), got[head.end() :]
    if not stamp.strip("0.") and form in (NODE, JOB) and stamp != "-":
        raise Garbled("slurmctld never updated what it tells")
    if head[3]:
        if rest or stamp == "-":
            raise Garbled("an answer without records has some")
        return RecordLines(stamp=stamp, lines=None)
    if head[6] != form.names:
        raise Garbled(f"steward-slurm tells of other fields than this Steward reads: {head[6][:200]!r}")
    if len(rest) != int(head[5]) or (rest and not rest.endswith(b"\n")) or not rest.isascii():
        raise Garbled(f"an answer of {len(rest)} bytes says that it has {int(head[5])}")
    lines = rest.decode("ascii").split("\n")
    lines.pop()
    if len(lines) != int(head[4]):
        raise Garbled(f"an answer of {len(lines)} records says that it has {int(head[4])}")
    return RecordLines(stamp=stamp, lines=lines)


def unescaped(escaped: str) -> str:
    """Return the text of a field. Bytes that are no UTF-8 become U+FFFD."""
    if "\\" not in escaped:
        return escaped
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), escaped)
    return plain.encode("latin-1").decode("utf-8", "replace")
