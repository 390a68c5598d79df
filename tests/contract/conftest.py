"""Fixtures of the contract suites: the fakes always, the real things where they are installed (else a visible skip).

STEWARD_SLURM_ROOTS=DIR[:DIR...] runs the suites against the Slurms of other Debians' folders as well, with chroot.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import pytest

from steward.adapters.process import run
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.library import Library, program
from steward.ports import SlurmPort
from tests.contract.cluster import PARTITIONS, Cluster, running
from tests.contract.installed import missing
from tests.contract.mariadb import MariaDb, a_mariadb
from tests.contract.mariadb import missing as missing_for_mariadb
from tests.contract.slurm_worlds import FakeWorld, RealWorld, SlurmWorld
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import FACT_S

_COMMANDS = ("scontrol", "sinfo", "squeue", "scancel", "sbatch")


class Clusters:
    """Real clusters, one a Slurm, started when first asked for and kept for the session."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[tuple[Path, tuple[str, ...]], Cluster] = {}

    def of(self, root: Path, names: tuple[str, ...] = ("n1", "n2", "n3")) -> Cluster:
        """With these nodes, idle."""
        if (root, names) not in self._running:
            absent = missing(root)
            if absent:
                pytest.skip(f"no real Slurm under {root}: {', '.join(absent)} not installed")
            self._running[root, names] = self._stack.enter_context(running(names, root))
        self._running[root, names].reset()
        return self._running[root, names]


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    if absent := missing_for_mariadb():
        pytest.skip(f"no MariaDB: {', '.join(absent)} not installed (mariadb-server-core)")
    with a_mariadb() as found:
        yield found


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    with ExitStack() as stack:
        yield Clusters(stack)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    roots = [Path("/"), *(Path(root) for root in os.environ.get("STEWARD_SLURM_ROOTS", "").split(":") if root)]
    if "slurm_root" in metafunc.fixturenames:
        metafunc.parametrize("slurm_root", roots, ids=_name)
    if "slurm_world" in metafunc.fixturenames:
        kinds = [("fake", Path("/")), *((kind, root) for root in roots for kind in ("commands", "library"))]
        ids = [kind if root == Path("/") else f"{kind}-{root.name}" for kind, root in kinds]
        metafunc.parametrize("slurm_world", kinds, indirect=True, ids=ids)


def _name(root: Path) -> str:
    return root.name or "installed"


@pytest.fixture
def slurm_world(
    request: pytest.FixtureRequest, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmWorld]:
    kind, root = request.param
    if kind == "fake":
        yield FakeWorld(fake=FakeSlurm.with_nodes("n1", "n2", "n3"))
        return
    cluster = clusters.of(root)
    if root != Path("/"):
        monkeypatch.setenv("PATH", f"{wrappers(tmp_path, root)}:/usr/sbin:/usr/bin:/sbin:/bin")
    conf = cluster.env["SLURM_CONF"]
    with ExitStack() as stack:
        include = IncludeFile(cluster.path(PARTITIONS), str(cluster.path("slurm.conf")))
        asker = stack.enter_context(closing(FitAsker(conf=conf, argv=beside(cluster))))
        library = stack.enter_context(closing(library_of(cluster))) if kind == "library" else None
        port: SlurmPort = CommandLineSlurm(conf=conf, include=include, library=library, asker=asker)
        yield RealWorld(cluster=cluster, port=port)


def library_of(cluster: Cluster) -> Library:
    """What reads this cluster through its Slurm's library."""
    return Library(conf=cluster.env["SLURM_CONF"], argv=beside(cluster), few_s=FACT_S, all_s=FACT_S)


def beside(cluster: Cluster) -> tuple[str, ...]:
    """The program beside the library of this cluster's Slurm; in another Debian's folder it is built there once."""
    if cluster.root == Path("/"):
        return program() or pytest.skip("steward-slurm is not built (make shim)")
    return (*cluster.prefix, built_in(cluster.root))


@cache
def built_in(root: Path) -> str:
    source = Path(tempfile.mkdtemp(prefix="steward-reader-", dir=root / "tmp"))
    for path in (Path(__file__).parents[2] / "reader").iterdir():
        if path.is_file():
            shutil.copy(path, source)
    inside = f"/{source.relative_to(root)}"
    run(["chroot", str(root), "make", "-s", "-C", inside, "all"], timeout_s=120.0)
    return f"{inside}/build/steward-slurm"


def wrappers(folder: Path, root: Path) -> Path:
    """A folder with Slurm's commands, each run inside `root`."""
    for name in _COMMANDS:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec chroot {root} {name} "$@"\n')
        path.chmod(0o755)
    return folder
