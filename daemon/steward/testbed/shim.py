"""The shim for the bed's slurm.conf: built from this checkout, or the installed one."""

import os
import shutil
from pathlib import Path

from steward.adapters.process import Failed, run
from steward.testbed.bed import BedError

_SOURCES = Path(__file__).resolve().parents[3] / "spank"
_BUILD_S = 120.0


def _headers() -> list[str]:
    """Those of the Slurm whose slurmctld is found, where it lies in a folder of its own."""
    slurmctld = shutil.which("slurmctld")
    include = Path(slurmctld).parents[1] / "include" if slurmctld else Path()
    is_own = include != Path("/usr/include") and (include / "slurm/spank.h").is_file()
    return [f"SLURM_CFLAGS=-I{include}"] if is_own else []


def find_shim() -> Path:
    """The plugin's path: STEWARD_SHIM when set, else `spank/build/steward.so` of this checkout, made up to date."""
    if told := os.environ.get("STEWARD_SHIM"):
        path = Path(told)
        if not path.is_file():
            raise BedError(f"STEWARD_SHIM={told}: no such file; set it to the path of steward.so")
        return path
    if not (_SOURCES / "Makefile").is_file():
        raise BedError("the shim's sources are not here; set STEWARD_SHIM to the path of steward.so")
    try:
        run(["make", "-C", str(_SOURCES), "all", *_headers()], timeout_s=_BUILD_S)
    except Failed as error:
        raise BedError(f"cannot build the shim (needs gcc, make and libslurm-dev): {error}") from error
    return _SOURCES / "build" / "steward.so"
