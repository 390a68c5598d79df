"""A scontrol that misbehaves, put before Slurm's own in stewardd's search path while the fault is in force.

sinfo and squeue go with it: where scontrol cannot speak JSON (22.05) stewardd reads with them.
"""

from pathlib import Path

from steward.testbed.faults import FaultKind

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
