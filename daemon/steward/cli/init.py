"""`steward init`: write a first settings file from what Slurm says."""

import os
from pathlib import Path

import click

from steward.adapters.files import write_whole
from steward.adapters.settings_path import settings_path
from steward.adapters.slurm.survey import survey
from steward.cli.context import one_line_errors
from steward.cli.head_unit import let_run_as
from steward.cli.settings_option import file_option
from steward.cli.show import line
from steward.model.port_error import Permanent, PortError
from steward.model.settings import parse
from steward.model.slurm_site import SlurmSite
from steward.model.text import cause
from steward.workflows.first_settings import draft

_USUAL = ("/etc/slurm/slurm.conf", "/opt/slurm/etc/slurm.conf")
_ASK_S = 10.0


@click.command()
@file_option("File to write (else STEWARD_CONFIG, else /etc/steward/steward.toml).")
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
    conf = os.environ.get("SLURM_CONF") or next((each for each in _USUAL if Path(each).exists()), _USUAL[0])
    site = _survey(Path(conf))
    made = draft(site, conf=conf, provider=provider or "", act=act, login_hosts=login_hosts)
    parse(made.text, source=str(where), env={})  # what we write must be what the daemons accept
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
    """Return the facts about Slurm. Raises ClickException, with the remedy, if Slurm does not answer."""
    remedy = "run this on the controller, where `scontrol ping` must say UP"
    if not conf.exists():
        raise click.ClickException(f"{conf} is not there; {remedy}, or set SLURM_CONF to the path of its slurm.conf")
    try:
        return survey(conf, _ASK_S)
    except Permanent:
        raise
    except PortError as error:
        where = f"{conf} is read: SLURM_CONF names another"
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
