"""Fixtures of the contract suites: the fakes always, the real things where they are installed (else a visible skip).

STEWARD_SLURM_ROOTS=DIR[:DIR...] runs the suites against the Slurms of other Debians' folders as well, with chroot.
"""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from steward.adapters.slurm import single_child
from steward.adapters.slurm.choose import unavailable
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.native import PyslurmSlurm
from steward.adapters.slurm.single import Single
from steward.ports import SlurmPort
from tests.contract.cluster import PARTITIONS, Cluster, running
from tests.contract.installed import missing
from tests.contract.slurm_worlds import FakeWorld, RealWorld, SlurmWorld
from tests.fakes.slurm import FakeSlurm

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


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    with ExitStack() as stack:
        yield Clusters(stack)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    roots = [Path("/"), *(Path(root) for root in os.environ.get("STEWARD_SLURM_ROOTS", "").split(":") if root)]
    if "slurm_root" in metafunc.fixturenames:
        metafunc.parametrize("slurm_root", roots, ids=_name)
    if "slurm_world" in metafunc.fixturenames:
        kinds = [("fake", Path("/")), *(("commands", root) for root in roots), ("pyslurm", Path("/"))]
        if metafunc.module.__name__.endswith("test_slurm_narrow"):
            kinds += (("linked", root) for root in roots)
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
    if kind == "pyslurm" and importlib.util.find_spec("pyslurm") is None:
        pytest.skip("pyslurm adapter: pyslurm is not installed")
    cluster = clusters.of(root)
    if kind == "pyslurm" and (why := unavailable(cluster.env["SLURM_CONF"])):
        pytest.skip(f"pyslurm adapter: {why}")
    if root != Path("/"):
        monkeypatch.setenv("PATH", f"{wrappers(tmp_path, root)}:/usr/sbin:/usr/bin:/sbin:/bin")
    conf = cluster.env["SLURM_CONF"]
    with ExitStack() as stack:
        include = IncludeFile(cluster.path(PARTITIONS), str(cluster.path("slurm.conf")))
        asker = stack.enter_context(closing(FitAsker(conf=conf, argv=() if root == Path("/") else ("false",))))
        port: SlurmPort = CommandLineSlurm(conf=conf, include=include, asker=asker)
        if kind == "pyslurm":
            port = stack.enter_context(closing(PyslurmSlurm(conf=conf, include=include, asker=asker)))
        if kind == "linked":
            single = stack.enter_context(closing(linked(cluster)))
            port = CommandLineSlurm(conf=conf, include=include, single=single)
        yield RealWorld(cluster=cluster, port=port)


def linked(cluster: Cluster) -> Single:
    """What reads through the library of this cluster's Slurm; in another Debian's folder with its Python."""
    conf = cluster.env["SLURM_CONF"]
    if cluster.root == Path("/"):
        return Single(conf=conf)
    program = cluster.path("single_child.py")
    shutil.copy(str(single_child.__file__), program)
    [library] = cluster.root.glob("usr/lib/*/slurm-wlm/libslurmfull.so")
    inside = (f"/{path.relative_to(cluster.root)}" for path in (program, library))
    return Single(conf=conf, argv=(*cluster.prefix, "python3", "-I", "-S", *inside))


def wrappers(folder: Path, root: Path) -> Path:
    """A folder with Slurm's commands, each run inside `root`."""
    for name in _COMMANDS:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec chroot {root} {name} "$@"\n')
        path.chmod(0o755)
    return folder
