"""What Slurm tells as text is read as what its library tells, whatever users and administrators write."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.slurm import records, text_jobs, text_nodes
from steward.adapters.slurm.text_jobs import Format
from steward.adapters.slurm.text_nodes import Odd
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.ports import Retryable
from tests.fakes.reader_lines import job_line, node_line

FORMAT = Format()
FREE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60) | st.sampled_from(
    ["x JobState=FAILED", "a\n77|77|77|N/A|FAILED|0", "|" * 40, "\n", "a\tb", "\x1f\x1d\x85"]
)
WORDS = st.sampled_from(["a", "b,c", "steward:bad", "x_1.2"])
TIMES = st.integers(1, 2**31)
STATES = st.sampled_from([state.value for state in JobState if state.value != "UNKNOWN"] + ["COMPLETING"])


@st.composite
def texts(draw: st.DrawFn) -> dict[str, Any]:
    """What a job has of text that is no list of nodes."""
    return {
        "name": draw(FREE),
        "account": draw(FREE.filter(_is_told)),
        "admin_comment": draw(FREE.filter(_is_told)),
        "comment": draw(FREE.filter(_is_told)),
        "qos": draw(st.sampled_from(["", "high"])),
        "partition": draw(st.sampled_from(["main", "a,b"])),
        "state_reason": draw(st.sampled_from(["None", "Resources", "JobHeldUser", "BeginTime"])),
        "state_description": "",
    }


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """What it asks for besides amounts."""
    return {
        "required_nodes": draw(st.sampled_from(["", "n7", "n[1-3,9]"])),
        "sched_nodes": draw(st.sampled_from(["", "n7", "n[1-3,9]"])),
        "features": draw(st.sampled_from(["", "a&b", "[x|y]"])),
        "shared": draw(st.sampled_from([None, "none", "user"])),
        "tasks": draw(st.integers(1, 12)),
        "tasks_per_node": draw(st.sampled_from([0, 2])),
        "tres_per_job": draw(st.sampled_from(["", "gres:gpu:4"])),
        "tres_per_node": draw(st.sampled_from(["", "gres:gpu:4"])),
    }


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A job as Slurm's library tells of it."""
    state, nodes = draw(STATES), draw(st.integers(1, 9))
    is_task = draw(st.booleans())
    tres = f"cpu={nodes},node={nodes},billing={nodes}"
    started = 0 if state == "PENDING" else draw(TIMES)
    return {
        **draw(texts()),
        **draw(shapes()),
        "job_id": draw(st.integers(1, 2**30)),
        "job_state": state,
        "user_id": draw(st.integers(0, 2**31)),
        "nodes": "" if state == "PENDING" else f"n[1-{nodes}]",
        "batch_host": "" if state == "PENDING" else "n1",
        "batch_flag": draw(st.booleans()),
        "restart_cnt": draw(st.integers(0, 99)),
        "requeue": draw(st.booleans()),
        "exit_code": draw(st.sampled_from([0, 11, 256, 768, 139])),
        "excluded_nodes": draw(st.sampled_from(["", "n7", "n[1-3,9]"])),
        "array_job_id": draw(st.integers(1, 2**30)) if is_task else 0,
        "array_task_id": draw(st.integers(0, 10**6)) if is_task else None,
        "array_task_string": "",
        "het_job_id": draw(st.sampled_from([0, 5])),
        "node_count": nodes,
        "max_nodes": draw(st.integers(0, 12)),
        "submit_time": draw(TIMES),
        "eligible_time": draw(st.just(0) | TIMES),
        "start_time": started,
        "end_time": draw(TIMES),
        "preempt_time": draw(st.just(0) | TIMES),
        "time_limit": draw(st.none() | st.integers(1, 10**6)),
        "resv_name": "",
        "priority": draw(st.integers(0, 2**32 - 1)),
        "nice": draw(st.integers(-1000, 1000)),
        "tres_req_str": tres,
        "tres_alloc_str": tres if started else "",
        **draw(SHAPES),
    }


SHAPES = st.fixed_dictionaries(
    {
        "required_nodes": st.sampled_from(["", "n7", "n[1-3,9]"]),
        "sched_nodes": st.sampled_from(["", "n7", "n[1-3,9]"]),
        "features": st.sampled_from(["", "a&b", "[x|y]"]),
        "shared": st.sampled_from([None, "none", "user"]),
        "tasks": st.integers(1, 12),
        "tasks_per_node": st.sampled_from([0, 2]),
        "tres_per_job": st.sampled_from(["", "gres:gpu:4"]),
        "tres_per_node": st.sampled_from(["", "gres:gpu:4"]),
    }
)
"""What a job asks for of nodes."""


def _is_told(text: str) -> bool:
    """Slurm itself writes these where there is nothing."""
    return text not in ("(null)", "N/A")


def as_text(job: dict[str, Any]) -> tuple[str, str]:
    """Its record in the long format, and its line in the short list."""
    limit = job["time_limit"]
    shown = f"{job['array_job_id']}_{job['array_task_id']}" if job["array_job_id"] else str(job["job_id"])
    plain = [
        job["job_id"], shown, job["array_job_id"] or job["job_id"], "N/A", job["job_state"], job["user_id"],
        job["nodes"], job["batch_host"] or "n/a", int(job["batch_flag"]), job["restart_cnt"], int(job["requeue"]),
        job["exit_code"], job["het_job_id"] or "N/A", job["node_count"], job["max_nodes"], job["submit_time"],
        job["eligible_time"] or "N/A", job["start_time"] or "N/A", job["end_time"],
        job["preempt_time"] or "N/A",
        "UNLIMITED" if limit is None else f"{limit // 1440}-{limit // 60 % 24:02}:{limit % 60:02}:00",
        job["priority"], job["nice"], job["tres_req_str"],
        job["required_nodes"], job["tasks"], job["tasks_per_node"], job["sched_nodes"],
        {None: "OK", "none": "NO", "user": "USER"}[job["shared"]],
    ]  # fmt: skip
    free = [
        job["partition"], job["state_reason"], job["account"] or "(null)", job["qos"] or "(null)", "(null)",
        "login1", job["name"], job["comment"] or "(null)", job["admin_comment"] or "(null)",
        job["features"] or "(null)", job["tres_per_job"] or "(null)", job["tres_per_node"] or "(null)",
    ]  # fmt: skip
    long = "".join(f"{each}|" for each in plain) + "".join(f"{each}{FORMAT.word}" for each in free)
    return long + "\n", f"{job['job_id']}|{shown}|{job['excluded_nodes']}\n"


def as_line(job: dict[str, Any]) -> str:
    """Its record of steward-slurm."""
    of = {
        "id": job["job_id"], "name": job["name"], "state": job["job_state"], "user_id": job["user_id"],
        "reason": job["state_reason"], "described": job["state_description"], "nodes": job["nodes"],
        "batch_host": job["batch_host"], "is_batch": int(job["batch_flag"]), "restarts": job["restart_cnt"],
        "requeue": int(job["requeue"]), "exit_status": job["exit_code"], "excluded": job["excluded_nodes"],
        "array_job_id": job["array_job_id"], "array_task": _or_nothing(job["array_task_id"]),
        "het_job_id": job["het_job_id"], "partition": job["partition"], "account": job["account"],
        "node_count": job["node_count"], "most_nodes": job["max_nodes"], "submitted": job["submit_time"],
        "eligible": job["eligible_time"] or "", "started": job["start_time"] or "", "ended": job["end_time"],
        "preempted": job["preempt_time"] or "", "admin_comment": job["admin_comment"], "comment": job["comment"],
        "qos": job["qos"], "limit_minutes": _or_nothing(job["time_limit"]), "priority": job["priority"],
        "nice": job["nice"], "submit_host": "login1", "requested": job["tres_req_str"],
        "allocated": job["tres_alloc_str"], "tres_per_job": job["tres_per_job"], "tres_per_node": job["tres_per_node"],
        "tasks_per_node": job["tasks_per_node"], "tasks": job["tasks"], "required": job["required_nodes"],
        "planned": job["sched_nodes"],
        "features": job["features"], "exclusive": int(job["shared"] == "none"),
    }  # fmt: skip
    return job_line(**of)


def _or_nothing(number: int | None) -> object:
    return "" if number is None else number


@given(st.lists(jobs(), unique_by=lambda job: job["job_id"], max_size=5))
def test_jobs_are_the_same_as_text_and_through_the_library(told: list[dict[str, Any]]) -> None:
    texts = [as_text(job) for job in told]
    short = text_jobs.short("".join(short for _, short in texts))
    found = {}
    for record in FORMAT.cut("".join(long for long, _ in texts)):
        id = text_jobs.id_of(record)
        found[id] = text_jobs.job(record, short.excluded[id], short.times[id])

    assert found == {job.id: job for job in map(records.job_of, map(as_line, told))}


@given(st.lists(jobs(), unique_by=lambda job: job["job_id"], min_size=1, max_size=3), st.data())
def test_an_answer_that_is_cut_off_is_odd_or_of_fewer_jobs(told: list[dict[str, Any]], data: st.DataObject) -> None:
    answer = "".join(as_text(job)[0] for job in told)
    part = answer[: data.draw(st.integers(0, len(answer) - 2))]
    try:
        records_ = FORMAT.cut(part)
    except Odd:
        return
    assert [text_jobs.id_of(record) for record in records_] == [JobId(job["job_id"]) for job in told][: len(records_)]


@given(st.text(max_size=200) | FREE, st.text(max_size=40), st.integers(0, 3))
def test_no_record_makes_more_than_an_odd_one(record: str, excluded: str, times: int) -> None:
    try:
        text_jobs.job(record, excluded, times)
    except (Odd, Retryable):
        return


LINE = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad={load} "
    "AvailableFeatures={features} ActiveFeatures=a,b Gres=gpu:8 NodeAddr=10.0.0.1 NodeHostName=vm Port=6818 "
    "Version=22.05.8 OS=Linux 6.1 #1 SMP @0  RealMemory=500 AllocMem=0 FreeMem={free} Sockets=4 Boards=1 "
    "State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main,x  "
    "BootTime={boot} SlurmdStartTime=1795438302 LastBusyTime={busy} CfgTRES=cpu=4,mem=500M,billing=4 AllocTRES= "
    "CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s{tail}"
)
BASES = st.sampled_from(["IDLE", "MIXED", "ALLOCATED", "DOWN", "FUTURE", "ODD"])
FLAGS = st.frozensets(st.sampled_from(["DRAIN", "COMPLETING", "CLOUD", "NOT_RESPONDING", "DYNAMIC_NORM", "PLANNED"]))


REASONS = FREE | st.sampled_from(["moved, Comment=see 4711", "a Extra=b", "Instance Comment="])
COMMENTS = st.sampled_from(["", " Comment=steward: case c1", " Comment=a [b] Extra=c"])


@given(BASES, FLAGS, REASONS, COMMENTS, WORDS, st.just(0) | TIMES, st.tuples(TIMES, TIMES, TIMES))
def test_a_node_is_the_same_as_text_and_through_the_library(
    base: str, flags: frozenset[str], reason: str, comment: str, features: str, boot: int, load: tuple[int, int, int]
) -> None:
    tail = (f" Reason={reason} [root@7]" if reason else "") + comment
    state = "+".join([base, *sorted(flags)])
    line = LINE.format(
        load=load[0], free=load[1], busy=load[2], features=features, state=state, boot=boot or "None", tail=tail
    )
    wanted = records.node_of(
        node_line(
            name="n1", state=state, partitions="main,x", features=features, active_features="a,b", address="10.0.0.1",
            hostname="vm", port=6818, cpus=4, memory_mb=500, gres="gpu:8", boot_time=boot or "",
            slurmd_started=1795438302, reason=reason, reason_at=7, reason_user="root",
        )
    )  # fmt: skip
    ((name, told),) = text_nodes.lines(line + "\n")
    key = text_nodes.key(told, "7000")

    assert name == "n1"
    assert text_nodes.node(key) == wanted
    assert text_nodes.key(line.replace(f"CPULoad={load[0]}", "CPULoad=0.01"), "7000") == key
    assert text_nodes.node(text_nodes.key(line.replace("Port=6818 ", ""), "7000")).port == 7000
