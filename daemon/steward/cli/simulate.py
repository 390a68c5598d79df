"""`steward simulate`: try settings on a simulated cluster; needs no head."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from steward.adapters.settings_file import desired, load_changed
from steward.model.resume_mode import ResumeMode
from steward.model.setting_types import ProviderKind
from steward.model.settings import Settings, SettingsError
from steward.model.text import cause
from steward.simulate.lines import text_of
from steward.simulate.options import MOST_NODES, axis_of, bounded, jobs_of, numbers_of
from steward.simulate.picture import picture_of
from steward.simulate.presets import HABITS, LONG_RUN, PRESETS, RECOMMENDED, Preset
from steward.simulate.run import Scenario, SimResult
from steward.simulate.run import simulate as run_one
from steward.simulate.study import Job, Run, one_by_one, study
from steward.simulate.traces import read_trace, steady

_DAY_S = 86_400.0
_TIMES = ("interval", "save", "durable", "start")
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--llama3", "preset", flag_value="llama3", help="Llama 3's 54 days: 2,048 nodes, 419 interruptions.")
@click.option("--rsc1", "preset", flag_value="rsc1", help="Meta's RSC-1: 6.50 faults per 1,000 node-days.")
@click.option("--rate", type=click.FloatRange(0.01, 10_000), metavar="N", help="N faults per 1,000 node-days.")
@click.option("--trace", type=_FILE, help="Faults of a file, with lines of hours,kind,node.")
@click.option("--site", type=_FILE, help="The settings to try; else the recommended ones.")
@click.option("--set", "changes", multiple=True, metavar="TABLE.KEY=VALUE", help="Change a setting; repeatable.")
@click.option("--jobs", metavar="COUNTxNODES,...", help="The jobs, which run all the time.")
@click.option("--spares", type=click.IntRange(0, MOST_NODES), help="Nodes beyond those that the jobs need.")
@click.option("--days", metavar="TIME", help="The simulated time, such as 54d.")
@click.option("--interval", metavar="TIME", help="Work between two checkpoints.")
@click.option("--save", metavar="TIME", help="The pause of a checkpoint.")
@click.option("--durable", metavar="TIME", help="From that pause until the checkpoint counts.")
@click.option("--start", metavar="TIME", help="From the start of a run to its first step.")
@click.option("--auto-resume", default=LONG_RUN, show_default=True, help="What the jobs ask for.")
@click.option("--assume", multiple=True, metavar="NAME=NUMBER", help="Change an assumption; repeatable.")
@click.option("--sweep", multiple=True, metavar="OPTION=LOW..HIGH", help="Try values of spares, interval, save, start.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed.")
@click.option("--runs", type=click.IntRange(1, 1000), default=5, show_default=True, help="Seeds to try.")
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes to use.")
@click.option("--svg", type=_FILE, help="Write a picture to this file, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("more", nargs=-1, metavar="[OPTION=LOW..HIGH]...")
@click.pass_context
def simulate(context: click.Context, /, **asked: Any) -> None:
    """Try settings on a simulated cluster.

    The policy is the real one; Slurm, machines, faults and jobs are simulated. Shows where the jobs' time goes, beside
    plain Slurm and a system that replaces nodes while the job waits. Needs no head, and changes nothing.
    """
    if asked["more"] and not asked["sweep"]:
        raise click.UsageError(f"{asked['more'][0]}: ranges stand after --sweep")
    try:
        scenario, says = _scenario(asked)
        axes = [axis_of(text) for text in (*asked["sweep"], *asked["more"])]
    except (ValueError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
    seeds = range(asked["seed"], asked["seed"] + asked["runs"])
    found = study(scenario, says, seeds, axes, _in_processes(asked["workers"]))
    if asked["svg"] is not None:
        _write(asked["svg"], picture_of(found))
    of_all = bool(context.parent and context.parent.params["as_json"])
    click.echo(json.dumps(found, indent=2) + "\n" if asked["as_json"] or of_all else text_of(found), nl=False)


def _scenario(asked: Mapping[str, Any]) -> tuple[Scenario, str]:
    """Return the scenario, and what its faults are from. Raises ValueError, SettingsError."""
    settings = load_changed(asked["site"], RECOMMENDED, asked["changes"], os.environ)
    known = _known(asked)
    times: dict[str, Any] = {f"{name}_s": bounded(name, asked[name]) for name in _TIMES if asked[name]}
    scenario = Scenario(
        source=known.source,
        days=bounded("days", asked["days"]) / _DAY_S if asked["days"] else known.days,
        jobs=jobs_of(asked["jobs"] or known.jobs, replace(HABITS, **times)),
        spares=known.spares if asked["spares"] is None else asked["spares"],
        want=desired(settings),
        keeps_hot=asked["site"] is None and not any(each.startswith("resume.hot_spares=") for each in asked["changes"]),
        fixed=_is_fixed(settings),
        reboots=_reboots(settings),
        mode=ResumeMode.parse(asked["auto_resume"]),
        numbers=numbers_of(asked["assume"]),
        least_beat_s=settings.head.heartbeat_s,
    )
    if asked["trace"] is None:
        return scenario, known.says
    source = read_trace(_read(asked["trace"]), str(asked["trace"]), scenario.nodes)
    return replace(scenario, source=source), f"{len(source.lines):,} faults of the trace"


def _known(asked: Mapping[str, Any]) -> Preset:
    """Return the preset, or one for a rate or a trace. Raises ValueError unless exactly one source is named."""
    named = [name for name in ("preset", "rate", "trace") if asked[name] is not None]
    if len(named) != 1:
        raise ValueError("give one source of faults: --llama3, --rsc1, --rate or --trace")
    if asked["preset"] is not None:
        return PRESETS[asked["preset"]]
    says = f"{asked['rate']} faults per 1,000 node-days, of kinds as in Llama 3's report"
    return replace(PRESETS["rsc1"], source=steady(f"rate {asked['rate']}", asked["rate"] or 0.0), says=says)


def _is_fixed(settings: Settings) -> bool:
    """Return whether people repair the machines; a provider makes new ones if a group says so."""
    return all(group.provider in (ProviderKind.STATIC, ProviderKind.POWER) for group in settings.groups)


def _reboots(settings: Settings) -> bool:
    return all(settings.reboots(group.provider) for group in settings.groups)


def _in_processes(workers: int) -> Run:
    if workers == 1:
        return one_by_one

    def run(jobs: Sequence[Job]) -> Iterable[SimResult]:
        with ProcessPoolExecutor(workers) as pool:
            return list(pool.map(run_one, *zip(*jobs, strict=True)))

    return run


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path}: cannot be read ({cause(error)})") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written ({cause(error)})") from None
