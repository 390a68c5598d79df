"""`steward demo`."""

import json
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from steward.demo.report import Result, as_json, as_table
from steward.demo.screen import Screen
from steward.demo.story import NODES, Script, play
from steward.ports import PortError
from steward.testbed import beds
from steward.testbed.bed import Backend, BedError, BedSpec
from steward.testbed.ending import stoppable, take_down

_WIDTH = 110


@click.command()
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write the figures here."
)
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Also save the timeline as a picture.")
@click.option("--backend", type=click.Choice([each.value for each in Backend]), default="local", show_default=True)
@click.option("--keep", is_flag=True, help="Leave the cluster up, to look around.")
def demo(json_file: Path | None, svg: Path | None, backend: str, keep: bool) -> None:
    """A cluster, a training job, three faults: watch the job come back each time."""
    spec = BedSpec(
        dir=Path(tempfile.mkdtemp(prefix="steward-demo-", dir="/tmp")), backend=Backend(backend), nodes=NODES
    )
    console = wide(Console(record=svg is not None))
    bed = beds.make(spec)
    try:
        with stoppable(), Screen(console) as screen:
            bed.up(lambda line: screen.tell("cluster", line))
            result = play(bed, screen, Script())
    except (BedError, PortError) as error:
        raise click.ClickException(f"{error} (again with --keep to look around)") from error
    finally:
        if keep:
            console.print(f"still up: export STEWARD_TESTBED={spec.dir}; later: steward testbed down")
        else:
            take_down(bed, lambda line: console.print(line))
    _tell(console, result)
    if json_file:
        json_file.write_text(json.dumps(as_json(result), indent=2) + "\n")
    if svg:
        console.save_svg(str(svg), title="steward demo")
    sys.exit(0 if result.weights_identical else 1)


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
