"""`steward jobs`: the jobs that asked to be resumed."""

import click

from steward.cli.context import Context, job_word, with_json
from steward.cli.show import listed, span, when
from steward.client import Json
from steward.model.job import JobState
from steward.model.node_names import fold
from steward.model.text import printable


def _state(_context: click.Context, _option: click.Parameter, text: str) -> str:
    states = [state.value.lower() for state in JobState] + ["ended"]
    if not any(state.startswith(text.lower()) for state in states):
        raise click.BadParameter(f"{printable(text, 40)} is no state of a job: use one of {', '.join(states)}")
    return text


@click.group(invoke_without_command=True)
@click.option("--user", default="", help="Only jobs of this user.")
@click.option("--state", default="", callback=_state, help="Only jobs in this state: running, pending, ended, ...")
@with_json
def jobs(context: Context, user: str, state: str) -> None:
    """List the jobs that asked to be resumed."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    found = [job for job in context.client().array("/v1/jobs") if _is_wanted(job, user, state)]
    rows = (
        (
            job["shown_id"],
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
    )
    columns = ("JOB", "NAME", "USER", "STATE", "RESUME", "RESUMED", "NODES", "EXCLUDED", "LAST DECISION")
    of_those = "such job" if user or state else "job"
    listed(context, found, columns, rows, empty=f"No {of_those} with --auto-resume is known.")


def _is_wanted(job: Json, user: str, state: str) -> bool:
    return user in ("", job["user"], str(job["uid"])) and (job["state"] or "ended").lower().startswith(state.lower())


def _last_decision(job: Json) -> str:
    if not job["attempts"]:
        return ""
    last = job["attempts"][-1]
    return f"{when(last['at'])} {last['decision']}: {last['why']['text']}"


@jobs.command()
@click.argument("job", callback=job_word)
@with_json
def history(context: Context, job: str) -> None:
    """Show every run of a job: where, how long, and how it ended. Also of a job that Slurm has forgotten."""
    found = context.client().job_history(job)
    rows = (
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
    )
    columns = ("RUN", "RESTART", "ATTEMPT", "STARTED", "RAN", "NODES", "STEP", "ENDED", "DECISION")
    listed(context, found, columns, rows, empty="The job has not run yet.")


def _decided(run: Json) -> str:
    culprits = f" ({fold(run['culprits'])})" if run["culprits"] else ""
    return f"{run['decision']}: {run['why']}{culprits}" if run["decision"] else ""
