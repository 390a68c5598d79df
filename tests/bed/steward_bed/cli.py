"""`steward-testbed`: a cluster on this machine, and faults for it."""

import json
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from steward.cli.examples import add_examples
from steward_bed import beds
from steward_bed.bed import Backend, Bed, BedError, BedSpec, BedStatus, plain
from steward_bed.beds import stoppable, take_down
from steward_bed.faults import SHAPES, FaultKind, fault
from steward_bed.wait import await_picture

P = ParamSpec("P")
R = TypeVar("R")
_PLACE = click.Path(path_type=Path, file_okay=False, resolve_path=True)
_KINDS = [kind.value for kind in FaultKind]


def _one_line_errors(command: Callable[P, R]) -> Callable[P, R]:
    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except BedError as error:
            raise click.ClickException(str(error)) from error

    return guarded


def _say(line: str) -> None:
    click.echo(line, err=True)


_dir = click.option(
    "--dir",
    "directory",
    type=_PLACE,
    envvar="STEWARD_TESTBED",
    help="The bed's directory (default: STEWARD_TESTBED, which `up` prints).",
)


@click.group()
def testbed() -> None:
    """Clusters for tests and demos, with faults on command."""


@testbed.command()
@click.option("--backend", type=click.Choice([each.value for each in Backend]), default="local", show_default=True)
@click.option("--nodes", type=click.IntRange(1, 500), default=6, show_default=True, help="Nodes n1..nN.")
@click.option("--spares", type=click.IntRange(0, 500), default=0, show_default=True, help="More nodes s1..sM.")
@click.option("--slurm", default="", metavar="VERSION", help="Slurm version, for example 24.11 (default: any).")
@click.option("--plain", is_flag=True, help="Slurm alone, without Steward.")
@click.option("--contain", is_flag=True, help="Jobs live in cgroups (docker backend).")
@click.option("--fixed", is_flag=True, help="Machines are fixed, the spares stand in (provider static, local backend).")
@click.option("--groups", is_flag=True, help="Nodes come with groups made through the API: n1..nN for `workers`.")
@click.option("--gpus", type=click.IntRange(0, 8), default=0, show_default=True, help="Pretended NVIDIA GPUs per node.")
@click.option("--accounting", is_flag=True, help="Accounts, QOS and limits: slurmdbd, and Slurm enforces them.")
@click.option(
    "--hardware", default="", metavar="WORDS", help="What a node has, as in slurm.conf: 'CPUs=48 Gres=gpu:l4:4'."
)
@click.option("--silent", type=click.IntRange(0, 60000), default=0, help="More nodes far1..farN, only in slurm.conf.")
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="Further settings, values as JSON.")
@click.option("--dir", "directory", type=_PLACE, help="Default: a new one.")
@_one_line_errors
def up(
    backend: str,
    nodes: int,
    spares: int,
    slurm: str,
    plain: bool,
    contain: bool,
    fixed: bool,
    groups: bool,
    gpus: int,
    accounting: bool,
    hardware: str,
    silent: int,
    settings: tuple[str, ...],
    directory: Path | None,
) -> None:
    """Bring a cluster up. It prints the environment for it: eval "$(steward-testbed up)"."""
    over = _overrides(settings)
    spec = BedSpec(
        dir=_unused(directory) or Path(tempfile.mkdtemp(prefix="steward-bed-", dir="/tmp")),
        backend=Backend(backend),
        nodes=nodes,
        spares=spares,
        slurm=slurm,
        steward=not plain,
        contain=contain,
        fixed=fixed,
        groups=groups,
        gpus=gpus,
        accounting=accounting,
        hardware=hardware,
        silent=silent,
        settings=over,
    )
    bed = beds.make(spec)
    with stoppable():
        try:
            bed.up(_say)
            if spec.steward:
                await_picture(bed)
        except BaseException:
            _say(f"taking down what is there of {spec.dir}")
            take_down(bed, _say)
            raise
    for name, value in bed.env.items():
        click.echo(f"export {name}={shlex.quote(value)}")


@testbed.command()
@_dir
@_one_line_errors
def down(directory: Path | None) -> None:
    """Take the bed down and leave nothing behind; may be repeated."""
    where = _told(directory)
    if where.exists():
        beds.find(where).down()
        _say(f"{where} is gone")


@testbed.command()
@_dir
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_one_line_errors
def status(directory: Path | None, as_json: bool) -> None:
    """What runs, and which faults are in force. Exit status 1 unless all is well."""
    seen = _find(directory).status()
    click.echo(json.dumps({**asdict(seen), "healthy": seen.healthy}, default=plain) if as_json else _table(seen))
    if not seen.healthy:
        raise click.exceptions.Exit(1)


@testbed.command(epilog="\b\n" + "\n".join(f"{kind.value:16} {shape.doc}" for kind, shape in SHAPES.items()))
@click.argument("kind", metavar="FAULT", type=click.Choice(_KINDS))
@click.argument("words", metavar="[NODE] [TEXT]", nargs=-1)
@_dir
@_one_line_errors
def inject(kind: str, words: tuple[str, ...], directory: Path | None) -> None:
    """Make a fault happen."""
    shape = SHAPES[FaultKind(kind)]
    node, text = (words[0], words[1:]) if shape.node and words else ("", words)
    try:
        wanted = fault(FaultKind(kind), node, " ".join(text))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _find(directory).inject(wanted)


@testbed.command()
@_dir
@_one_line_errors
def restore(directory: Path | None) -> None:
    """Undo every fault in force."""
    _find(directory).restore()


def _unused(directory: Path | None) -> Path | None:
    """Before anything is tried: what is there may be another bed, and a failed `up` takes down what it finds."""
    if directory is not None and directory.exists() and any(directory.iterdir()):
        raise BedError(f"{directory} is not empty; bring its bed down first, or choose another --dir")
    return directory


def _told(directory: Path | None) -> Path:
    if directory is None:
        raise click.UsageError("which test bed? give --dir, or set STEWARD_TESTBED as `steward-testbed up` prints it")
    return directory


def _find(directory: Path | None) -> Bed:
    return beds.find(_told(directory))


def _overrides(words: tuple[str, ...]) -> Mapping[str, Mapping[str, object]]:
    """`repair.settle_s=1` as {"repair": {"settle_s": 1}}; what is no JSON is a string."""
    found: dict[str, dict[str, object]] = {}
    for word in words:
        name, sign, value = word.partition("=")
        section, dot, key = name.rpartition(".")
        if not (sign and dot and section and key):
            raise click.UsageError(f"--set {word}: write SECTION.KEY=VALUE, for example repair.settle_s=1.0")
        try:
            found.setdefault(section, {})[key] = json.loads(value)
        except ValueError:
            found.setdefault(section, {})[key] = value
    return found


def _table(seen: BedStatus) -> str:
    services = ", ".join(f"{name} {'up' if runs else 'DOWN'}" for name, runs in seen.services.items())
    lines = [f"{seen.backend.value} bed, Slurm {seen.slurm}, in {seen.dir}", services]
    lines += [f"{node.name:6} {node.power.value:8} {node.slurm or '?':12} {node.instance}" for node in seen.nodes]
    lines += [f"fault in force: {each}" for each in seen.faults]
    return "\n".join(lines)


EXAMPLES = {
    "up": ('eval "$(steward-testbed up --nodes 4)"', "steward-testbed up --gpus 2 --set repair.settle_s=1.0"),
    "down": ("steward-testbed down",),
    "inject": ("steward-testbed inject kill-node n2",),
    "restore": ("steward-testbed restore",),
    "status": ("steward-testbed status --json",),
}
add_examples(testbed, "", EXAMPLES)
