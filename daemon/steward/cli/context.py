"""What all commands share: where the head is, and whether the answer is for people or for programs."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from steward.adapters.munge import Munge
from steward.adapters.settings_path import settings_path
from steward.client import Client, HeadError
from steward.ports import PortError

if TYPE_CHECKING:
    from steward.model.settings import Settings

P = ParamSpec("P")
_DEFAULT_URL = "http://127.0.0.1:6860"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Made once for each call of `steward`."""

    url: str
    as_json: bool
    munge_socket: str
    ca: str = ""
    cluster: str = ""
    """Of the head at `url`, where the settings say so."""

    def client(self) -> Client:
        return Client(self.url, self._prove, self.ca, cluster=self.cluster)

    def _prove(self, payload: bytes) -> str:
        return Munge(self.munge_socket).encode(payload)


def context_for(url: str | None, config: Path | None, as_json: bool) -> Context:
    """`url` as given, else from STEWARD_URL, else from the settings, else the default port of this machine."""
    settings = _settings(config)
    scheme = "https" if settings and settings.api.tls_certificate else "http"
    http = f"{scheme}://{settings.head.http}" if settings else _DEFAULT_URL
    socket = settings.cluster.munge_socket if settings else None
    elsewhere = url or os.environ.get("STEWARD_URL")
    return Context(
        url=elsewhere or http.replace("//0.0.0.0:", "//127.0.0.1:"),
        as_json=as_json,
        munge_socket=str(socket or os.environ.get("STEWARD_MUNGE_SOCKET", "")),
        ca=str(settings.api.tls_ca or "") if settings else "",
        cluster=settings.cluster.name if settings and not elsewhere else "",
    )


def _settings(config: Path | None) -> "Settings | None":
    """None where there is no file, as on a login node, which needs nothing of what reads it; a wrong file is an error,
    not a default."""
    if not settings_path(config, os.environ).exists() and config is None:
        return None
    from steward.cli.local_settings import local_settings  # noqa: PLC0415

    return local_settings(config)


def one_line_errors(command: Callable[P, None]) -> Callable[P, None]:
    """What went wrong as one line on stderr and exit status 1."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (HeadError, PortError) as error:
            raise click.ClickException(str(error)) from error

    return guarded


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2))


JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def wants_json(context: Context, as_json: bool) -> bool:
    """`steward --json nodes` and `steward nodes --json` are the same."""
    return as_json or context.as_json
