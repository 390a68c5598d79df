"""Give all commands their context: the head's address, and whether output is for people or for programs."""

import os
import pwd
import re
import socket
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlsplit

import click

from steward.adapters.munge import Munge
from steward.adapters.settings_path import settings_path
from steward.adapters.socket_owner import listeners
from steward.api.user_names import login
from steward.client import Client, Ears, HeadError
from steward.model.ids import JOB_WORD
from steward.model.port_error import PortError
from steward.model.setting_types import head_addresses
from steward.model.text import cause, harmless, json_text, local_time, printable

P = ParamSpec("P")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class IntegerInRange(click.IntRange):
    """An integer within a range, called so in errors and help."""

    name = "integer"


class NumberInRange(click.FloatRange):
    """A number within a range, called so in errors and help."""

    name = "number"


def is_job(text: str) -> bool:
    """Return whether the text is a job as Slurm shows it: `7`, `7_2`, `7_[3-9%2]`, `7+1`, or a step of one."""
    return JOB_WORD.fullmatch(text) is not None


def job_word(_context: click.Context | None, _option: click.Parameter | None, text: str | None) -> str:
    """Return the job as given; empty if none is. Raises click.BadParameter for a word that names no job."""
    if text and not is_job(text):
        raise click.BadParameter(
            f"{printable(text, 40)} is no job: use 17, 17_1 of an array, 17+1 of a heterogeneous job"
        )
    return text or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The context of one call of `steward`."""

    url: str
    """The head's URL; those of several heads are separated by commas."""
    as_json: bool
    munge_socket: str
    ca: str = ""
    cluster: str = ""
    """The settings' name for the cluster of the head at `url`; empty if `url` is not from the settings."""
    slurm_user: str = ""
    """The login name of a head on this machine; empty if `url` is not from the settings."""
    hint: Callable[[], str] = field(default=str, compare=False)
    """Returns what else to do where no head answers at `url`; empty for nothing."""

    printed: set[str] = field(default_factory=set, compare=False)
    """The kinds of remarks already printed beside answers: each is printed once."""

    def client(self) -> Client:
        """Return a client that tells before its answer that the head decides nothing; with `--json` on stderr."""
        return self._client(Ears(self._standstill, self._silence))

    def quiet_client(self) -> Client:
        """Return a client without such remarks, for a screen that has its own place for them."""
        return self._client(Ears())

    def _client(self, ears: Ears) -> Client:
        for url in self.url.split(","):
            self._refuse_stranger(url)
        return Client(self.url, self._prove, self.ca, cluster=self.cluster, ears=ears, hint=self.hint)

    def _refuse_stranger(self, url: str) -> None:
        """Raise HeadError if another ordinary user listens at the URL's port on this machine."""
        # any user may take the port while no stewardd runs, show what he likes, and get our proofs of identity
        if not self.slurm_user:
            return
        strangers = listening_at(url)
        if strangers and strangers.isdisjoint({0, os.geteuid(), *_uid_of(self.slurm_user)}):
            users = ", ".join(map(login, sorted(strangers)))
            raise HeadError(f"{url} belongs to {users}, and not to stewardd: `ss -ltnp`, `systemctl status stewardd`")

    def _standstill(self, said: dict[str, Any]) -> None:
        self._tell("standstill", standstill_line(said), is_error=self.as_json)

    def _silence(self, text: str) -> None:
        self._tell("silence", text, is_error=True)

    def _tell(self, kind: str, text: str, *, is_error: bool) -> None:
        if kind not in self.printed:
            self.printed.add(kind)
            click.secho(harmless(text), err=is_error, fg="red", bold=True)

    def _prove(self, payload: bytes) -> str:
        return Munge(self.munge_socket).encode(payload)


def when(at: float | None) -> str:
    """Return the instant as local time with its zone."""
    return local_time(at) if at else "-"


def standstill_line(said: dict[str, Any]) -> str:
    """Return since when and why nothing is decided, and how old the shown state is (`at`)."""
    return f"decides   nothing since {when(said['since'])}; what is shown is of {when(said['at'])}: {said['why']}"


def context_for(url: str | None, config: Path | None, as_json: bool) -> Context:
    """Return the context for the head at `url`, else at STEWARD_URL, else at the settings' address.

    On a login host the settings' address is `head.users_http`. Without settings it is this machine's default port.
    """
    elsewhere = url or os.environ.get("STEWARD_URL")
    place = local_place(config, is_needed=not elsewhere)
    return Context(
        url=elsewhere or place.url,
        as_json=as_json,
        munge_socket=place.munge_socket or os.environ.get("STEWARD_MUNGE_SOCKET", ""),
        ca=place.ca,
        cluster="" if elsewhere else place.cluster,
        slurm_user="" if elsewhere else place.slurm_user,
        hint=str if elsewhere else place.hint,
    )


def one_line_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Make a command show its error as one line on stderr, with exit status 1."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (HeadError, PortError) as error:
            raise click.ClickException(str(error)) from error

    return guarded


def with_context(command: Callable[Concatenate[Context, P], None]) -> Callable[P, None]:
    """Give a command its context, and make it show its error as one line."""
    return click.pass_obj(one_line_errors(command))


def with_json(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its context and an option `--json`.

    So `steward --json nodes` and `steward nodes --json` are the same.
    """

    @wraps(command)
    def told(context: Context, /, *args: Any, as_json: bool, **kwargs: Any) -> None:
        command(replace(context, as_json=as_json or context.as_json), *args, **kwargs)

    return _JSON(with_context(told))


def print_json(document: Any) -> None:
    click.echo(json_text(document, indent=2))


# The head's place in the settings. Importing the types of all settings takes longer than all else that `steward status`
# does: so only these keys are read here, and `steward config check` judges the whole file.

_DEFAULT = "127.0.0.1:6860"
_AGENT_DEFAULT = "localhost:6861"
_SLURM_USER = "slurm"
_ALL_ADDRESSES = ("0.0.0.0", "[::]")
_LOOPBACK = ("127.", "localhost", "[::1]")
_REMEDY = "`steward config check` says more"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlace:
    """The heads' addresses, from the settings.

    The defaults are those of the settings. Paths are empty if the file names none.
    """

    http: str = _DEFAULT
    has_certificate: bool = False
    ca: str = ""
    cluster: str = ""
    munge_socket: str = ""
    users_http: str = ""
    """The address for login hosts; empty if there is none."""
    heads: tuple[str, ...] = (_AGENT_DEFAULT,)
    """The addresses in `agent.head`."""
    slurm_user: str = _SLURM_USER

    @property
    def url(self) -> str:
        """Return the heads' URLs, separated by commas; away from the controllers those for login hosts, if there are.

        On a controller the head of this machine comes first; others follow if they listen beyond their own machines.
        """
        scheme = "https" if self.has_certificate else "http"
        return ",".join(f"{scheme}://{where}" for where in self._places())

    def hint(self) -> str:
        """Return where else a person may ask if the head of this machine does not answer; empty for nowhere."""
        others = [host for host in self._hosts if not is_here(host)]
        if not others or len(others) == len(self.heads) or not self.http.startswith(_LOOPBACK):
            return ""
        return f"or run this on {' or '.join(others)}, where the other head is"

    def _places(self) -> Iterator[str]:
        if self.users_http and not any(map(is_here, self._hosts)):
            host, _, port = self.users_http.rpartition(":")
            yield from (f"{name}:{port}" for name in (self._hosts if host in _ALL_ADDRESSES else (host,)))
            return
        yield self.http.replace("0.0.0.0:", "127.0.0.1:")
        host, _, port = self.http.rpartition(":")
        if len(self.heads) > 1 and host in _ALL_ADDRESSES:
            yield from (f"{name}:{port}" for name in self._hosts if not is_here(name))

    @property
    def _hosts(self) -> tuple[str, ...]:
        return tuple(head.rpartition(":")[0] for head in self.heads)


def listening_at(url: str) -> frozenset[int]:
    """Return the users who listen at the URL's port on this machine; empty if none does, or it is elsewhere."""
    where = urlsplit(url)
    try:
        places = socket.getaddrinfo(where.hostname, where.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return frozenset()
    here = (listeners(str(at[0]), int(at[1])) for family, _, _, _, at in places if _can_bind(family, (at[0], 0)))
    return frozenset().union(*here)


def _uid_of(name: str) -> Iterator[int]:
    """Yield the user's id; nothing if there is no such user here."""
    with suppress(KeyError):
        yield pwd.getpwnam(name).pw_uid


def is_here(host: str) -> bool:
    """Return whether a name or address belongs to this machine."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    return any(_can_bind(family, (address[0], 0)) for family, _, _, _, address in found)


def _can_bind(family: int, address: tuple[str | int, int]) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
    return True


def local_place(config: Path | None, *, is_needed: bool = True) -> HeadPlace:
    """Return the head's address in the settings; the default one if there is no settings file.

    A login node may have no file. Raises ClickException for a named file that is missing, and for an unreadable one;
    the latter only if the address is needed, because a user who gives the head's URL needs no file.
    """
    where = settings_path(config, os.environ)
    if config is None and not where.exists():
        return HeadPlace()
    try:
        return place_in(tomllib.loads(where.read_text(encoding="utf-8-sig")))
    except PermissionError as error:
        if config is None and not is_needed:
            return HeadPlace()
        raise click.ClickException(
            f"{where}: only root may read it: name the head with --url or STEWARD_URL"
        ) from error
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{where}: cannot be read ({cause(error)}): {_REMEDY}") from error


def place_in(tables: dict[str, Any]) -> HeadPlace:
    """Return the head's address in the tables of a settings file. Raises ValueError for a key of another kind."""
    return HeadPlace(
        http=_text(tables, "head", "http", _DEFAULT),
        has_certificate=bool(_text(tables, "api", "tls_certificate")),
        ca=_text(tables, "api", "tls_ca"),
        cluster=_text(tables, "cluster", "name"),
        munge_socket=_text(tables, "cluster", "munge_socket"),
        users_http=_text(tables, "head", "users_http"),
        heads=_heads(tables),
        slurm_user=_text(tables, "cluster", "slurm_user", _SLURM_USER),
    )


def _heads(tables: dict[str, Any]) -> tuple[str, ...]:
    table = tables.get("agent", {})
    try:
        return head_addresses(table.get("head", _AGENT_DEFAULT) if isinstance(table, dict) else None)
    except ValueError as error:
        raise ValueError(f"agent.head: {error}") from None


def _text(tables: dict[str, Any], section: str, key: str, default: str = "") -> str:
    table = tables.get(section, {})
    found = table.get(key, default) if isinstance(table, dict) else None
    if not isinstance(found, str):
        raise ValueError(f"{section}.{key} is not text")
    return found


# Durations as people give them: `30m`, `12h`, `7d`, `4w`.

DAY_S = 86_400.0
_UNITS = {"m": 60.0, "h": 3600.0, "d": DAY_S, "w": 7 * DAY_S}


def age(context: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return an option's duration in seconds; None if it was not given."""
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", value or "")
    if value is not None and match is None:
        raise click.BadParameter(f"{value} is not a duration: use 30m, 12h, 7d or 4w")
    return int(match[1]) * _UNITS[match[2]] if match else None
