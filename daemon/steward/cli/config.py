"""`steward config`: check, show and document the settings."""

import json
import os
from pathlib import Path

import click

from steward.adapters.settings_path import settings_path
from steward.adapters.slurm.survey import survey
from steward.checks.catalogue import checks_page
from steward.checks.known import in_force
from steward.cli.head_unit import runs_as
from steward.cli.settings_option import file_option, read_settings
from steward.head import choose
from steward.head.settings_here import problems_here
from steward.model.port_error import PortError
from steward.model.settings import Problem, Settings, SettingsError
from steward.model.settings.doc import settings_page
from steward.workflows.site_settings import contradictions_with_slurm, logins_of

_FILE = file_option("Settings file (else STEWARD_CONFIG).")


@click.group()
def config() -> None:
    """Check and show the settings."""


@config.command()
@_FILE
@click.option("--offline", is_flag=True, help="Do not ask Slurm: only the file itself is judged.")
def check(file: Path | None, offline: bool) -> None:
    """Check the settings, and compare them with Slurm. Exit status 1, and what to correct, when they are wrong."""
    settings, where = read_settings(file), settings_path(file, os.environ)
    if not offline:
        _check_files(settings, where)
    note = "; Slurm was not asked" if offline else _compare(settings, where)
    click.echo(f"{where}: valid; {_counted(len(settings.slots()))} may be repaired{note}")


def _check_files(settings: Settings, where: Path) -> None:
    """Raise ClickException if a file, a folder or a program that the settings name cannot be used here."""
    problems: list[Problem] = []
    try:
        if os.geteuid() in choose.trusted_uids(settings):  # others may not read these files
            choose.check_files(settings)
            problems = problems_here(settings)
    except PortError as error:
        raise click.ClickException(f"{where}: {error}") from None
    if problems:
        raise click.ClickException(str(SettingsError(str(where), problems)))


def _compare(settings: Settings, where: Path) -> str:
    """Return a note about the comparison with Slurm. Raises ClickException if the settings do not fit Slurm."""
    try:
        site = survey(settings.cluster.slurm_conf, settings.cluster.command_timeout_s, logins_of(settings))
    except PortError as error:
        return f"; not compared with Slurm, which does not answer: {error}"
    if problems := contradictions_with_slurm(settings, site):
        raise click.ClickException(str(SettingsError(str(where), problems)))
    user, slurm_user = runs_as(), settings.cluster.slurm_user
    if user and user not in ("root", slurm_user):
        raise click.ClickException(
            f"stewardd's unit runs as {user}, SlurmUser is {slurm_user}: no agent would believe it. "
            f"`systemctl edit stewardd`: [Service], User={slurm_user} and Group="
        )
    return f", as Slurm has them ({len(site.nodes)} nodes)"


@config.command()
@_FILE
def show(file: Path | None) -> None:
    """Print every setting of the file, defaults included, as JSON."""
    settings = read_settings(file)
    click.echo(json.dumps({**settings.model_dump(mode="json"), "checks": in_force(settings.checks)}, indent=2))


@config.command()
def doc() -> None:
    """Print docs/config.md."""
    click.echo(settings_page(checks_page()), nl=False)


def _counted(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes or 'no'} nodes"
