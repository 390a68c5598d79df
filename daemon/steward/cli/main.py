"""The `steward` command: all its parts."""

from pathlib import Path

import click

from steward import __version__
from steward.cli.breaker import breaker
from steward.cli.check import check
from steward.cli.checks import checks
from steward.cli.cluster import cluster
from steward.cli.config import config
from steward.cli.context import context_for
from steward.cli.deep import deep, show
from steward.cli.deep import list_ as list_deep
from steward.cli.group import group
from steward.cli.health import lemons
from steward.cli.look import cases, doctor, events, explain, jobs, nodes, plan, status
from steward.cli.node import node
from steward.cli.notify import notify
from steward.cli.order import pause, resume_actions
from steward.demo.command import demo
from steward.testbed.cli import testbed

_NO_HEAD = ("config", "testbed", "demo")


@click.group()
@click.version_option(__version__)
@click.option("--url", default=None, help="Where the head is (else STEWARD_URL, else head.http of the settings).")
@click.option("--config", "file", type=click.Path(path_type=Path), default=None, help="Settings file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def main(context: click.Context, url: str | None, file: Path | None, as_json: bool) -> None:
    """Faulty Slurm nodes found, taken out and replaced; jobs that resume by themselves."""
    if context.invoked_subcommand not in _NO_HEAD:
        context.obj = context_for(url, file, as_json)


for command in (
    status,
    nodes,
    cases,
    jobs,
    events,
    explain,
    doctor,
    plan,
    pause,
    resume_actions,
    breaker,
    lemons,
    check,
    checks,
    notify,
    group,
    node,
    cluster,
    config,
    testbed,
    demo,
):
    main.add_command(command)
for command in (deep, list_deep, show):
    check.add_command(command)
