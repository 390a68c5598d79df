"""What all commands share: where the head is, and whether the answer is for people or for programs."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click

from steward.adapters.munge import Munge
from steward.cli.head_place import local_place
from steward.client import Client, HeadError
from steward.model.port_error import PortError

P = ParamSpec("P")


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
    """`url` as given, else from STEWARD_URL, else from the settings (on a login host: `head.users_http`), else
    the default port of this machine."""
    elsewhere = url or os.environ.get("STEWARD_URL")
    place = local_place(config, is_needed=not elsewhere)
    return Context(
        url=elsewhere or place.url,
        as_json=as_json,
        munge_socket=place.munge_socket or os.environ.get("STEWARD_MUNGE_SOCKET", ""),
        ca=place.ca,
        cluster="" if elsewhere else place.cluster,
    )


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
