"""Which adapter talks to this cluster, and why: for the head's wiring and for `steward doctor`."""

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.slurm import versions
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.library import Library
from steward.adapters.slurm.native import PyslurmSlurm
from steward.model.setting_types import SlurmAdapter
from steward.ports import PortError, SlurmPort

_PYSLURM = "pyslurm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`why` is one sentence. `is_second`: the site asked for another one."""

    slurm: SlurmPort
    why: str
    is_second: bool = False


def choose(wanted: SlurmAdapter, *, conf: str = "", timeout_s: float = 10.0, include: Path | None = None) -> Choice:
    """pyslurm where it can be imported and was made for this Slurm, else the commands, also where `wanted` is pyslurm:
    that of another Slurm reads nonsense. Never raises.

    `include` is the file for partitions of ours.
    """
    file = IncludeFile(include, conf) if include else None
    asker = FitAsker(conf=conf)
    is_refused = wanted is SlurmAdapter.COMMANDS
    why_not = "cluster.slurm_adapter says so" if is_refused else unavailable(conf)
    if why_not:
        commands = CommandLineSlurm(
            conf=conf, timeout_s=timeout_s, include=file, library=Library(conf=conf), asker=asker
        )
        why = f"commands, because {why_not}"
        return Choice(slurm=commands, why=why, is_second=wanted is SlurmAdapter.PYSLURM)
    native = PyslurmSlurm(conf=conf, timeout_s=timeout_s, include=file, asker=asker)
    return Choice(slurm=native, why="pyslurm, because it matches this Slurm")


def unavailable(conf: str = "") -> str:
    """Why pyslurm cannot be used here; empty when it can. It is looked for, not loaded."""
    if importlib.util.find_spec(_PYSLURM) is None:
        return "pyslurm is not installed"
    try:
        made_for = versions.parse(importlib.metadata.version(_PYSLURM))
        installed = CommandLineSlurm(conf=conf).version()
    except (PortError, importlib.metadata.PackageNotFoundError) as error:
        return f"the versions of pyslurm and Slurm cannot be compared ({error})"
    if made_for.release != installed.release:
        return f"pyslurm {made_for.text} was made for another Slurm than this {installed.text}"
    return ""
