"""`steward config`: is the file right, what is in force, and the page about it."""

import json
import os
from pathlib import Path

import click

from steward.adapters.settings_file import load
from steward.adapters.settings_path import settings_path
from steward.model.settings import Settings, SettingsError
from steward.model.settings.doc import settings_page

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
def check(file: Path | None) -> None:
    """Read the settings as the daemons do; exit 1 and say what to mend when they are wrong."""
    settings = _read(file)
    click.echo(f"{settings_path(file, os.environ)}: valid; {_counted(len(settings.slots()))} may be repaired")


@config.command()
@_FILE
def show(file: Path | None) -> None:
    """Print every setting in force, defaults included, as JSON."""
    click.echo(json.dumps(_read(file).model_dump(mode="json"), indent=2))


@config.command()
def doc() -> None:
    """Print docs/config.md."""
    click.echo(settings_page(), nl=False)


def _counted(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes or 'no'} nodes"


def _read(file: Path | None) -> Settings:
    try:
        return load(file, os.environ)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
