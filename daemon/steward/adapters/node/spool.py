"""Where slurmd keeps its jobs' scripts and credentials."""

import re
import socket
from pathlib import Path

_CACHED = Path("/run/slurm/conf/slurm.conf")
"""What a configless slurmd got from slurmctld."""
_DEFAULT = "/var/spool/slurmd"
_SPOOL = re.compile(r"^\s*SlurmdSpoolDir\s*=\s*(?P<path>\S+)", re.IGNORECASE | re.MULTILINE)


def spool_dir(slurm_conf: str, node: str) -> str:
    """The folder; Slurm's default where the file does not say. Raises OSError when it cannot be read."""
    files = [file for file in (Path(slurm_conf), _CACHED) if file.is_file()]
    found = _SPOOL.search(files[0].read_text(errors="replace")) if files else None
    path = found["path"] if found else _DEFAULT
    return path.replace("%n", node).replace("%h", socket.gethostname().partition(".")[0])
