"""`steward quota`: what teams own, use, lend and borrow."""

import json
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from steward.cli import Late, LateGroup
from steward.cli.capacity import look_or_wait
from steward.cli.context import Context, print_json, with_json
from steward.cli.group import NO_WAIT, YES
from steward.cli.look import explain as explain_job
from steward.cli.show import change_lines, line, table, when
from steward.client import Client, Json
from steward.model.text import cause

COLUMNS = ("TEAM", "RESOURCE", "NOMINAL", "IN-USE", "LENT", "BORROWED", "SHARE")
_DELETING = "Deleting"
_GOING_ON = frozenset({"Creating", "Updating", _DELETING})
_FOLLOW_S = 30.0
_LOOK_S = 0.5
_MIB_PER_GIB = 1024
_READERS: Mapping[str, Callable[[str], Any]] = MappingProxyType({".toml": tomllib.loads, ".json": json.loads})


class _Quota(LateGroup):
    late = MappingProxyType(
        {
            "doctor": Late("steward.cli.quota_setup:doctor", "Check what quotas need of Slurm."),
            "setup": Late("steward.cli.quota_setup:setup", "Prepare Slurm's accounting for quotas."),
        }
    )


@click.group(cls=_Quota)
def quota() -> None:
    """Quotas of teams: lend what is idle, borrow, and take back."""


@quota.command("list")
@click.option("--all", "show_all", is_flag=True, help="Also resources that were filled in and limit no team.")
@with_json
def list_quotas(context: Context, show_all: bool) -> None:
    """List every team: owns, uses, lends, borrows. Also its share of what is lent."""
    found = context.client().object("/v1/quotas")
    if context.as_json:
        print_json(found)
        return
    rows = [row for team in found["teams"] for row in _rows(team, show_all=show_all)]
    table(COLUMNS, rows, empty="No quotas: `steward quota apply FILE` makes some (docs/quotas.md).")
    _warn(found)


@quota.command()
@click.argument("team")
@with_json
def show(context: Context, team: str) -> None:
    """Show one team's quota. Also what its jobs wait for."""
    found = context.client().quota(team)
    if context.as_json:
        print_json(found)
        return
    state = found["status"] if found["enabled"] else f"{found['status']}, disabled"
    line(f"{found['team']}: quota {found['name']} (id {found['id']}, version {found['version']}): {state}", "bold")
    for text in filter(None, (found["failure"], found["description"])):
        line(text)
    sharing = found["config"]["ResourceSharingConfig"]
    limit = f", borrows up to {sharing['BorrowLimit']} %" if sharing.get("BorrowLimit") is not None else ""
    line(f"{found['strategy']}{limit}, weight {found['weight']}, changed {when(found['modified'])} by {_who(found)}")
    table(COLUMNS[1:], [row[1:] for row in _rows(found, show_all=True)], empty="The team owns nothing.")
    for text in found["warnings"]:
        line(f"warning: {text}", "yellow")
    if found["jobs"]:
        line("")
        rows = [(job["shown_id"], job["name"], job["state"], job["text"]) for job in found["jobs"]]
        table(("JOB", "NAME", "STATE", "QUOTA"), rows, empty="")


@quota.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prune", is_flag=True, help="Delete quotas that the file does not have.")
@click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
@YES
@NO_WAIT
@with_json
def apply(context: Context, file: Path, prune: bool, dry_run: bool, yes: bool, no_wait: bool) -> None:
    """Make the quotas what FILE says. A .toml or .json file; the difference is shown first; all of it or nothing."""
    client, document, quiet = context.client(), _read(file), context.as_json
    found = client.preview_quotas(document, prune=prune)
    if quiet and (dry_run or not found["changes"]):
        print_json(found)
    elif not quiet:
        _show_changes(found)
    if dry_run or not found["changes"]:
        return
    if not yes:
        click.confirm("Apply?", abort=True)
    answer = client.apply_quotas(document, prune=prune, based_on=found["based_on"])
    if quiet:
        print_json({**found, **answer})
    elif not no_wait:
        wait_for_quotas(client)


@quota.command()
@click.argument("team")
@YES
@NO_WAIT
@with_json
def delete(context: Context, team: str, yes: bool, no_wait: bool) -> None:
    """Delete a team's quota. Its jobs go on; those that wait need no quota any more."""
    client = context.client()
    found = client.quota(team)
    if not yes:
        jobs = f"{found['running'] or 0} running and {found['waiting'] or 0} waiting jobs"
        click.confirm(f"Delete quota {found['name']} of team {team} ({jobs}, which stay)?", abort=True)
    answer = client.operate("DeleteComputeQuota", {"ComputeQuotaId": found["id"]})
    if context.as_json:
        print_json(answer)
    elif not no_wait:
        wait_for_quotas(client, of=found["id"])


@quota.command()
@click.argument("job")
@with_json
def explain(context: Context, job: str) -> None:
    """Explain why a job waits or was evicted. The same as `steward explain job JOB`."""
    click.get_current_context().invoke(explain_job, words=("job", job), as_json=context.as_json)


def _rows(team: Json, *, show_all: bool) -> Iterable[tuple[str, ...]]:
    """Yield a team's rows; only the first one names the team."""
    rows = [row for row in team["resources"] if row["counted"] or show_all]
    state = "" if team["status"] in ("Created", "Updated") and team["enabled"] else f" ({_state(team)})"
    if not rows:
        yield (team["team"] + state, *[""] * (len(COLUMNS) - 1))
    is_known = team["running"] is not None
    for number, row in enumerate(rows):
        name = team["team"] + state if number == 0 else ""
        counts = [_amount(row["resource"], row[key]) if is_known else "?" for key in ("in_use", "lent", "borrowed")]
        share = _share(row["share"]) if is_known and row["counted"] else ""
        yield name, row["resource"], _amount(row["resource"], row["nominal"]), *counts, share


def _state(team: Json) -> str:
    return str(team["status"]) if team["enabled"] else "disabled"


def _amount(resource: str, amount: int) -> str:
    """Return the amount as text, memory in GiB."""
    if not resource.endswith("/mem"):
        return str(amount)
    gib = amount / _MIB_PER_GIB
    return f"{gib:.0f}G" if gib == int(gib) else f"{gib:.1f}G"


def _share(share: float | None) -> str:
    return "last" if share is None else f"{share:.4f}".rstrip("0").rstrip(".") if share else "0"


def _who(found: Json) -> str:
    return str(found["modified_by"] or found["created_by"] or "?")


def _warn(found: Json) -> None:
    failures = [f"{team['team']}: {team['failure']}" for team in found["teams"] if team["failure"]]
    frozen = ["slurmdbd does not answer: limits stay as they are until it does"] if found["limits_frozen"] else []
    warned = [text for team in found["teams"] for text in team["warnings"]]
    for text in (*failures, *frozen, *found["warnings"], *warned):
        line(f"warning: {text}", "yellow")


def _show_changes(found: Json) -> None:
    change_lines(found["changes"])
    for text in found["warnings"]:
        line(f"warning: {text}", "yellow")


def _read(file: Path) -> Json:
    """Return the document in the file. Raises ClickException if its form is not the one of its suffix."""
    read = _READERS.get(file.suffix.lower())
    if read is None:
        raise click.ClickException(f"{file}: its name must end with {' or '.join(_READERS)}")
    try:
        # The head checks the contents.
        document: Any = read(file.read_text())
    except OSError as error:
        raise click.ClickException(f"{file}: {cause(error)}") from error
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{file}: not {file.suffix[1:].upper()}: {cause(error)}") from error
    if not isinstance(document, dict):
        raise click.ClickException(f"{file}: a table with ComputeQuotas and ClusterSchedulerConfig is needed")
    return document


def wait_for_quotas(client: Client, of: str = "") -> None:
    """Wait until Slurm has the quotas, or has the quota with the id `of` no more; also while the head restarts.

    Raises ClickException if Slurm cannot have one.
    """
    until, waiting = time.monotonic() + _FOLLOW_S, ["the quotas are"]
    while True:
        if (found := look_or_wait(lambda: client.object("/v1/quotas"))) is not None:
            teams = [team for team in found["teams"] if not of or team["id"] == of]
            ending = [team for team in teams if team["status"] == _DELETING]
            wanted = [team for team in teams if team["status"] != _DELETING and team["enabled"]]
            if failed := [team for team in wanted if team["failure"]]:
                raise click.ClickException("; ".join(f"{team['team']}: {team['failure']}" for team in failed))
            going_on = [team for team in (*wanted, *ending) if team["status"] in _GOING_ON]
            waiting = [team["team"] for team in going_on if not team["failure"]]
            if not waiting:
                for team in ending:
                    line(f"{team['team']}: {team['failure']}; `steward quota list` shows when it is gone.", "yellow")
                if not ending or not of:
                    line("Gone." if of else "In force.", "green")
                return
        if time.monotonic() > until:
            line(f"Accepted; {', '.join(waiting)} not in Slurm yet: `steward quota list` shows how far it is.")
            return
        time.sleep(_LOOK_S)
