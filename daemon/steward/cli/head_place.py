"""Where the head is, as the settings file says. The types of all settings take longer to import than all else that
`steward status` does, so only these five keys are read here; `steward config check` judges the whole file."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from steward.adapters.settings_path import settings_path

_DEFAULT = "127.0.0.1:6860"
_REMEDY = "`steward config check` tells more"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlace:
    """The defaults are those of the settings. Paths are empty where the file names none."""

    http: str = _DEFAULT
    has_certificate: bool = False
    ca: str = ""
    cluster: str = ""
    munge_socket: str = ""

    @property
    def url(self) -> str:
        http = f"{'https' if self.has_certificate else 'http'}://{self.http}"
        return http.replace("//0.0.0.0:", "//127.0.0.1:")


def local_place(config: Path | None) -> HeadPlace:
    """The default where there is no file, as on a login node. Raises ClickException for a file that is named and not
    there, and for one that cannot be read."""
    where = settings_path(config, os.environ)
    if config is None and not where.exists():
        return HeadPlace()
    try:
        return place_in(tomllib.loads(where.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{where}: cannot be read ({error}): {_REMEDY}") from error


def place_in(tables: dict[str, Any]) -> HeadPlace:
    """Raises ValueError for a key that is no text."""
    return HeadPlace(
        http=_text(tables, "head", "http", _DEFAULT),
        has_certificate=bool(_text(tables, "api", "tls_certificate")),
        ca=_text(tables, "api", "tls_ca"),
        cluster=_text(tables, "cluster", "name"),
        munge_socket=_text(tables, "cluster", "munge_socket"),
    )


def _text(tables: dict[str, Any], section: str, key: str, default: str = "") -> str:
    table = tables.get(section, {})
    found = table.get(key, default) if isinstance(table, dict) else None
    if not isinstance(found, str):
        raise ValueError(f"{section}.{key} is not text")
    return found
