"""Look at the site: take all that Slurm answers, and the history that follows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from .ask import AskedSlurm, AskError, KeptAnswers
from .history import History, PastJobs
from .log import LogFacts
from .records import (
    EVENT_FIELDS,
    JOB_FIELDS,
    JobRun,
    NodeEvent,
    Rows,
    SiteFacts,
    job_runs,
    node_events,
    settings,
    shapes,
)

_Found = TypeVar("_Found")


def look(source: AskedSlurm | KeptAnswers) -> tuple[PastJobs, list[str]]:
    """Return the past, and what could not be read, in sentences. Raises AskError if sacct cannot be read."""
    gaps: list[str] = []

    def tried(take: Callable[[], _Found], otherwise: _Found, lost: str) -> _Found:
        try:
            return take()
        except (AskError, ValueError) as error:
            gaps.append(f"{error}. {lost}")
            return otherwise

    config: dict[str, str] = tried(lambda: settings(source.config()), {}, "A SlurmdTimeout of 300 s is assumed.")
    sizes: dict[str, tuple[int, int]] = tried(lambda: shapes(source.nodes()), {}, "Nodes are those that had jobs.")
    site = SiteFacts(
        since=source.since,
        until=source.until,
        cluster=config.get("ClusterName", ""),
        version=config.get("SLURM_VERSION", ""),
        slurmd_timeout_s=_seconds(config.get("SlurmdTimeout", "")),
        shapes=sizes,
    )
    if "jobs" in config.get("PrivateData", ""):
        gaps.append(
            "PrivateData hides the jobs of others from ordinary users: if you are one, only your own jobs are counted."
        )
    rows = Rows(source.events(), EVENT_FIELDS)
    events: list[NodeEvent] = tried(lambda: list(node_events(rows)), [], "No outage of a node is counted.")
    lost = "The node at fault is known from events only."
    log = tried(lambda: LogFacts(source.log(config.get("SlurmctldLogFile", "slurmctld.log"))), LogFacts(), lost)
    history = History(site, events, log)
    unread = rows.unread + _take_jobs(source, history)
    if unread:
        gaps.append(f"{unread:,} lines of Slurm's answers could not be read, and are left out.")
    return history.finish(), gaps


def _take_jobs(source: AskedSlurm | KeptAnswers, history: History) -> int:
    """Hand all runs over in the order of their ends. Return how many lines could not be read."""
    unread = 0
    for begin, end, lines in source.jobs():
        rows = Rows(lines, JOB_FIELDS)
        own = [run for run in job_runs(rows) if _ends_in(run, begin, end, source.until)]
        for run in sorted(own, key=lambda one: (source.until if one.end is None else one.end, one.job, one.start)):
            history.add(run)
        unread += rows.unread
    return unread


def _ends_in(run: JobRun, begin: int, end: int, last: int) -> bool:
    """Return whether the run is counted with this answer: a long one is in the answers about all its time."""
    if run.end is None or run.end >= last:
        return end == last
    return begin <= run.end < end


def _seconds(text: str) -> int:
    """Return the number of a setting such as `300 sec`; Slurm's default if there is none."""
    match = re.match(r"\d{1,6}", text)
    return int(match[0]) if match and int(match[0]) else 300
