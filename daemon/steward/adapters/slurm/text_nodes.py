"""A node as one line of `scontrol --oneliner show nodes`, for when steward-slurm does not answer.

Only administrators and slurmd write the line, and it is read from its first word to its last: Odd is raised for
anything unexpected. The same in 22.05, 24.11 and 26.05; times are Unix seconds with SLURM_TIME_FORMAT=%s.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from sys import intern

from steward.adapters.slurm.records import extra, in_use, node_state, out_of_service, partitions_of, words_in
from steward.adapters.slurm.words import expand
from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase, Reason

_AT = r"(?:Unknown|None|\d+)"
_SIGNED = rf" \[[^@\[\]]+@{_AT}\]"
_LINE = re.compile(
    r"NodeName=([A-Za-z0-9_][A-Za-z0-9_.-]*) (?:Arch=\S+ )?CoresPerSocket=\d+ +CPUAlloc=\d+ (?:CPUEfctv=\d+ )?"
    r"CPUTot=(\d+) CPULoad=\S+ AvailableFeatures=(\S+) ActiveFeatures=(\S+) Gres=(\S+) (?:GresDrain=\S+ )?"
    r"(?:GresUsed=\S+ )?NodeAddr=(\S+) NodeHostName=(\S+) +(?:Port=(\d+) +)?(?:Version=\S+ *)?(?:OS=[^=]*? +)?"
    r"RealMemory=(\d+) AllocMem=\d+ FreeMem=\S+ Sockets=\d+ Boards=\d+ (?:[A-Z][A-Za-z]+=[\w.,:/-]+ )*?"
    r"State=([A-Z_+*]+) ThreadsPerCore=(\d+) TmpDisk=\d+ Weight=\d+ (?:Owner=\S+ )?(?:MCS_label=\S+ +)?"
    r"(?:NextState=\S+ )?(?:Partitions=(\S+) +)?BootTime=(None|Unknown|\d+) SlurmdStartTime=(None|Unknown|\d+) "
    r"(?:[A-Z][A-Za-z]+=[^\s=]* )*?CfgTRES=\S* AllocTRES=\S*"
    r"(?: (?!Reason=|Comment=|Extra=|Instance)[A-Z][A-Za-z]+=[^\s=]*)* *"
    rf"(?:Reason=(.*?)(?: \[([^@\[\]]+)@({_AT})\]|(?!.*{_SIGNED})))?"
    r"(?: (?:Comment|Extra|InstanceId|InstanceType)=.*)?",
    re.DOTALL,
)
_BEGIN = re.compile(r"^NodeName=(\S+) (?:Arch|CoresPerSocket)=", re.MULTILINE)
_PORT = re.compile(r"^SlurmdPort\s*=\s*([0-9]{1,5})\s*$", re.MULTILINE)
_CACHED_STATES = 1024


class Odd(ValueError):
    """Text that is not as expected."""


def usual_port(config: str) -> str:
    """Return the port of every node whose line names none, from `scontrol show config`. Raises Odd."""
    found = _PORT.search(config)
    if found is None:
        raise Odd("no SlurmdPort in Slurm's configuration")
    return found[1]


def lines(answer: str) -> Iterator[tuple[NodeName, str]]:
    """Yield the nodes of an answer with their texts; megabytes are not split at once. Reasons may have line feeds."""
    found = _BEGIN.search(answer)
    while found is not None:
        after = _BEGIN.search(answer, found.end())
        yield NodeName(found[1]), answer[found.start() : after.start() if after else len(answer)].rstrip("\n")
        found = after


def key(line: str, usual_port: str) -> str:
    """Return the relevant part of a line, without load, memory in use and the last busy time. Raises Odd."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise Odd(line)
    return "\0".join([each or "" for each in found.groups()] + [usual_port])


def node(key: str) -> Node:
    """Return the node of a key. Raises Odd."""
    name, cpus, features, active, gres, address, host, port, memory, state, threads, *rest = key.split("\0")
    partitions, booted, started, reason, user, at, usual_port = rest
    base, flags = _state(state)
    told = Reason(text=reason, user=user, at=_time(at) or 0.0) if reason else None
    return Node(
        name=NodeName(name),
        base=base,
        flags=flags,
        reason=told if out_of_service(base, flags) else None,
        partitions=partitions_of(partitions),
        features=words_in(features),
        active_features=words_in(active),
        address=address,
        port=int(port or usual_port),
        cpus=int(cpus),
        threads=max(int(threads), 1),
        memory_mb=int(memory),
        gres="" if gres == "(null)" else intern(gres),
        boot_time=_time(booted),
        slurmd_started=_time(started),
        responding="NOT_RESPONDING" not in flags,
        extra=extra(name, host),
    )


@lru_cache(maxsize=_CACHED_STATES)
def _state(text: str) -> tuple[NodeBase, frozenset[str]]:
    if "*" in text:
        raise Odd(text)
    return node_state(text.split("+"))


def _time(text: str) -> float | None:
    return float(text) if text.isdigit() and text != "0" else None


_WITH_JOBS = ("allocated", "mixed", "completing", "draining", "failing")


def gres_used(told: str) -> dict[NodeName, str]:
    """Return the idle nodes with GRES in use, from `sinfo --Format=GresUsed:|,StateLong:|,NodeList:|`."""
    found: dict[NodeName, str] = {}
    for line in told.splitlines():
        used, _, rest = line.partition("|")
        state, _, nodes = rest.partition("|")
        if (text := in_use(used)) and state and not state.startswith(_WITH_JOBS):
            found |= dict.fromkeys(expand(nodes.partition("|")[0].strip()), text)
    return found
