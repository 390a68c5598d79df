"""`python -m examples.demo`, which `make demo` runs: training jobs come back after faults."""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from examples.demo.elastic import ELASTIC_NODES, ElasticScript, elastic_json, play_elastic, tell_elastic
from examples.demo.measure import Result, as_json, as_table
from examples.demo.story import NODES, Script, play
from examples.demo.watch import Screen
from steward.ports import PortError
from steward_bed import beds
from steward_bed.bed import Backend, Bed, BedError, BedSpec
from steward_bed.beds import stoppable, take_down

_WIDTH = 110


@click.command()
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write the figures here."
)
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Also save the timeline as a picture.")
@click.option("--backend", type=click.Choice([each.value for each in Backend]), default="local", show_default=True)
@click.option("--elastic", is_flag=True, help="A run that grows, shrinks and loses a node, instead.")
@click.option("--keep", is_flag=True, help="Leave the cluster up, to look around.")
def demo(json_file: Path | None, svg: Path | None, backend: str, elastic: bool, keep: bool) -> None:
    """See a training job come back after three faults."""
    nodes, folder = ELASTIC_NODES if elastic else NODES, tempfile.mkdtemp(prefix="steward-demo-", dir="/tmp")
    spec = BedSpec(dir=Path(folder), backend=Backend(backend), nodes=nodes)
    console = wide(Console(record=svg is not None))
    bed = beds.make(spec)
    try:
        with stoppable(), Screen(console) as screen:
            bed.up(lambda line: screen.tell("cluster", line))
            told = _elastic(bed, screen) if elastic else _faults(bed, screen)
    except (BedError, PortError) as error:
        raise click.ClickException(f"{error} (again with --keep to look around)") from error
    finally:
        if keep:
            console.print(f"still up: export STEWARD_TESTBED={spec.dir}; later: steward-testbed down")
        else:
            take_down(bed, lambda line: console.print(line))
    told.show(console)
    if json_file:
        json_file.write_text(json.dumps(told.as_json, indent=2) + "\n")
    if svg:
        console.save_svg(str(svg), title="make demo")
    sys.exit(0 if told.is_right else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The end of a demo."""

    show: Callable[[Console], None]
    as_json: dict[str, Any]
    is_right: bool


def _faults(bed: Bed, screen: Screen) -> _Told:
    result = play(bed, screen, Script())
    return _Told(
        show=lambda console: _tell(console, result), as_json=as_json(result), is_right=result.weights_identical
    )


def _elastic(bed: Bed, screen: Screen) -> _Told:
    result = play_elastic(bed, screen, ElasticScript())
    return _Told(
        show=lambda console: tell_elastic(console, result), as_json=elastic_json(result), is_right=result.is_right
    )


def wide(console: Console) -> Console:
    """At least as wide as the table, also where nothing says how wide the output is."""
    if console.width < _WIDTH or not console.is_terminal:
        console.width = _WIDTH
    return console


def _tell(console: Console, result: Result) -> None:
    console.print(as_table(result.faults))
    word = "identical, bit for bit" if result.weights_identical else "NOT the same"
    console.print(f"final weights with three faults and without any: {word} (sha256 {result.weights[:16]}...)")
    console.print(f"{result.steps} steps, {result.accuracy:.1%} of the digits right, {result.took_s:.0f} s in all")


if __name__ == "__main__":
    demo(prog_name="demo")
