"""The settings file of a command."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from steward.adapters.settings_file import load
from steward.model.settings import Settings, SettingsError


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


def file_option(help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option that names the settings file."""
    return click.option("--config", "file", type=click.Path(path_type=Path), default=named_file, help=help)
