"""Faults that are files which parts of a bed look at: the same for every kind of bed."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from steward.model.ids import NodeName
from steward_bed import fake_gpus
from steward_bed.bed import BedError
from steward_bed.faults import FaultKind, InjectedFault
from steward_bed.layout import BedPaths

CHECK = "bed-fault"


def file_faults(layout: BedPaths) -> dict[FaultKind, Callable[[str], object]]:
    """Kind -> what makes it happen, with the fault's text."""
    return {
        FaultKind.HANG_SCONTROL: lambda _: break_scontrol(layout.wrappers, FaultKind.HANG_SCONTROL),
        FaultKind.GARBLE_SCONTROL: lambda _: break_scontrol(layout.wrappers, FaultKind.GARBLE_SCONTROL),
        FaultKind.FAIL_SCONTROL: lambda _: break_scontrol(layout.wrappers, FaultKind.FAIL_SCONTROL),
        FaultKind.MEND_SCONTROL: lambda _: mend_scontrol(layout.wrappers),
        FaultKind.REFUSE_LAUNCH: lambda _: layout.refuse_launch.touch(),
        FaultKind.LIMIT_LAUNCH: layout.limit_launch.write_text,
        FaultKind.ALLOW_LAUNCH: lambda _: _allow_launch(layout),
    }


def file_faults_of_nodes(layout: BedPaths) -> dict[FaultKind, Callable[[NodeName, str], None]]:
    """The same of single nodes."""
    return {
        FaultKind.FAIL_CHECK: lambda node, text: write_failing_check(layout.checks(node), text),
        FaultKind.PASS_CHECK: lambda node, _: remove_failing_check(layout.checks(node)),
        FaultKind.KERNEL_LOG: lambda node, line: _log_kernel_line(layout.kernel_log(node), line),
        FaultKind.GPU_FAULT: lambda node, text: fake_gpus.write_fault(_with_gpus(layout, node), text),
        FaultKind.MEND_GPUS: lambda node, _: fake_gpus.mend(_with_gpus(layout, node)),
    }


def file_faults_of_node_in_force(layout: BedPaths, node: NodeName) -> Iterator[FaultKind]:
    """Kernel-log lines are not among them: they have happened, and are over."""
    if has_failing_check(layout.checks(node)):
        yield FaultKind.FAIL_CHECK
    if fake_gpus.has_fault(layout.node(node)):
        yield FaultKind.GPU_FAULT


def file_faults_in_force(layout: BedPaths) -> Iterator[InjectedFault]:
    """Those that were made to happen and are not undone."""
    if (broken := how_broken(layout.wrappers)) is not None:
        yield InjectedFault(kind=broken)
    if layout.refuse_launch.exists():
        yield InjectedFault(kind=FaultKind.REFUSE_LAUNCH)
    if layout.limit_launch.exists():
        yield InjectedFault(kind=FaultKind.LIMIT_LAUNCH, text=layout.limit_launch.read_text())


def _allow_launch(layout: BedPaths) -> None:
    for path in (layout.refuse_launch, layout.limit_launch):
        path.unlink(missing_ok=True)


def _log_kernel_line(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def _with_gpus(layout: BedPaths, node: NodeName) -> Path:
    """What faults reach of the node."""
    if not layout.gpus.is_dir():
        raise BedError("this bed has no GPUs; bring it up with --gpus 8")
    return layout.node(node)


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
