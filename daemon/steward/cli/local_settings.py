"""The settings of this machine, for commands: half of what `steward` imports, so only where there is a file."""

import os
from pathlib import Path

import click

from steward.adapters.settings_file import load
from steward.model.settings import Settings, SettingsError


def local_settings(config: Path | None) -> Settings:
    """Raises ClickException for a wrong file."""
    try:
        return load(config, os.environ)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
