"""The bed of the health tests: short times, and paths that a test may break without harm to the machine."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from steward_bed.bed import Backend, Overrides
from tests.fakes.nhc import NHC

NODES = 6
NHC_CONF = "/etc/nhc/nhc.conf"
"""On a machine of its own."""
NHC_GOOD = """# A configuration of a site, as NHC reads it.
 * || check_file_test -d /tmp
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """`full`: a file system that gets full; `writable`: one that turns read-only; `shared`: one whose server dies."""

    full: str
    writable: str
    shared: str
    nhc: str


OWN = Places(full="/media", writable="/mnt", shared="/srv/shared", nhc=NHC_CONF)
"""Of every container, whose own they are."""


def places(backend: Backend, folder: Path) -> Places:
    """Those of all nodes: where they share one machine, below `folder`."""
    if backend is Backend.DOCKER:
        return OWN
    own = Places(**{name: str(folder / name) for name in ("full", "writable", "shared")}, nhc=str(folder / "nhc.conf"))
    for path in (own.full, own.writable, own.shared):
        Path(path).mkdir()
    Path(own.nhc).write_text(NHC_GOOD)
    return own


def settings(backend: Backend, where: Places) -> Overrides:
    """All nodes may be under repair at once. One node's full disk counts where it is its own."""
    return {
        "agent": {"check_interval_s": 2.0},
        "repair": {"concurrent_min": NODES, "breaker_min": 100},
        "deep": {"suspects": False},
        "health": {"clear_after_s": 2.0},
        "checks.disk": {"paths": [where.full], "mode": "drain" if backend is Backend.DOCKER else "report"},
        "checks.mounts": {"writable": [where.writable]},
        "checks.fs.shared": {"misses": 1.0},
        "checks.site": {"mode": "drain", "timeout_s": 3.0, "nhc": where.nhc},
        'checks."site.nhc"': {"mode": "report", "every_s": 1.0},
        'checks."site.scratch"': {"params": "-v /scratch"},
    }


@contextmanager
def nhc_within_reach(folder: Path) -> Iterator[None]:
    """The nodes of this machine find ours where nhc itself is not installed."""
    if shutil.which("nhc") is not None:
        yield
        return
    bin = folder / "bin"
    bin.mkdir()
    (bin / "nhc").write_text(NHC)
    (bin / "nhc").chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{bin}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
