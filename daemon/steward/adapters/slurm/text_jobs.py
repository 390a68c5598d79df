"""Jobs as squeue prints them in a format of ours, for when steward-slurm does not answer.

An unchanged record is recognised by its text alone. A job's name and comment are its user's own: they may hold newlines
and whole records. So all texts are separated by a random word, new each time, that stands only in squeue's environment,
where no user can read it. The rest are numbers, states and names of nodes, which are checked: Odd is raised for
anything else.

The text lacks: the request of a running job, the state of a job with a flag, whether the job is expedited, the node
counts that it takes, and whether its memory is for each CPU (squeue prints the amount alone). `steward doctor` says
what that changes.

squeue (22.05, 24.11, 26.05) prints the pending tasks of an array as one line, even those that are records of their own
already; with `--array` it prints each waiting task. So a second, short list goes with the first: it has each task's
excluded nodes, which the long format of 22.05 cannot print, and all ids.
"""

import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from sys import intern

from steward.adapters.slurm import records
from steward.adapters.slurm.text_nodes import Odd
from steward.adapters.slurm.words import expand, expand_users
from steward.model.ids import JobId, NodeName
from steward.model.job import ENDED, Job
from steward.ports import Retryable

_PLAIN = (
    "jobid", "jobarrayid", "arrayjobid", "arraytaskid", "state", "userid", "nodelist", "batchhost", "batchflag",
    "restartcnt", "requeue", "exit_code", "hetjobid", "numnodes", "maxnodes", "submittime", "eligibletime", "starttime",
    "endtime", "preempttime", "timelimit", "prioritylong", "nice", "tres-alloc", "reqnodes", "numtasks",
    "ntpernode", "schednodes", "exclusive",
)  # fmt: skip
_FREE_TEXTS = (
    "partition", "reason", "account", "qos", "reservation", "allocnodes", "name", "comment", "admin_comment", "feature",
    "tres-per-job", "tres-per-node",
)  # fmt: skip
SHORT = "%A|%i|%x"
"""The format of the short list: the job id, the id with the task, and the excluded nodes."""


class Merged(Odd):
    """A line that describes several jobs."""


_NODES = re.compile(r"[A-Za-z0-9_.,\[\]-]*")
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_ID = re.compile(r"[0-9]+\|")
_LIMIT = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)")
_STATE = re.compile(r"[A-Z_]+")
_REASON = re.compile(r"[A-Za-z0-9]+")
_NO_VAL = str(0xFFFFFFFE)
"""Slurm's number for "not set"."""
_NO_TIME = frozenset({"N/A", "NONE", "None", "Unknown", "0"})
_NONE = frozenset({"(null)", "N/A", "n/a", ""})
_DESCRIBED = {
    "Nodes required for job are DOWN, DRAINED": "Resources",
    "Nodes_required_for_job_are_DOWN,_DRAINED": "Resources",
    "ReqNodeNotAvail, May be reserved": "Resources",
    "ReqNodeNotAvail,_May_be_reserved": "Resources",
    "ReqNodeNotAvail": "ReqNodeNotAvail",
}
"""Descriptions in place of a reason, by their beginning, with the reason."""
_HELD = frozenset(
    {"launch failed requeued held", "launch_failed_requeued_held", "job requeued in held state",
     "job_requeued_in_held_state", "job requeued in special exit state", "job_requeued_in_special_exit_state"}
)  # fmt: skip
"""Descriptions of JobHeldUser, kept unchanged."""


@dataclass(frozen=True, slots=True)
class Format:
    """The long format, as text for SQUEUE_FORMAT2. `word` is unknown to all users."""

    word: str = field(default_factory=lambda: "".join(secrets.choice("ghijkmnpqrstuvwxyz") for _ in range(24)))
    exclusive: str = "oversubscribe"
    """The field that tells whether a job shares its nodes."""

    def __str__(self) -> str:
        plain = (*_PLAIN[:-1], self.exclusive)
        return ",".join([*(f"{name}:|" for name in plain), *(f"{name}:{self.word}" for name in _FREE_TEXTS)])

    def cut(self, answer: str) -> list[str]:
        """Return an answer as one text for each record. Raises Odd for an incomplete answer."""
        *texts, last = answer.split(self.word)
        size = len(_FREE_TEXTS)
        if last.strip("\n") or len(texts) % size:
            raise Odd("squeue's answer is not whole")
        return ["\0".join(texts[at : at + size]).lstrip("\n") for at in range(0, len(texts), size)]


def id_of(record: str) -> JobId:
    """Return the id in a record. Raises Odd."""
    return JobId(_number(record.partition("|")[0]))


@dataclass(frozen=True, slots=True)
class Short:
    """The short list: each job's excluded nodes, how many waiting tasks an id stands for, and which ids are tasks."""

    excluded: Mapping[JobId, str]
    times: Counter[JobId]
    tasks: frozenset[JobId]


def short(answer: str) -> Short:
    """Return the short list. Raises Odd for text that no Slurm would print."""
    excluded: dict[JobId, str] = {}
    times: Counter[JobId] = Counter()
    tasks: set[JobId] = set()
    for line in _rejoined(answer):
        if line:
            id, _, rest = line.partition("|")
            shown, _, nodes = rest.partition("|")
            job = JobId(_number(id))
            excluded[job] = nodes
            times[job] += 1
            if "_" in shown:
                tasks.add(job)
    return Short(excluded, times, frozenset(tasks))


def _rejoined(answer: str) -> Iterator[str]:
    """Yield the lines of the short list."""
    # a user may separate a job's excluded nodes by line feeds, too; no list of nodes has the `|` that stands behind an
    # id
    line = ""
    for part in answer.split("\n"):
        if _ID.match(part):
            yield line
            line = part
        else:
            line += f" {part}" if line and part else part
    yield line


def job(record: str, excluded: str, times: int, exclusive: str = "NO") -> Job:
    """Return the job of a record. Raises Odd.

    `times`: how often the short list has its id. `exclusive`: the word for a job that shares its nodes with no other
    one. squeue prints either a state or its flag.
    """
    head, *texts = record.split("\0")
    plain = head.split("|")
    if len(plain) != len(_PLAIN) + 1 or len(texts) + 1 != len(_FREE_TEXTS):
        raise Odd(record)
    told = dict(zip(_FREE_TEXTS, [plain.pop(), *texts], strict=True))
    of = dict(zip(_PLAIN, plain, strict=True))
    job = _plain_job(of, times)
    per_node = _number(of["ntpernode"]) if of["ntpernode"] not in _NONE else 0
    by_node = bool(_text(told["tres-per-node"])) or per_node > 0
    tasks = _number(of["numtasks"]) if of["numtasks"] not in (*_NONE, _NO_VAL) else 0
    asked = shown = job.node_count
    if job.is_pending and job.restarts:
        asked = records.asked_again(job.requested, shown, tasks, per_node)
    total = records.is_total(_text(told["tres-per-job"]), is_by_node=by_node, tasks=tasks, nodes=asked)
    return replace(
        job,
        is_total=total,
        node_count=asked,
        most_nodes=records.most_nodes(_number(of["maxnodes"]), asked, shown, is_total=total),
        exclusive=of["exclusive"] == exclusive,
        features=intern(_text(told["feature"])),
        name=told["name"],
        reason=_reason(told["reason"]),
        unavailable=records.unavailable(told["reason"]),
        excluded=_excluded(excluded),
        partition=intern(_text(told["partition"])),
        account=intern(_text(told["account"])),
        admin_comment=_text(told["admin_comment"]),
        qos=intern(_text(told["qos"])),
        reservation=_text(told["reservation"]),
        submit_host=_text(told["allocnodes"]),
        comment=_text(told["comment"]),
    )


def _plain_job(of: Mapping[str, str], times: int) -> Job:
    state, flags = records.job_state(_checked(_STATE, of["state"]))
    array, task, tasks = _array(of)
    waiting = _count_of(tasks, of, times)
    tres, started = intern(_text(of["tres-alloc"])), _time(of["starttime"])
    on, nodes = _nodes(of["nodelist"]), _number(of["numnodes"])
    return Job(
        id=JobId(_number(of["jobid"])),
        name="",
        state=state,
        user_id=_number(of["userid"]),
        flags=flags,
        nodes=on,
        batch_host=_host(of["batchhost"]),
        is_batch=_number(of["batchflag"]) != 0,
        restarts=_number(of["restartcnt"]),
        requeue=_number(of["requeue"]) != 0,
        exit_status=_exit_status(of["exit_code"]),
        array_job_id=array,
        array_task=task,
        het_job_id=JobId(_number(of["hetjobid"])) if of["hetjobid"] not in _NONE else None,
        node_count=nodes,
        submitted=_time(of["submittime"]),
        eligible=_time(of["eligibletime"]),
        started=started,
        ended=_time(of["endtime"]) if state in ENDED else None,
        preempted=_time(of["preempttime"]) if records.has_nodes(state, on) else None,
        time_limit_s=_limit(of["timelimit"]),
        priority=_number(of["prioritylong"]),
        nice=_number(of["nice"]),
        requested=tres,
        allocated=tres if records.has_nodes(state, on) else "",
        required=_nodes(of["reqnodes"]),
        planned=frozenset() if records.has_nodes(state, on) else _nodes(of["schednodes"]),
        array_tasks=tasks,
        waiting_tasks=waiting,
        most_tasks=records.tasks_at_once(of["jobarrayid"].rstrip("]")),
    )


def _array(of: Mapping[str, str]) -> tuple[JobId | None, int | None, str]:
    """Return the array, the task (None: all that still wait) and those that wait as Slurm writes them."""
    shown = of["jobarrayid"].partition("_")[2]
    if not shown:
        return None, None, ""
    array = JobId(_number(of["arrayjobid"]))
    return (array, None, shown.strip("[]")) if shown.startswith("[") else (array, _number(shown), "")


def _count_of(tasks: str, of: Mapping[str, str], times: int) -> int:
    """Return how many waiting tasks the record stands for. Raises Merged."""
    if not tasks:
        return 1
    count = records.count_tasks(tasks)
    if _number(of["jobid"]) != _number(of["arrayjobid"]) or count != times:
        raise Merged("tasks of an array that squeue shows as one")
    return count


def _checked(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise Odd(text)
    return text


def _number(text: str) -> int:
    return int(_checked(_NUMBER, text))


def _text(text: str) -> str:
    return "" if text in ("(null)", "N/A") else text


@lru_cache(maxsize=1024)
def _nodes(text: str) -> frozenset[NodeName]:
    try:
        return frozenset() if text in _NONE else expand(_checked(_NODES, text))
    except Retryable:
        raise Odd(text) from None


@lru_cache(maxsize=1024)
def _excluded(text: str) -> frozenset[NodeName]:
    return frozenset() if text in _NONE else expand_users(text)


def _host(text: str) -> NodeName | None:
    return None if text in _NONE else NodeName(_checked(_NODES, text))


def _time(text: str) -> float | None:
    return None if text in _NO_TIME else float(_number(text))


def _limit(text: str) -> float | None:
    if text in ("UNLIMITED", "NOT_SET"):
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise Odd(text)
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _exit_status(text: str) -> int:
    """Return the wait status: 22.05 prints that, later releases print code and signal."""
    code, colon, signal = text.partition(":")
    if not colon:
        return _number(text) & ~records.CORE_DUMPED
    return (_number(code) << 8) | (_number(signal) & 0x7F)


def _reason(text: str) -> str:
    for begin, word in _DESCRIBED.items():
        if text.startswith(begin):
            return word
    return text if text in _HELD else _checked(_REASON, text)
