"""`steward config`: is the file right, what is in force, an old file in today's words, and the page about it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from steward.adapters.settings_file import load, migrated, rewrite
from steward.adapters.settings_path import settings_path
from steward.adapters.slurm.survey import survey
from steward.checks.known import in_force
from steward.checks.page import checks_page
from steward.model.port_error import PortError
from steward.model.settings import Settings, SettingsError
from steward.model.settings.doc import settings_page
from steward.workflows.site_settings import logins_of, misfits

_FILE = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    default=lambda: click.get_current_context().find_root().params.get("file"),  # `steward --config FILE config ...`
    help="Settings file (else STEWARD_CONFIG).",
)


@click.group()
def config() -> None:
    """Check and show the settings."""


@config.command()
@_FILE
@click.option("--offline", is_flag=True, help="Do not ask Slurm: only the file itself is judged.")
def check(file: Path | None, offline: bool) -> None:
    """Check the settings, and compare them with Slurm. Exit status 1, and what to correct, when they are wrong."""
    settings, where = _read(file), settings_path(file, os.environ)
    note = "; Slurm was not asked" if offline else _compare(settings, where)
    click.echo(f"{where}: valid; {_counted(len(settings.slots()))} may be repaired{note}")


def _compare(settings: Settings, where: Path) -> str:
    """Slurm that does not answer makes no file wrong: the note says that it was not compared."""
    try:
        site = survey(settings.cluster.slurm_conf, settings.cluster.command_timeout_s, logins_of(settings))
    except PortError as error:
        return f"; not compared with Slurm, which does not answer: {error}"
    if problems := misfits(settings, site):
        raise click.ClickException(str(SettingsError(str(where), problems)))
    return f", as Slurm has them ({len(site.nodes)} nodes)"


@config.command()
@_FILE
def show(file: Path | None) -> None:
    """Print every setting in force, defaults included, as JSON."""
    settings = _read(file)
    click.echo(json.dumps({**settings.model_dump(mode="json"), "checks": in_force(settings.checks)}, indent=2))


@config.command()
@_FILE
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.argument("other", metavar="[FILE]", type=click.Path(path_type=Path), required=False)
def migrate(file: Path | None, dry_run: bool, other: Path | None) -> None:
    """Rewrite a settings file of an earlier version in today's words. Comments and order stay; the old file is kept as
    FILE.before-migrate. Exit status 1, and nothing is changed, when the file is wrong."""
    file = other or file
    where = settings_path(file, os.environ)
    try:
        new = migrated(file, os.environ)
        kept = rewrite(file, os.environ, new.text) if new.lines and not dry_run else None
    except (SettingsError, OSError) as error:
        raise click.ClickException(f"{error}\nNothing was changed.") from error
    for line in new.lines:
        click.echo(f"{where}: {line}")
    click.echo(f"{where}: {_outcome(new.lines, kept)}")


def _outcome(lines: Sequence[str], kept: Path | None) -> str:
    if not lines:
        return "nothing to change"
    return f"rewritten; the old file is {kept}" if kept else "not changed (--dry-run)"


@config.command()
def doc() -> None:
    """Print docs/config.md."""
    click.echo(settings_page(checks_page()), nl=False)


def _counted(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes or 'no'} nodes"


def _read(file: Path | None) -> Settings:
    try:
        return load(file, os.environ)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
