"""`steward install`, `steward uninstall`: Steward's packages on other hosts, by ssh."""

import grp
import io
import os
import pwd
import shlex
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import click

from steward.adapters.node.identity import node_name
from steward.adapters.node.slurm_conf import conf_here
from steward.adapters.process import run
from steward.adapters.settings_path import settings_path
from steward.cli.context import Context, IntegerInRange, with_context
from steward.cli.settings_option import read_settings
from steward.cli.show import line
from steward.client import Client, HeadError
from steward.model.ids import NodeName
from steward.model.node_names import expand_nodes, fold
from steward.model.text import count_noun, printable
from steward.ports import Permanent, PortError
from steward.workflows.far_hosts import (
    ASK,
    REMOVE,
    HostFacts,
    HostOutcome,
    HostProblem,
    HostRole,
    Tally,
    files_for_host,
    install_script,
    on_hosts,
)

_ASK_S, _WORK_S, _CONNECT_S = 30.0, 900.0, 60.0
_NO_QUESTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_LONGEST = 400
_SSH_FAILED = 255
"""The exit status of ssh itself: it did not reach the host."""
_LET_IN = "`{} {} true` must work from here, without a question (another way in: --ssh, --sudo)"
_REMEDY = "look at journalctl -u steward-agent there, at TCP to agent.head, the MUNGE key, and the node's name in Slurm"
_LOG = "journalctl -u steward-agent -n 2 -o cat"
_BACK = "scontrol update nodename={} state=resume"

Shell = Callable[[str, str, bytes, float], str]
"""Runs a script: (host, script, input, time limit) -> output. Raises HostProblem with the host's message."""


def _hosts(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    try:
        return tuple(expand_nodes(text)) if text else ()
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _reached(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how hosts are reached."""
    options = (
        click.option("--at-once", type=IntegerInRange(1, 64), default=8, show_default=True, help="Hosts at a time."),
        click.option("--ssh", default="ssh", show_default=True, help="How a host is reached: 'ssh -l admin -J jump'."),
        click.option("--sudo", is_flag=True, help="Become root there by `sudo -n`."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.option("--hosts", required=True, callback=_hosts, metavar="LIST", help="For example n[1-40].")
@click.option(
    "--packages",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the files that `make packages` made; only this machine has to read it.",
)
@click.option(
    "--role",
    type=click.Choice([each.value for each in HostRole]),
    default=HostRole.NODE.value,
    show_default=True,
    help="login: hosts where people submit.",
)
@_reached
@with_context
def install(
    context: Context, hosts: tuple[str, ...], folder: Path, role: str, at_once: int, ssh: str, sudo: bool
) -> None:
    """Install Steward on other hosts over ssh. The first host alone, then several, until a problem comes."""
    settings = settings_path(None, os.environ)
    if not settings.exists():
        raise click.ClickException(f"{settings} is not there: `steward init` writes it")
    files = sorted(path.name for path in folder.iterdir())
    shell, kind, said = _shell(ssh, sudo=sudo), HostRole(role), read_settings(None)
    nodes: dict[str, NodeName] = {}

    @cache
    def archive(names: tuple[str, ...]) -> bytes:
        return _archive([folder / name for name in names], settings)

    def work(host: str) -> str:
        if kind is HostRole.NODE:
            nodes[host] = _node_on(host, said.cluster.slurm_conf)
        facts = HostFacts.of(shell(host, ASK, b"", _ASK_S))
        note = shell(host, install_script(kind, said.agent.head), archive(files_for_host(files, facts, kind)), _WORK_S)
        if kind is HostRole.NODE and host == hosts[0]:
            _await_first(context.client(), host, nodes[host], shell)
        return note

    _end(_each(hosts, work, "installed", at_once), "installed")
    if kind is HostRole.NODE:
        _await_agents(context.client(), nodes)


@click.command()
@click.option("--hosts", callback=_hosts, metavar="LIST", help="For example n[1-40]; nodes before the controller.")
@click.option("--here", is_flag=True, help="This machine, too, after the hosts.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_reached
@with_context
def uninstall(
    context: Context, hosts: tuple[str, ...], here: bool, yes: bool, at_once: int, ssh: str, sudo: bool
) -> None:
    """Remove Steward from hosts over ssh. Packages, settings and state; jobs go on."""
    if not hosts and not here:
        raise click.UsageError("say where: --hosts LIST, --here, or both")
    where = " and ".join([*([fold(hosts)] if hosts else []), *(["this machine"] if here else [])])
    if not yes:
        click.confirm(f"Remove Steward, its settings and its state from {where}?", abort=True)
    _warn_of_marked_nodes(context.client())
    shell = _shell(ssh, sudo=sudo)
    if hosts:
        _end(_each(hosts, lambda host: shell(host, REMOVE, b"", _WORK_S), "removed", at_once), "removed")
    if here:
        line("this machine: every package is removed, and this command with it")
        os.execv("/bin/sh", ["sh", "-c", REMOVE])  # not a child: this program's files go


def _node_on(host: str, slurm_conf: Path) -> NodeName:
    """Return Slurm's name of the node on a host. Raises HostProblem if Slurm has several there."""
    try:
        return node_name("", conf_here(slurm_conf), host)
    except Permanent as error:
        raise HostProblem(str(error)) from error


def _shell(ssh: str, *, sudo: bool) -> Shell:
    """Return a shell that runs scripts on hosts by ssh, without prompts."""
    program, *words = shlex.split(ssh)

    def there(host: str, script: str, given: bytes, limit_s: float) -> str:
        command = f"{'sudo -n ' if sudo else ''}sh -c {shlex.quote(script)}"
        argv = [program, *_NO_QUESTIONS, *words, "--", host, command]
        try:
            done = run(argv, timeout_s=limit_s, input=given, check=False)
        except PortError as error:
            raise HostProblem(str(error)) from error
        if done.returncode:
            said = " ".join((done.error_text or done.text).splitlines()[-3:])
            text = printable(said, _LONGEST) or f"ended with {done.returncode} and said nothing"
            raise HostProblem(f"{text}: {_LET_IN.format(ssh, host)}" if done.returncode == _SSH_FAILED else text)
        return done.text

    return there


def _archive(files: Sequence[Path], settings: Path) -> bytes:
    """Return a tar archive of the packages and the settings."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for file in files:
            tar.add(file, arcname=file.name)
        if files[0].suffix == ".deb":
            tar.addfile(tarfile.TarInfo("is-deb"))
        # The settings keep their mode and group: at some sites only SlurmUser's group may read them.
        entry, text, stat = tarfile.TarInfo("steward.toml"), settings.read_bytes(), settings.stat()
        entry.size, entry.mode, entry.mtime = len(text), stat.st_mode & 0o777, int(stat.st_mtime)
        entry.uname, entry.gname = pwd.getpwuid(stat.st_uid).pw_name, grp.getgrgid(stat.st_gid).gr_name
        tar.addfile(entry, io.BytesIO(text))
    return made.getvalue()


def _each(hosts: Sequence[str], work: Callable[[str], str], done: str, at_once: int) -> Tally:
    """Do `work` on each host, and print a line for each that ends."""
    ended = 0

    def one(host: str) -> HostOutcome:
        began = time.monotonic()
        try:
            note = printable(work(host).strip(), _LONGEST)
        except HostProblem as odd:
            return HostOutcome(host=host, odd=str(odd), seconds=time.monotonic() - began)
        return HostOutcome(host=host, note=note, seconds=time.monotonic() - began)

    def tell(outcome: HostOutcome) -> None:
        nonlocal ended
        ended += 1
        good = f"{done}, {outcome.seconds:.0f} s{'; ' if outcome.note else ''}{outcome.note}"
        text = f"not {done}: {outcome.odd}" if outcome.odd else good
        line(f"[{ended}/{len(hosts)}] {outcome.host}: {text}", "bold red" if outcome.odd else "")

    return on_hosts(hosts, one, tell, at_once=at_once)


def _end(tally: Tally, done: str) -> None:
    """Raise ClickException if a host had a problem; its text names the hosts that are still to do."""
    if not tally.odd:
        return
    left = fold([*(each.host for each in tally.odd), *tally.untouched])
    good = len(tally.ended) - len(tally.odd)
    raise click.ClickException(
        f"{count_noun(good, 'host')} {done}, then a problem came. Solve it, then go on with --hosts {left}"
    )


def _await_agents(client: Client, nodes: Mapping[str, NodeName]) -> None:
    """Report whether the agents of all hosts, by their nodes, are connected. Raises ClickException if some are not."""
    try:
        silent = set(silent_agents(client, nodes.values(), _CONNECT_S))
    except HeadError as error:
        line(f"whether their agents are connected is not known: {error}", "yellow")
        return
    if silent:
        there = [host for host, node in nodes.items() if node in silent]
        raise click.ClickException(f"installed, but no agent is connected from {fold(there)}: {_REMEDY}")
    line(f"every agent of {fold(nodes)} is connected")


def _await_first(client: Client, host: str, node: NodeName, shell: Shell) -> None:
    """Wait for the first host's agent. Raises HostProblem with the agent's log if it does not connect."""
    # What keeps this agent from the head keeps all agents from it: then no other host is begun. If the head does not
    # answer, that is reported at the end.
    with suppress(HeadError):
        if silent_agents(client, [node], _CONNECT_S):
            said = " ".join(shell(host, _LOG, b"", _ASK_S).split())
            raise HostProblem(
                f"installed, but its agent is not connected after {_CONNECT_S:g} s: {printable(said, _LONGEST)}"
            )


def silent_agents(client: Client, nodes: Iterable[NodeName], limit_s: float) -> list[NodeName]:
    """Return the nodes, also such as Slurm does not have, whose agents do not connect within `limit_s` seconds.

    Raises HeadError.
    """
    until = time.monotonic() + limit_s
    while True:
        connected = {node["name"] for node in client.array("/v1/nodes") if _is_connected(node)}
        silent = [node for node in nodes if node not in connected]
        if not silent or time.monotonic() >= until:
            return silent
        time.sleep(1.0)


def _is_connected(node: dict[str, object]) -> bool:
    agent = node["agent"]
    return isinstance(agent, dict) and bool(agent["connected"])


def _warn_of_marked_nodes(client: Client) -> None:
    """Name the nodes that Steward took out: they stay out, and an admin must give them back."""
    try:
        marked = [node["name"] for node in client.array("/v1/nodes") if node["ours"]]
    except HeadError:
        line(f"no head answers: `sinfo -R | grep steward:` shows nodes to give back ({_BACK.format('NODE')})", "yellow")
        return
    if marked:
        line(
            f"{fold(marked)} was taken out by Steward and stays out; to give back: {_BACK.format(fold(marked))}",
            "yellow",
        )
