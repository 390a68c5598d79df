"""`steward jobs`: the jobs that asked to be resumed, and what became of each try."""

from typing import Any

import click

from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.show import span, table, when
from steward.model.node_names import fold


@click.group(invoke_without_command=True)
@click.option("--user", default="", help="Only jobs of this user.")
@click.option("--state", default="", help="Only jobs in this state: running, pending, ended, ...")
@JSON
@click.pass_context
@one_line_errors
def jobs(click_context: click.Context, user: str, state: str, as_json: bool) -> None:
    """Jobs that asked to be resumed."""
    if click_context.invoked_subcommand is not None:
        return
    context: Context = click_context.obj
    found = [job for job in context.client().jobs() if _is_wanted(job, user, state)]
    if wants_json(context, as_json):
        print_json(found)
        return
    rows = [
        (
            job["id"],
            job["name"],
            job["user"],
            job["state"],
            job["mode"]["text"],
            job["resumes"],
            fold(job["running_on"]),
            fold(job["excluded"]),
            _last_decision(job),
        )
        for job in found
    ]
    columns = ("JOB", "NAME", "USER", "STATE", "RESUME", "RESUMED", "NODES", "EXCLUDED", "LAST DECISION")
    table(columns, rows, empty="No job with --auto-resume is known.")


def _is_wanted(job: dict[str, Any], user: str, state: str) -> bool:
    return user in ("", job["user"], str(job["uid"])) and (job["state"] or "ended").lower().startswith(state.lower())


def _last_decision(job: dict[str, Any]) -> str:
    if not job["attempts"]:
        return ""
    last = job["attempts"][-1]
    return f"{when(last['at'])} {last['decision']}: {last['why']['text']}"


@jobs.command()
@click.argument("job", type=click.IntRange(min=1))
@JSON
@click.pass_obj
@one_line_errors
def history(context: Context, job: int, as_json: bool) -> None:
    """Every run of a job: where, how long, and how it ended. Also of a job that Slurm has forgotten."""
    found = context.client().job_history(job)
    if wants_json(context, as_json):
        print_json(found)
        return
    rows = [
        (
            run["number"],
            run["restart"],
            run["attempt"],
            when(run["started"]),
            span(run["started"], run["ended"]),
            fold(run["nodes"]),
            run["step"],
            run["slurm_state"] or run["ending"] or "running",
            _decided(run),
        )
        for run in found
    ]
    columns = ("RUN", "RESTART", "ATTEMPT", "STARTED", "RAN", "NODES", "STEP", "ENDED", "DECISION")
    table(columns, rows, empty="The job has not run yet.")


def _decided(run: dict[str, Any]) -> str:
    culprits = f" ({fold(run['culprits'])})" if run["culprits"] else ""
    return f"{run['decision']}: {run['why']}{culprits}" if run["decision"] else ""
