"""Reservations of deep checks and kept nodes: read from `scontrol show reservations`, and the words that make one.

Facts, tried on real 22.05.8, 24.11.5 and 26.05.5 (docs/decisions/0020): a reservation with IGNORE_JOBS is made at once
over busy and drained nodes, keeps other users' jobs off its nodes at once and lets running ones go on; in a partition
that is DOWN no job starts, not even in the reservation, so a deep check has a hidden partition of its own; a
reconfigure drops that partition and its job, never the reservation.
"""

import secrets
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from steward.adapters.process import show
from steward.adapters.slurm.words import expand, first_words, node_list
from steward.model.deep import DEEP_PREFIX, RUN_KEY
from steward.model.ids import NodeName
from steward.model.job import parse_tres
from steward.model.partition import Partition
from steward.model.reservation import HOT_PREFIX, KEEP_PREFIX, Reservation
from steward.ports import Permanent, Retryable

_NONE = "No reservations in the system"
_HIDDEN = ("hidden=yes", "rootonly=yes", "reqresv=yes", "maxtime=infinite", "state=up")


def reservations(answer: str) -> dict[str, Reservation]:
    """Return every reservation of `scontrol --oneliner show reservations`. Raises Retryable for an unreadable line."""
    lines = [line for line in answer.splitlines() if line.strip() and line.strip() != _NONE]
    if not lines and _NONE not in answer:
        raise Retryable("Slurm's answer has no reservation in it: not believed")
    return {found.name: found for found in map(_reservation, lines)}


def with_leftovers(found: dict[str, Reservation], partitions: Sequence[Partition]) -> dict[str, Reservation]:
    """Return the reservations, with one for each partition of ours whose reservation is over, to be released."""
    left = {p.name: Reservation(name=p.name, nodes=p.nodes) for p in partitions if p.name.startswith(DEEP_PREFIX)}
    return left | found


def _reservation(line: str) -> Reservation:
    """Return the reservation of one line. Raises Retryable."""
    words = first_words(line)
    try:
        return Reservation(
            name=words["ReservationName"],
            nodes=expand(words["Nodes"]),
            starts=_time(words["StartTime"]),
            ends=_time(words["EndTime"]),
            cpus=parse_tres(words.get("TRES", "")).get("cpu", 0),
            is_magnetic="MAGNETIC" in words.get("Flags", "").split(","),
        )
    except (KeyError, ValueError) as error:
        raise Retryable(f"cannot read one of Slurm's reservations: {error} in '{show(line)}'") from error


def _time(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def checked_deep_name(name: str) -> str:
    """Return the name of a deep check's reservation.

    Raises Permanent for a name that is not ours to make or release.
    """
    tail = name.removeprefix(DEEP_PREFIX)
    if not name.startswith(DEEP_PREFIX) or not tail or not all(c.isalnum() or c == "-" for c in tail) or len(name) > 60:
        raise Permanent(f"not a name of a deep check: '{show(name)}'")
    return name


def checked_keep_name(name: str) -> str:
    """Return the name of a reservation of kept nodes or hot spares. Raises Permanent for any other name."""
    prefix = next((each for each in (KEEP_PREFIX, HOT_PREFIX) if name.startswith(each)), "")
    tail = name.removeprefix(prefix)
    if not prefix or not tail or not all((c.isascii() and c.isalnum()) or c == "-" for c in tail) or len(name) > 80:
        raise Permanent(f"not a name of nodes that we keep: '{show(name)}'")
    return name


def keep_words(name: str, nodes: Sequence[NodeName], seconds: float, user: str) -> tuple[str, ...]:
    """Return the words after `scontrol create` for kept nodes."""
    # without `overlap` nodes of another reservation are refused; with `flex` Slurm's test of whether a job fits sees
    # these nodes beside all others (`fits.py`)
    return _reservation_words(checked_keep_name(name), nodes, seconds, user, "ignore_jobs,flex")


def reserve_words(name: str, nodes: Sequence[NodeName], seconds: float, user: str) -> tuple[str, ...]:
    """Return the words after `scontrol create` for a deep check."""
    return _reservation_words(checked_deep_name(name), nodes, seconds, user, "ignore_jobs,overlap")


def _reservation_words(name: str, nodes: Sequence[NodeName], seconds: float, user: str, flags: str) -> tuple[str, ...]:
    """Return the words for a new reservation."""
    return (
        f"reservation={name}",
        f"nodes={node_list(nodes)}",
        f"users={user}",
        f"flags={flags}",
        "starttime=now",
        f"duration={_minutes(seconds)}",
    )


def change_words(name: str, nodes: Sequence[NodeName], seconds: float) -> tuple[str, ...]:
    """Return the words after `scontrol update`: these nodes, for `seconds` from now."""
    return (
        f"reservation={checked_keep_name(name)}",
        f"nodes={node_list(nodes)}",
        f"endtime=now+{_minutes(seconds)}minutes",
    )


def _minutes(seconds: float) -> int:
    """Return the time in Slurm's whole minutes."""
    return max(1, int(-(-seconds // 60)))


def partition_words(name: str, nodes: Sequence[NodeName]) -> tuple[str, ...]:
    """Return the words after `scontrol create` for a partition of this deep check alone, whatever gates are closed."""
    return (f"partitionname={checked_deep_name(name)}", f"nodes={node_list(nodes)}", *_HIDDEN)


def submit_argv(name: str, nodes: Sequence[NodeName], seconds: float, output: str) -> tuple[str, ...]:
    """Return `sbatch` for a script on its standard input, without our own environment."""
    return (
        *(
            "sbatch",
            "--parsable",
            f"--job-name={checked_deep_name(name)}",
            f"--partition={name}",
            f"--reservation={name}",
        ),
        *(f"--nodelist={node_list(nodes)}", f"--nodes={len(nodes)}", "--ntasks-per-node=1", "--exclusive", "--mem=0"),
        *("--no-requeue", f"--time={_minutes(seconds)}", "--export=NIL", "--chdir=/"),
        *(f"--output={output}", f"--error={output}"),
    )


def script(argv: Sequence[str], sbatch: str) -> bytes:
    """Return the batch script of a deep check: one task a node; a failed task does not end the others.

    The tasks know each other by a secret that only they have, so that no user's program can pass for one of them. The
    job has no search path of ours: it uses the srun beside the `sbatch` that submits it, if the nodes have that file.
    """
    words = ("--ntasks-per-node=1", "--kill-on-bad-exit=0", "--mem=0", f"--export={RUN_KEY}", "--chdir=/")
    lines = (
        "#!/bin/sh",
        f"export {RUN_KEY}={secrets.token_hex(16)}",
        f"srun={shlex.quote(str(Path(sbatch).with_name('srun')))}",
        '[ -x "$srun" ] || srun=srun',
        f'exec "$srun" {shlex.join((*words, "--", *argv))}',
    )
    return "".join(f"{line}\n" for line in lines).encode()
