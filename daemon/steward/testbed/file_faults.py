"""Faults that are files which parts of a bed look at: the same for every kind of bed."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from steward.testbed.faults import Fault, FaultKind

CHECK = "bed-fault"


class Places(Protocol):
    """Where a bed's parts look."""

    @property
    def wrappers(self) -> Path: ...
    @property
    def refuse_launch(self) -> Path: ...
    @property
    def limit_launch(self) -> Path: ...


def file_faults(places: Places) -> dict[FaultKind, Callable[[str], object]]:
    """Kind -> what makes it happen, with the fault's text."""
    return {
        FaultKind.HANG_SCONTROL: lambda _: break_scontrol(places.wrappers, FaultKind.HANG_SCONTROL),
        FaultKind.GARBLE_SCONTROL: lambda _: break_scontrol(places.wrappers, FaultKind.GARBLE_SCONTROL),
        FaultKind.FAIL_SCONTROL: lambda _: break_scontrol(places.wrappers, FaultKind.FAIL_SCONTROL),
        FaultKind.MEND_SCONTROL: lambda _: mend_scontrol(places.wrappers),
        FaultKind.REFUSE_LAUNCH: lambda _: places.refuse_launch.touch(),
        FaultKind.LIMIT_LAUNCH: places.limit_launch.write_text,
        FaultKind.ALLOW_LAUNCH: lambda _: _allow_launch(places),
    }


def file_faults_in_force(places: Places) -> Iterator[Fault]:
    """Those that were made to happen and are not undone."""
    if (broken := how_broken(places.wrappers)) is not None:
        yield Fault(kind=broken)
    if places.refuse_launch.exists():
        yield Fault(kind=FaultKind.REFUSE_LAUNCH)
    if places.limit_launch.exists():
        yield Fault(kind=FaultKind.LIMIT_LAUNCH, text=places.limit_launch.read_text())


def _allow_launch(places: Places) -> None:
    for path in (places.refuse_launch, places.limit_launch):
        path.unlink(missing_ok=True)


# A scontrol that misbehaves, put before Slurm's own in stewardd's search path while the fault is in force.
#
# sinfo and squeue go with it: where scontrol cannot speak JSON (22.05) stewardd reads with them.

_COMMANDS = ("scontrol", "sinfo", "squeue")
_BODIES = {
    FaultKind.HANG_SCONTROL: "exec sleep infinity",
    FaultKind.GARBLE_SCONTROL: r"printf 'NodeName=\001\377 {\"nodes\": [ State=\n'",
    FaultKind.FAIL_SCONTROL: "echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2\nexit 1",
}


def break_scontrol(directory: Path, kind: FaultKind) -> None:
    """Whole from the first moment: written beside, then renamed."""
    for name in _COMMANDS:
        new = directory / f"{name}.new"
        new.write_text(f"#!/bin/sh\n# {kind.value}\n{_BODIES[kind]}\n")
        new.chmod(0o755)
        new.replace(directory / name)


def mend_scontrol(directory: Path) -> None:
    for name in _COMMANDS:
        (directory / name).unlink(missing_ok=True)


def how_broken(directory: Path) -> FaultKind | None:
    try:
        line = (directory / _COMMANDS[0]).read_text().splitlines()[1]
    except FileNotFoundError:
        return None
    return FaultKind(line.removeprefix("# "))


# The site check that fails on command.


def write_failing_check(directory: Path, text: str) -> None:
    """A check of ours in the node's drop-in directory that says `text` and asks for a new machine.

    Written beside, then renamed: the agent never runs half of it.
    """
    result = f"HEALTH_CHECK_RESULT:bed:Failed:replace:{text or 'failed on command of the test bed'}"
    new = directory.parent / f"{CHECK}.new"
    new.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(result)}\n")
    new.chmod(0o755)
    new.replace(directory / CHECK)


def remove_failing_check(directory: Path) -> None:
    (directory / CHECK).unlink(missing_ok=True)


def has_failing_check(directory: Path) -> bool:
    return (directory / CHECK).exists()
