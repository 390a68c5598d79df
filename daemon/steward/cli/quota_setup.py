"""`steward quota setup` and `steward quota doctor`: run where Slurm's commands work, as an administrator of Slurm."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from steward.adapters.settings_file import load
from steward.adapters.slurm.accounting import SlurmAccounting
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.config import SlurmConfig
from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.show import line, table
from steward.model.quota import Strategy
from steward.model.settings import SettingsError
from steward.ports import PortError
from steward.workflows.doctor import Health
from steward.workflows.doctor_quota import Site, lines
from steward.workflows.quota_setup import Setup, carry_out, needed

_TEAMS = click.argument("teams", nargs=-1)


@click.command()
@_TEAMS
@click.option("--apply", "apply_it", is_flag=True, help="Run the sacctmgr commands; slurm.conf stays yours to write.")
@JSON
@click.pass_obj
@one_line_errors
def setup(context: Context, teams: tuple[str, ...], apply_it: bool, as_json: bool) -> None:
    """What Slurm needs before TEAMS (those with a quota) can share it: lines of slurm.conf, and sacctmgr commands.

    Only accounts and QOS of Steward's own are made; accounts that are there keep their users, QOS and limits.
    """
    known = _teams(context, teams)
    site, port = _look(known)
    wanted = needed(site, [team for team, borrows in known.items() if borrows])
    if wants_json(context, as_json):
        print_json({"slurm.conf": wanted.conf, "commands": list(wanted.commands(site.picture.cluster))})
    else:
        _tell(wanted, site, apply_it=apply_it)
    if apply_it:
        carry_out(wanted, site, port)
        line(f"done for {', '.join(known)}" if known else "nothing to do: no team has a quota", "green")


@click.command()
@_TEAMS
@JSON
@click.pass_obj
@one_line_errors
def doctor(context: Context, teams: tuple[str, ...], as_json: bool) -> None:
    """Can quotas work here, and which traps does this Slurm have? Exit status 1 when something is bad."""
    site, _ = _look(_teams(context, teams))
    found = lines(site)
    if wants_json(context, as_json):
        print_json([{**asdict(each), "health": each.health.value} for each in found])
    else:
        rows = [(each.health.value, each.topic, each.text, each.remedy) for each in found]
        table(("", "TOPIC", "FOUND", "REMEDY"), rows, empty="Nothing was looked at.")
    if any(each.health is Health.BAD for each in found):
        sys.exit(1)


def _teams(context: Context, named: tuple[str, ...]) -> Mapping[str, bool]:
    """Team -> whether it may borrow. Those that are named are not asked for, so that no head need run."""
    if named:
        return dict.fromkeys(named, True)
    borrows = Strategy.LEND_AND_BORROW.value
    return {str(each["team"]): each["strategy"] == borrows for each in context.client().quotas()["teams"]}


def _look(teams: Mapping[str, bool]) -> tuple[Site, SlurmAccounting]:
    given = click.get_current_context().find_root().params.get("file")
    try:
        cluster = load(given if isinstance(given, Path) else None, os.environ).cluster
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    slurm = CommandLineSlurm(conf=str(cluster.slurm_conf), timeout_s=cluster.command_timeout_s)
    port = SlurmAccounting(conf=str(cluster.slurm_conf), jobs=slurm.jobs, timeout_s=cluster.command_timeout_s)
    try:
        config = SlurmConfig(conf=cluster.slurm_conf, timeout_s=cluster.command_timeout_s).config()
        gres = {node.gres for node in slurm.nodes().values()}
        return Site(picture=port.picture(), config=config, gres=gres, teams=tuple(teams)), port
    except PortError as error:
        raise click.ClickException(f"Slurm cannot be asked here: {error}") from error


def _tell(wanted: Setup, site: Site, *, apply_it: bool) -> None:
    if wanted.is_done:
        line("Slurm has all that it needs.", "green")
    if wanted.conf:
        line("In slurm.conf, by you (restart slurmctld afterwards):", "bold")
        for text in wanted.conf:
            line(text)
    commands = list(wanted.commands(site.picture.cluster))
    if commands:
        line("Now run:" if apply_it else "For --apply, or to run yourself:", "bold")
        for command in commands:
            line(command)
