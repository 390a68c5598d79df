"""Prepare Slurm for quotas (`steward quota setup`), and look whether it is prepared (`steward quota doctor`).

Both run where Slurm's commands work, as an administrator of Slurm.
"""

import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict

import click

from steward.adapters.slurm.accounting import SlurmAccounting
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.config import SlurmConfig
from steward.cli.context import Context, print_json, with_json
from steward.cli.settings_option import named_file, read_settings
from steward.cli.show import line, table
from steward.model.accounting import why_no_team
from steward.model.agent_tables import ClusterSettings
from steward.model.partition import Partition
from steward.model.quota import Strategy
from steward.model.text import printable
from steward.ports import PortError
from steward.workflows.doctor import Health, warn
from steward.workflows.doctor_quota import Site, lines
from steward.workflows.quota_setup import Setup, carry_out, needed

_TEAMS = click.argument("teams", nargs=-1)


@click.command()
@_TEAMS
@click.option("--apply", "apply_it", is_flag=True, help="Run the sacctmgr commands; slurm.conf stays yours to write.")
@with_json
def setup(context: Context, teams: tuple[str, ...], apply_it: bool) -> None:
    """Show what Slurm needs before teams share it. Lines of slurm.conf and sacctmgr commands.

    Only accounts and QOS of Steward's own are made; accounts that are there keep their users, QOS and limits.
    """
    known = _teams(context, teams)
    site, port = _look(known)
    wanted = needed(site, [team for team, borrows in known.items() if borrows])
    if context.as_json:
        print_json({"slurm.conf": wanted.conf, "commands": list(wanted.commands(site.picture.cluster))})
    else:
        _show_needed(wanted, site, apply_it=apply_it)
    if apply_it:
        carry_out(wanted, site, port)
        line(f"done for {', '.join(known)}" if known else "nothing to do: no team has a quota", "green")


@click.command()
@_TEAMS
@with_json
def doctor(context: Context, teams: tuple[str, ...]) -> None:
    """Check whether quotas can work with this Slurm. Exit status 1 when something is bad."""
    site, _ = _look(_teams(context, teams))
    found = lines(site)
    if not teams:
        found += [
            warn("quota", text, "steward quota list") for text in context.client().object("/v1/quotas")["warnings"]
        ]
    if context.as_json:
        print_json([{**asdict(each), "health": each.health.value} for each in found])
    else:
        rows = [(each.health.value, each.topic, each.text, each.remedy) for each in found]
        table(("", "TOPIC", "FOUND", "REMEDY"), rows, empty="Nothing was checked.")
    if any(each.health is Health.BAD for each in found):
        sys.exit(1)


def _teams(context: Context, named: tuple[str, ...]) -> Mapping[str, bool]:
    """Return the teams, each with whether it may borrow."""
    # No head is asked for named teams, so that none need run.
    for name in named:
        if why := why_no_team(name):
            raise click.ClickException(f"'{printable(name, 40)}' cannot be a team: {why}. Nothing was changed.")
    if named:
        return dict.fromkeys(named, True)
    borrows = Strategy.LEND_AND_BORROW.value
    return {str(each["team"]): each["strategy"] == borrows for each in context.client().object("/v1/quotas")["teams"]}


def _cluster() -> ClusterSettings:
    return read_settings(named_file()).cluster


def _look(teams: Mapping[str, bool]) -> tuple[Site, SlurmAccounting]:
    cluster = _cluster()
    slurm = CommandLineSlurm(conf=str(cluster.slurm_conf), timeout_s=cluster.command_timeout_s)
    port = SlurmAccounting(conf=str(cluster.slurm_conf), jobs=slurm.jobs, timeout_s=cluster.command_timeout_s)
    try:
        config = SlurmConfig(conf=cluster.slurm_conf, timeout_s=cluster.command_timeout_s).config()
        gres = {node.gres for node in slurm.nodes().values()}
        picture, doors = port.picture(), _partitions(slurm)
        return Site(picture=picture, config=config, gres=gres, teams=tuple(teams), partitions=doors), port
    except PortError as error:
        raise click.ClickException(f"Slurm cannot be asked here: {error}") from error


def _partitions(slurm: CommandLineSlurm) -> Collection[Partition] | None:
    """Return the partitions, or None if they cannot be read."""
    try:
        return slurm.partitions().values()
    except PortError:
        return None


def _show_needed(wanted: Setup, site: Site, *, apply_it: bool) -> None:
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
