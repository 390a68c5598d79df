"""This node's slurm.conf, read with the files that it includes."""

import re
import socket
from pathlib import Path

_CACHED = Path("/run/slurm/conf/slurm.conf")
"""The configuration that a configless slurmd got from slurmctld."""
_SPOOL, _TMP = ("SlurmdSpoolDir", "/var/spool/slurmd"), ("TmpFS", "/tmp")
"""The key and default of each folder in slurm.conf."""
_INCLUDE = re.compile(r"^[ \t]*include[ \t]+(?P<file>[^\s#]+).*$", re.IGNORECASE | re.MULTILINE)
_DEEPEST = 5
"""Includes in includes are followed so far: files may include each other."""


def conf_here(named: Path) -> str:
    """Return the slurm.conf of this node; empty if there is none, as on a configless node before its slurmd starts."""
    # Slurm's commands then find the file by themselves, but not if `SLURM_CONF` names one that does not exist.
    return next((str(file) for file in (named, _CACHED) if file.is_file()), "")


def conf_text(conf: Path, depth: int = 0) -> str:
    """Return the text of a slurm.conf with the text of each included file in the place of its line.

    An included file that is not there is left out. Raises OSError if slurm.conf itself cannot be read.
    """

    def included(line: re.Match[str]) -> str:
        file = conf.parent / line["file"]  # as Slurm reads a relative path
        return conf_text(file, depth + 1) if depth < _DEEPEST and file.is_file() else ""

    return _INCLUDE.sub(included, conf.read_text(errors="replace"))


def spool_dir(slurm_conf: str, node: str) -> str:
    """Return SlurmdSpoolDir on this node, by slurm.conf or Slurm's default. Raises OSError if it cannot be read."""
    return _folder(*_SPOOL, slurm_conf, node)


def tmp_fs(slurm_conf: str, node: str) -> str:
    """Return the folder for temporary files of jobs (TmpFS) on this node, by slurm.conf or Slurm's default."""
    return _folder(*_TMP, slurm_conf, node)


def _folder(key: str, default: str, slurm_conf: str, node: str) -> str:
    conf = conf_here(Path(slurm_conf))
    line = re.compile(rf"^\s*{key}\s*=\s*(?P<path>\S+)", re.IGNORECASE | re.MULTILINE)
    found = line.search(conf_text(Path(conf))) if conf else None
    path = found["path"] if found else default
    return path.replace("%n", node).replace("%h", socket.gethostname().partition(".")[0])
