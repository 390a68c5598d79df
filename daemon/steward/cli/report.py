"""`steward report`: what faults cost, for one job or for many."""

import time
from collections.abc import Mapping
from typing import Any

import click

from steward.cli.context import DAY_S, Context, age, job_word, print_json, with_json
from steward.cli.elastic import size_table
from steward.cli.show import line, table, when
from steward.model.node_names import fold
from steward.model.text import times

_PHASES = ("start", "work", "redo", "detect", "decide", "release", "queue")
_INSTANTS = ("fault", "detected", "decided", "marked", "eligible", "running", "first_step", "replaced", "returned")
_UNKNOWN = "?"


@click.command()
@click.argument("job", callback=job_word, required=False)
@click.option("--since", metavar="AGE", callback=age, default=None, help="The last 30m, 12h, 7d; without JOB: 7d.")
@click.option("--month", default="", metavar="YYYY-MM", help="A whole month (UTC) instead.")
@click.option("--user", default="", help="Only jobs of this user (name or number).")
@click.option("--partition", default="", help="Only jobs of this partition.")
@with_json
def report(
    context: Context,
    job: str,
    since: float | None,
    month: str,
    user: str,
    partition: str,
) -> None:
    """Show what faults cost: where the time of jobs went. Of jobs with --auto-resume; also what each incident took."""
    begin = 0.0 if month or (job and since is None) else time.time() - (since or 7 * DAY_S)
    found = context.client().report(job=job, since=begin, month=month, user=user, partition=partition)
    if context.as_json:
        print_json(found)
    elif job:
        _show_job(found["jobs"][-1])
        if found.get("elastic"):
            _show_run(found["elastic"])
    else:
        _show_many(found)


def _show_job(job: Mapping[str, Any]) -> None:
    line(f"job {job['shown_id']} {job['name']} of {job['user']} in {job['partition']}: {job['state']}", "bold")
    again = f"resumed {times(job['resumes'])}; steps made again: {_known(job['steps_redone'])}"
    line(f"runs      {job['runs']}, {again}")
    _show_sums(job["sums"])
    line("")
    rows = [
        (
            fold(one["culprits"]) or None,
            one["cause"] or one["rule"],
            _fault(one),
            *(_after(one, name) for name in _INSTANTS[1:]),
            _known(one["steps_redone"]),
            one["decision"] or "requeued, not by Steward",
        )
        for one in job["incidents"]
    ]
    heads = [name.replace("_", " ").upper() for name in _INSTANTS[1:]]
    columns = ("NODES", "CAUSE", "FAULT", *heads, "STEPS AGAIN", "DECISION")
    table(columns, rows, empty="No fault hit the job.")
    if any(one["unknown"] for one in job["incidents"]):
        line(f"{_UNKNOWN}: the instant is not known; its time is in the next phase. Times count from the fault.")


def _show_run(run: Mapping[str, Any]) -> None:
    """Print an elastic run's size and throughput over time."""
    line("")
    line(f"elastic   {run['changes']} changes of size, {run['node_hours_beyond_base']:.2f} node-hours beyond its base")
    for text in run["picture"]:
        line(text)
    line("")
    size_table(run["events"])


def _show_sums(sums: Mapping[str, Any]) -> None:
    spent = ", ".join(f"{name} {_hours(sums['seconds'][name])}" for name in _PHASES if sums["seconds"][name])
    line(f"time      {_hours(sums['all_s'])}: {spent or 'none yet'}")
    line(f"lost      {_hours(sums['lost_node_s'])} of {_hours(sums['all_node_s'])} of its nodes' time")
    line(f"ETTR      {_share(sums, 'ettr')}    goodput {_share(sums, 'goodput')}")


def _show_many(found: Mapping[str, Any]) -> None:
    rows = [
        (
            job["shown_id"],
            job["user"],
            job["partition"],
            job["state"],
            job["runs"],
            job["resumes"],
            _hours(job["sums"]["all_s"]),
            _hours(job["sums"]["lost_node_s"]),
            _known(job["steps_redone"]),
            _share(job["sums"], "ettr"),
            _share(job["sums"], "goodput"),
        )
        for job in found["jobs"]
    ]
    shares = ("TIME", "LOST", "STEPS AGAIN", "ETTR", "GOODPUT")
    columns = ("JOB", "USER", "PARTITION", "STATE", "RUNS", "RESTARTS", *shares)
    table(columns, rows, empty="No job with --auto-resume ran then.")
    if not rows:
        return
    line("")
    kinds = (("user", found["by_user"]), ("partition", found["by_partition"]), ("month", found["by_month"]))
    groups = [(f"{kind} {name}", *_group(sums)) for kind, names in kinds for name, sums in names.items()]
    table(("", "TIME", "LOST", "ETTR", "GOODPUT"), [*groups, ("all", *_group(found["totals"]))], empty="")
    if not found["complete"]:
        line("The ledger has more lines than one report reads: ask for a shorter time.", "yellow")
    out = sum(one["out_s"] for one in found["repairs"])
    line("")
    line(f"repairs   {len(found['repairs'])}; nodes were out of service for {_hours(out)} in all")
    line("TIME is time of jobs; LOST, ETTR and GOODPUT count node time (<=: some runs reported no steps, docs/job.md).")


def _group(sums: Mapping[str, Any]) -> tuple[str, ...]:
    return _hours(sums["all_s"]), _hours(sums["lost_node_s"]), _share(sums, "ettr"), _share(sums, "goodput")


def _fault(one: Mapping[str, Any]) -> str:
    """Return when the fault was; `by TIME` if only a later instant was seen."""
    began = when(_began(one))
    return began if one["fault"] is not None or _began(one) is None else f"by {began}"


def _began(one: Mapping[str, Any]) -> float | None:
    """Return the instant of the fault, else the first later instant that was seen; None if none was."""
    found: float | None = next((one[name] for name in _INSTANTS if one[name] is not None), None)
    return found


def _after(one: Mapping[str, Any], name: str) -> str:
    began = _began(one)
    if one[name] is None or began is None:
        return _UNKNOWN if name in one["unknown"] else "-"
    return f"{max(one[name] - began, 0.0):.1f} s"


def _known(number: int | None) -> str:
    return _UNKNOWN if number is None else str(number)


def _share(sums: Mapping[str, Any], name: str) -> str:
    """Return the share as `97.1 %`, or as `<= 100.0 %` if some runs reported no steps."""
    share: float | None = sums[name]
    if share is None:
        return "-"
    return f"{'<= ' if sums['stepless_node_s'] else ''}{share * 100:.1f} %"


def _hours(seconds: float) -> str:
    """Return a duration as `41 s`, `3.2 min` or `5.1 h`."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
