"""Folders of a node that slurm.conf names: slurmd's own, with scripts and credentials of jobs, and the jobs' TmpFS."""

import re
import socket
from pathlib import Path

_CACHED = Path("/run/slurm/conf/slurm.conf")
"""The configuration that a configless slurmd got from slurmctld."""
_SPOOL, _TMP = ("SlurmdSpoolDir", "/var/spool/slurmd"), ("TmpFS", "/tmp")
"""Key and default."""


def spool_dir(slurm_conf: str, node: str) -> str:
    """The folder; Slurm's default where the file does not say. Raises OSError when it cannot be read."""
    return _folder(*_SPOOL, slurm_conf, node)


def tmp_fs(slurm_conf: str, node: str) -> str:
    """The folder for temporary files of jobs (TmpFS) on this node, as slurm.conf says."""
    return _folder(*_TMP, slurm_conf, node)


def _folder(key: str, default: str, slurm_conf: str, node: str) -> str:
    files = [file for file in (Path(slurm_conf), _CACHED) if file.is_file()]
    line = re.compile(rf"^\s*{key}\s*=\s*(?P<path>\S+)", re.IGNORECASE | re.MULTILINE)
    found = line.search(files[0].read_text(errors="replace")) if files else None
    path = found["path"] if found else default
    return path.replace("%n", node).replace("%h", socket.gethostname().partition(".")[0])
