"""A scontrol that misbehaves, put before Slurm's own in stewardd's search path while the fault is in force."""

from pathlib import Path

from steward.testbed.faults import FaultKind

_BODIES = {
    FaultKind.HANG_SCONTROL: "exec sleep infinity",
    FaultKind.GARBLE_SCONTROL: r"printf 'NodeName=\001\377 {\"nodes\": [ State=\n'",
    FaultKind.FAIL_SCONTROL: "echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2\nexit 1",
}


def break_scontrol(directory: Path, kind: FaultKind) -> None:
    """Whole from the first moment: written beside, then renamed."""
    new = directory / "scontrol.new"
    new.write_text(f"#!/bin/sh\n# {kind.value}\n{_BODIES[kind]}\n")
    new.chmod(0o755)
    new.replace(directory / "scontrol")


def how_broken(directory: Path) -> FaultKind | None:
    try:
        line = (directory / "scontrol").read_text().splitlines()[1]
    except FileNotFoundError:
        return None
    return FaultKind(line.removeprefix("# "))
