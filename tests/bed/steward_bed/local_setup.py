"""Everything a local bed has on disk before its first process starts."""

import fcntl
import json
import os
import random
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from steward.adapters.process import Failed, run
from steward_bed import accounting, fake_gpus, slurm_versions
from steward_bed.bed import BedError, BedSpec, plain, spec_of
from steward_bed.layout import LONGEST_DIR, Layout
from steward_bed.slurm_conf import SlurmPlan, write_slurm_conf
from steward_bed.slurm_versions import SlurmVersion
from steward_bed.steward_toml import local_toml

_SBIN = "/usr/sbin:/sbin:/usr/local/sbin"
_PACKAGES = "on Debian: apt-get install slurm-wlm munge, and slurmdbd mariadb-server-core for --accounting"
_NODE_POWER = """#!/bin/sh
# node-power cycle NODE: cut the power of a node's machine and switch it on again.
set -eu
[ "$1" = cycle ]
inject() {{ {python} -m steward_bed inject --dir {bed} "$@"; }}
inject kill-node "$2"
inject start-node "$2"
"""
_SOURCES = Path(__file__).resolve().parents[3] / "spank"
_READER = _SOURCES.with_name("reader")
_BUILD_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The facts that a later command must know of a bed; the file lies in its directory from the start. The last four
    are ports; that of slurmdbd is 0 without accounting."""

    spec: BedSpec
    slurm: str
    slurmctld: int
    listen: int
    http: int
    slurmdbd: int = 0

    def save(self, layout: Layout) -> None:
        layout.manifest.write_text(json.dumps(asdict(self), indent=1, default=plain))


def load(layout: Layout) -> Manifest:
    entry = json.loads(layout.manifest.read_text())
    return Manifest(**{**entry, "spec": spec_of(entry["spec"])})


def prepare(layout: Layout, spec: BedSpec) -> Manifest:
    """Directories, keys, ports and every configuration file."""
    _check_place(layout)
    version = installed_slurm()
    if not str(version).startswith(spec.slurm):
        raise BedError(f"Slurm {spec.slurm} was asked for, this machine has {version}; use --backend docker for others")
    controller, listen, http, users, slurmdbd, *node_ports = free_ports(5 + len(spec.machine_names))
    manifest = Manifest(
        spec=spec,
        slurm=str(version),
        slurmctld=controller,
        listen=listen,
        http=http,
        slurmdbd=slurmdbd if spec.accounting else 0,
    )
    layout.root.mkdir(parents=True, exist_ok=True)
    layout.root.chmod(0o755)
    manifest.save(layout)
    layout.make()
    shim = _readable_copy(find_shim(), layout) if spec.steward else None
    plan = SlurmPlan(
        spec=spec,
        version=version,
        controller_port=controller,
        slurmdbd_port=manifest.slurmdbd,
        node_ports=tuple(node_ports),
        shim=shim,
    )
    write_slurm_conf(layout, plan)
    if spec.accounting:
        accounting.write_slurmdbd_conf(layout, slurmdbd)
    if spec.gpus:
        fake_gpus.lay_out(layout.gpus, spec.gpus)
    layout.steward_toml.write_text(local_toml(layout, spec, listen=listen, http=http, users=users))
    if spec.fixed:
        write_node_power(layout.node_power, layout.root)
    layout.machines.write_text(json.dumps(_node_programs(layout, spec)))
    layout.munge_key.write_bytes(secrets.token_bytes(128))
    layout.munge_key.chmod(0o400)
    return manifest


def _readable_copy(shim: Path, layout: Layout) -> Path:
    """In the bed's directory, where every user may read it: the checkout may lie in somebody's home."""
    return Path(shutil.copy(shim, layout.slurm_conf.parent / shim.name))


def installed_slurm() -> SlurmVersion:
    return slurm_versions.parse(run([find_program("slurmd"), "-V"], timeout_s=10).text)


def find_program(name: str) -> str:
    """Its path; daemons lie in sbin, which an ordinary user's search path lacks."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")
    if found is None:
        raise BedError(f"{name} is not installed; {_PACKAGES}")
    return found


def slurm_env(layout: Layout) -> dict[str, str]:
    return {"SLURM_CONF": str(layout.slurm_conf)}


def steward_env(layout: Layout, manifest: Manifest) -> dict[str, str]:
    if not manifest.spec.steward:
        return {}
    env = {"STEWARD_CONFIG": str(layout.steward_toml), "STEWARD_URL": f"http://127.0.0.1:{manifest.http}"}
    if shutil.which("steward") is None:
        env["PATH"] = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    return env


def _check_place(layout: Layout) -> None:
    if len(str(layout.root)) > LONGEST_DIR:
        raise BedError(f"{layout.root} is longer than {LONGEST_DIR} characters, too long for sockets in it; use --dir")


def _node_programs(layout: Layout, spec: BedSpec) -> Mapping[str, object]:
    """The programs that the local provider starts on each machine."""
    slurmd = [find_program("slurmd"), "-D", "-N", "%n", "-f", str(layout.slurm_conf)]
    programs: list[Mapping[str, object]] = [
        {**_program("slurmd", slurmd, slurm_env(layout), layout.output("slurmd-%n")), "role": "Compute"}
    ]
    if spec.steward:
        agent = [sys.executable, "-m", "steward.agent", "--config", str(layout.steward_toml), "--node", "%n"]
        programs.append(_program("agent", agent, _agent_env(layout, spec), layout.log("steward-agent-%n")))
    return {"programs": programs}


def _agent_env(layout: Layout, spec: BedSpec) -> Mapping[str, str]:
    own = layout.node()
    gpus = fake_gpus.environment(layout.gpus, own, own / "instance_id") if spec.gpus else {}
    return {**slurm_env(layout), **gpus}


def _program(name: str, argv: list[str], env: Mapping[str, str], log: Path) -> Mapping[str, object]:
    return {"name": name, "argv": argv, "env": dict(env), "log": str(log)}


def write_node_power(path: Path, bed: Path) -> None:
    """Make the command; it works on the bed in the directory `bed`."""
    path.write_text(_NODE_POWER.format(python=shlex.quote(sys.executable), bed=shlex.quote(str(bed))))
    path.chmod(0o755)


def _headers() -> list[str]:
    """Those of the Slurm whose slurmctld is found, and its library, where it lies in a folder of its own."""
    slurmctld = shutil.which("slurmctld")
    include = Path(slurmctld).parents[1] / "include" if slurmctld else Path()
    is_own = include != Path("/usr/include") and (include / "slurm/spank.h").is_file()
    if not is_own:
        return []
    lib = include.with_name("lib")
    return [f"SLURM_CFLAGS=-I{include}", f"SLURM_LIBS=-L{lib} -Wl,-rpath,{lib}"]


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
        run(["make", "-C", str(_READER), "try", *_headers()], timeout_s=_BUILD_S)
    except Failed as error:
        raise BedError(f"cannot build the shim (needs gcc, make and libslurm-dev): {error}") from error
    return _SOURCES / "build" / "steward.so"


# Ports nobody uses, for daemons that start in a moment.

# Below the kernel's range for outgoing connections: none of those can take a port between our look and its use.
_FIRST, _LAST = 10240, 32000
_given: set[int] = set()
_lock = threading.Lock()


def free_ports(count: int, among: Sequence[int] = range(_FIRST, _LAST)) -> list[int]:
    """Distinct ports free on every address of this machine, in random places.

    Each is given once: to nobody else in this process, and to no other process of this user while this one lives.
    """
    found: list[int] = []
    with _lock:
        for port in random.sample(among, k=len(among)):
            if len(found) == count:
                break
            if port not in _given and _is_free(port) and _is_ours(port):
                found.append(port)
        if len(found) < count:
            raise BedError(f"no {count} free ports between {among[0]} and {among[-1]}; end what uses them (ss -ltn)")
        _given.update(found)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


def _is_ours(port: int) -> bool:
    """Its byte of the file is locked by us: between our look and the daemon's start nobody else is given it."""
    try:
        fcntl.lockf(_book(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _book() -> int:
    """Raises BedError for a file that is not ours."""
    path = Path(tempfile.gettempdir()) / f"steward-ports-{os.getuid()}"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BedError(f"{path} cannot be opened ({error.strerror}): remove it") from None
