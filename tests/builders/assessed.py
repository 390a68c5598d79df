"""Sites as `steward assess` sees them: the lines that Slurm's commands print."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from steward.assess.answer import answer
from steward.assess.ask import slices
from steward.assess.estimate import ASSUMPTIONS
from steward.assess.history import History, PastJobs
from steward.assess.log import LogFacts
from steward.assess.records import EVENT_FIELDS, JOB_FIELDS, JobRun, NodeEvent, SiteFacts

DAY_S = 86_400
SINCE = 1_750_000_000
UNTIL = SINCE + 90 * DAY_S
SITE = SiteFacts(since=SINCE, until=UNTIL)
MARK = "\x1f12\x1f"
BY_KEY = {one.key: one for one in ASSUMPTIONS}


def a_run(job: int = 1, state: str = "COMPLETED", start: int = 0, seconds: int | None = 3600, **fields: Any) -> JobRun:
    """A run that began so many seconds after the begin; without `seconds` it still runs."""
    begin = SINCE + start
    usual: dict[str, Any] = {
        "job": job,
        "user": "ann",
        "partition": "gpu",
        "state": state,
        "submit": begin,
        "start": begin,
        "end": None if seconds is None else begin + seconds,
        "nodes": 1,
        "limit_s": 86_400,
        "tres": "cpu=8,node=1",
        "nodelist": "n1",
        "failed_node": "",
        "name": "train",
    }
    return JobRun(**{**usual, **fields})


def an_event(
    node: str = "n1", start: int = 0, seconds: int | None = 3600, reason: str = "Not responding", **fields: Any
) -> NodeEvent:
    """A time in which a node was down."""
    begin = SINCE + start
    end = None if seconds is None else begin + seconds
    return NodeEvent(
        **{"node": node, "start": begin, "end": end, "state": "DOWN", "user": "slurm", "reason": reason, **fields}
    )


def a_past(
    *runs: JobRun, events: Iterable[NodeEvent] = (), site: SiteFacts = SITE, log: Iterable[str] = ()
) -> PastJobs:
    """The history of these runs, in the order of their ends."""
    history = History(site, events, LogFacts(log))
    for run in sorted(runs, key=lambda one: one.end or site.until):
        history.add(run)
    return history.finish()


def an_answer(*runs: JobRun, events: Iterable[NodeEvent] = (), price: float | None = None) -> Mapping[str, Any]:
    """What is printed about these runs."""
    return answer(a_past(*runs, events=events), BY_KEY, price, [])


def job_line(run: JobRun) -> str:
    """The line of sacct for a run."""
    limit = "UNLIMITED" if run.limit_s is None else str(run.limit_s // 60)
    end = "Unknown" if run.end is None else str(run.end)
    fields = (run.job, run.user, run.partition, run.state, run.submit, run.start, end, run.nodes, limit, run.tres)
    return MARK.join(map(str, (*fields, run.nodelist, run.failed_node, run.name)))


def event_line(event: NodeEvent) -> str:
    """The line of sacctmgr for an event."""
    end = "Unknown" if event.end is None else str(event.end)
    return MARK.join((event.node, str(event.start), end, event.state, event.user, event.reason))


def kept(folder: Path, runs: Sequence[JobRun] = (), events: Sequence[NodeEvent] = ()) -> Path:
    """The folder that `--keep` would have written."""
    folder.mkdir(exist_ok=True)
    (folder / "asked.json").write_text(json.dumps({"since": SINCE, "until": UNTIL}))
    (folder / "config.txt").write_text("ClusterName             = hpc\nSlurmdTimeout           = 300 sec\n")
    (folder / "nodes.txt").write_text("n1|8|gpu:a100:4(S:0-1)\nn2|8|(null)\n")
    (folder / "log.txt").write_text("")
    (folder / "events.txt").write_text("\n".join([MARK.join(EVENT_FIELDS), *map(event_line, events), ""]))
    for begin, end in slices(SINCE, UNTIL):
        own = [run for run in runs if run.start < end and (run.end is None or run.end >= begin)]
        (folder / f"jobs-{begin}.txt").write_text("\n".join([MARK.join(JOB_FIELDS), *map(job_line, own), ""]))
    return folder
