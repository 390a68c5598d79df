"""The Slurm that is installed under `root`: another Debian's folder, or this machine, maybe in a folder of its own."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.fakes.until import FACT_S

PROGRAMS = ("slurmctld", "slurmd", "scontrol", "sbatch", "munged")
_USUAL = "/usr/sbin:/usr/bin:/sbin:/bin"


def search_path(root: Path = Path("/")) -> str:
    """Where Slurm's programs are looked for. A Slurm of this machine may lie in a folder of its own: then all of its
    programs come from where slurmctld is."""
    own = shutil.which("slurmctld", path=f"{os.environ.get('PATH', '')}:{_USUAL}") if root == Path("/") else None
    beside = [str(Path(own).parents[1] / folder) for folder in ("sbin", "bin")] if own else []
    return os.pathsep.join(dict.fromkeys([*beside, *_USUAL.split(os.pathsep)]))


def missing(root: Path = Path("/")) -> list[str]:
    """Programs that are needed and not installed."""
    where = os.pathsep.join(str(root / each.lstrip("/")) for each in search_path(root).split(os.pathsep))
    return [name for name in PROGRAMS if shutil.which(name, path=where) is None]


def version(root: Path = Path("/")) -> str:
    prefix = () if root == Path("/") else ("chroot", str(root))
    out = subprocess.run(
        [*prefix, "slurmctld", "-V"], capture_output=True, text=True, timeout=FACT_S, check=True
    ).stdout
    return out.split()[-1]
