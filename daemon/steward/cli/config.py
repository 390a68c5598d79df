"""`steward config` and `steward init`: check, show, document and write the settings."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import click

from steward.adapters.files import write_whole
from steward.adapters.settings_file import load
from steward.adapters.settings_path import settings_path
from steward.adapters.slurm.config import survey
from steward.checks.catalogue import checks_page
from steward.checks.known import in_force
from steward.cli.context import one_line_errors
from steward.cli.head_unit import let_run_as, runs_as
from steward.cli.show import line
from steward.model.port_error import Permanent, PortError
from steward.model.settings import Settings, SettingsError, parse
from steward.model.settings.doc import settings_page
from steward.model.slurm_site import SlurmSite
from steward.model.text import cause
from steward.workflows.first_settings import draft
from steward.workflows.site_settings import logins_of, misfits


def named_file() -> Path | None:
    """Return the file of `steward --config FILE ...`."""
    file: Path | None = click.get_current_context().find_root().params.get("file")
    return file


def read_settings(file: Path | None) -> Settings:
    """Return the settings. Raises ClickException if the file is missing or wrong."""
    try:
        return load(file, os.environ)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


def _file(help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--config", "file", type=click.Path(path_type=Path), default=named_file, help=help)


_FILE = _file("Settings file (else STEWARD_CONFIG).")


@click.group()
def config() -> None:
    """Check and show the settings."""


@config.command()
@_FILE
@click.option("--offline", is_flag=True, help="Do not ask Slurm: only the file itself is judged.")
def check(file: Path | None, offline: bool) -> None:
    """Check the settings, and compare them with Slurm. Exit status 1, and what to correct, when they are wrong."""
    settings, where = read_settings(file), settings_path(file, os.environ)
    note = "; Slurm was not asked" if offline else _compare(settings, where)
    click.echo(f"{where}: valid; {_counted(len(settings.slots()))} may be repaired{note}")


def _compare(settings: Settings, where: Path) -> str:
    """Return a note about the comparison with Slurm. Raises ClickException if the settings do not fit Slurm."""
    try:
        site = survey(settings.cluster.slurm_conf, settings.cluster.command_timeout_s, logins_of(settings))
    # The file may be right although Slurm does not answer.
    except PortError as error:
        return f"; not compared with Slurm, which does not answer: {error}"
    if problems := misfits(settings, site):
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
    """Print every setting in force, defaults included, as JSON."""
    settings = read_settings(file)
    click.echo(json.dumps({**settings.model_dump(mode="json"), "checks": in_force(settings.checks)}, indent=2))


@config.command()
def doc() -> None:
    """Print docs/config.md."""
    click.echo(settings_page(checks_page()), nl=False)


def _counted(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes or 'no'} nodes"


_DEFAULT_CONF = "/etc/slurm/slurm.conf"
_ASK_S = 10.0


@click.command()
@_file("File to write (else STEWARD_CONFIG, else /etc/steward/steward.toml).")
@click.option("--provider", type=click.Choice(["static", "power", "none"]), default=None, help="What repairs machines.")
@click.option("--act", is_flag=True, help="Repair nodes from the start; without it Steward only reports.")
@click.option("--login-hosts", is_flag=True, help="Let users ask for their jobs from other hosts (TCP 6862).")
@click.option("--force", is_flag=True, help="Replace a file that is there; the old one is kept as FILE.old.")
@click.option("--print", "only_print", is_flag=True, help="Print the file instead of writing it.")
@one_line_errors
def init(file: Path | None, provider: str | None, act: bool, login_hosts: bool, force: bool, only_print: bool) -> None:
    """Read Slurm and write a first settings file, with comments. Each guess is printed with its reason."""
    where = settings_path(file, os.environ)
    if where.exists() and not (force or only_print):
        raise click.ClickException(f"{where} is there already: keep it, or replace it with --force")
    conf = os.environ.get("SLURM_CONF", _DEFAULT_CONF)
    site = _survey(Path(conf))
    made = draft(site, conf=conf, provider=provider or "", act=act, login_hosts=login_hosts)
    parse(made.text, source=str(where), env={})  # what we write is what the daemons take
    if only_print:
        click.echo(made.text, nl=False)
        return
    _write(where, made.text)
    if where == settings_path(None, {}):  # the file that the unit reads
        _write_unit(site.slurm_user)
    line(f"{where} is written. Guessed:", "bold")
    for guess in made.guesses:
        line(f"  {guess}")
    line("Read it, then: steward config check")


def _survey(conf: Path) -> SlurmSite:
    """Return the facts about Slurm. Raises ClickException, with what to do, if Slurm does not answer."""
    try:
        return survey(conf, _ASK_S)
    except Permanent:
        raise
    except PortError as error:
        where = f"{conf} is read: SLURM_CONF names another" if conf.exists() else f"{conf} is not there: set SLURM_CONF"
        remedy = "run this on the controller, where `scontrol ping` must say UP"
        raise click.ClickException(f"Slurm does not answer here; {remedy} ({where}): {error}") from error


def _write_unit(user: str) -> None:
    try:
        if written := let_run_as(user):
            line(f"{written} is written: stewardd runs as {user}, which is SlurmUser")
    except (OSError, KeyError) as error:
        remedy = f"`systemctl edit stewardd`: [Service], User={user} and Group="
        raise click.ClickException(
            f"stewardd's unit cannot be told to run as SlurmUser ({cause(error)}); {remedy}"
        ) from error


def _write(where: Path, text: str) -> None:
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        if where.exists():
            where.replace(where.with_name(f"{where.name}.old"))
        write_whole(where, text)
        where.chmod(0o644)
    except OSError as error:
        raise click.ClickException(f"{where} cannot be written ({cause(error)}): run this as root") from error
