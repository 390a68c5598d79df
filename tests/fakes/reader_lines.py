"""Answers as steward-slurm (reader/README.md) and scontrol write them."""

import re
from collections.abc import Mapping

from steward.adapters.slurm.record_form import JOB, NODE, RecordForm

_NODE = {
    "name": "n1", "state": "IDLE", "partitions": "main", "features": "a,b", "active_features": "a,b",
    "address": "10.0.0.1", "hostname": "n1", "port": "6818", "cpus": "4", "threads": "1", "memory_mb": "500",
    "boot_time": "7", "slurmd_started": "8",
}  # fmt: skip
_JOB = {
    "id": "7", "name": "x", "state": "RUNNING", "user_id": "1000", "reason": "None", "nodes": "n1", "batch_host": "n1",
    "is_batch": "1", "restarts": "0", "requeue": "1", "exit_status": "0", "array_job_id": "0", "het_job_id": "0",
    "partition": "main", "node_count": "1", "priority": "1", "nice": "0", "expedited": "0", "exclusive": "0",
    "memory_per_cpu": "0",
}  # fmt: skip
_PLAIN = re.compile(r"[^ -\[\]-~]")


def escaped(text: str) -> str:
    plain = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return _PLAIN.sub(lambda found: f"\\{ord(found[0]):02x}", plain)


def _line(form: RecordForm, known: Mapping[str, str], changed: Mapping[str, object]) -> str:
    of = {**known, **{name: str(value) for name, value in changed.items()}}
    assert of.keys() <= form.fields.keys()
    return "\t".join(escaped(of.get(name, "")) for name in form.fields)


def node_line(**changed: object) -> str:
    return _line(NODE, _NODE, changed)


def job_line(**changed: object) -> str:
    return _line(JOB, _JOB, changed)


def answer(kind: str, form: RecordForm, *lines: str, stamp: str = "-") -> str:
    body = "".join(f"{line}\n" for line in lines)
    return f"{kind} {stamp} {len(lines)} {len(body)} {form.names.decode()}\n{body}"


def nodes(*lines: str, stamp: str = "70.71") -> str:
    return answer("nodes", NODE, *lines, stamp=stamp)


def jobs(*lines: str, stamp: str = "70") -> str:
    return answer("jobs", JOB, *lines, stamp=stamp)


def scontrol_line(name: str = "n1", state: str = "IDLE") -> str:
    """A node as scontrol prints it."""
    return (
        f"NodeName={name} CoresPerSocket=1 CPUAlloc=0 CPUTot=4 CPULoad=0.1 AvailableFeatures=a,b ActiveFeatures=a,b"
        f" Gres=(null) NodeAddr=10.0.0.1 NodeHostName={name} Port=6818 OS=Linux RealMemory=500 AllocMem=0 FreeMem=9"
        f" Sockets=1 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Partitions=main BootTime=7"
        " SlurmdStartTime=8 CfgTRES=cpu=2 AllocTRES="
    )
