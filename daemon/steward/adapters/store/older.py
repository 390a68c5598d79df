"""Memory of an older Steward as today's: times that it kept as notes, under keys of text, move to their records."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steward.model.case import Case, Marking
from steward.model.deep import DeepRun
from steward.model.group import GivenUp, Group
from steward.model.ids import AskId, InstanceId, JobId, NodeName
from steward.model.memory import AskMemory, HeadMemory, Memory, NodeMemory, Stands, Stray
from steward.model.resume import Attempt, Bystander, JobMemory, Leaving, TakenOut
from steward.model.slot import SlotRecord

_OF_NODES = {
    "away": "away_since",
    "back": "back_at",
    "lost": "lost_at",
    "unanswered": "silent_since",
    "record": "left_at",
    "settling": "settling",
    "excluded": "excluded_by",
}
"""How the notes of nodes began, and the fields of the nodes' memory that they are now."""
_A_CASES = re.compile(r"ask:c\d+-[0-9a-f]+:[\w-]+$")
_Notes = dict[str, float]
"""Notes by their keys; the functions below take out what they move to a record."""


def adopted(memory: Memory) -> Memory:
    """The memory with what its notes say of its records moved to them."""
    notes = dict(memory.noted)
    cases = {id: _case(case, notes) for id, case in memory.cases.items()}
    slots = {node: _slot(record, notes) for node, record in memory.slots.items()}
    deeps = {id: _deep(run, notes) for id, run in memory.deeps.items()}
    jobs = {id: _job(mem, notes) for id, mem in memory.jobs.items()}
    nodes, asks, head = _nodes(memory.nodes, notes), _asks(memory.asks, notes), _head(memory.head, notes)
    bystanders = _bystanders(memory, notes)
    groups, ended, strays = _groups(memory, notes), _ended(memory.ended, notes), _strays(memory.strays, notes)
    if len(notes) == len(memory.noted) and jobs == memory.jobs:
        return memory
    return replace(
        memory,
        cases=MappingProxyType(cases),
        slots=MappingProxyType(slots),
        deeps=MappingProxyType(deeps),
        nodes=MappingProxyType(nodes),
        bystanders=MappingProxyType(bystanders),
        asks=MappingProxyType(asks),
        head=head,
        groups=MappingProxyType(groups),
        ended=MappingProxyType(ended),
        strays=MappingProxyType(strays),
        jobs=MappingProxyType(jobs),
        noted=MappingProxyType(notes),
    )


def _nodes(before: Mapping[NodeName, NodeMemory], notes: _Notes) -> Mapping[NodeName, NodeMemory]:
    """Of what both tell of the later time counts: it can only delay what is done."""
    nodes = dict(before)
    for key in [key for key in notes if key.partition(":")[0] in _OF_NODES]:
        kind, _, rest = key.partition(":")
        at = notes.pop(key)
        name = NodeName(rest.rpartition(":")[2] if kind == "excluded" else rest.partition(":")[0])
        nodes[name] = _node(nodes.get(name, NodeMemory()), kind, rest, at)
    return nodes


def _node(mem: NodeMemory, kind: str, rest: str, at: float) -> NodeMemory:
    if kind == "settling":
        newer = mem.settling is None or at >= mem.settling.since
        return replace(mem, settling=Stands(check=rest.partition(":")[2], since=at)) if newer else mem
    if kind == "excluded":
        user = int(rest.partition(":")[0])
        counted = {**mem.excluded_by, user: max(at, mem.excluded_by.get(user, at))}
        return replace(mem, excluded_by=MappingProxyType(counted))
    told: dict[str, Any] = {what: max(at, getattr(mem, what) or at) for what in (_OF_NODES[kind],)}
    return replace(mem, **told)


def _asks(before: Mapping[AskId, AskMemory], notes: _Notes) -> Mapping[AskId, AskMemory]:
    """A case that asked a person has such a note as well, which stays: it is that of a sentence."""
    asks = dict(before)
    for key in [key for key in notes if key.startswith("ask:") and not _A_CASES.match(key)]:
        id, at = AskId(key.removeprefix("ask:")), notes.pop(key)
        judged = notes.pop(f"judged:{id}", None)
        asks[id] = AskMemory(at=at, judged=judged) if id not in asks or at >= asks[id].at else asks[id]
    return asks


def _head(head: HeadMemory, notes: _Notes) -> HeadMemory:
    marks, steady, ends = (notes.pop(key, None) for key in ("marks:looked", "marks:steady", "ends:looked"))
    return HeadMemory(
        marks=_later(head.marks, marks),
        marks_steady=max(head.marks_steady, steady or 0.0),
        ends=_later(head.ends, ends),
    )


def _later(one: float | None, other: float | None) -> float | None:
    return max((at for at in (one, other) if at is not None), default=None)


def _bystanders(memory: Memory, notes: _Notes) -> Mapping[JobId, Bystander]:
    """Those that said no, and those that gave way and were not remembered."""
    bystanders = dict(memory.bystanders)
    for key in sorted((key for key in notes if key.startswith(("no:", "clean:"))), reverse=True):
        kind, id, text = key.split(":", 2)
        job, at = JobId(int(id)), notes.pop(key)
        known = bystanders.get(job, Bystander(since=at))
        if kind == "no":
            known = replace(known, refused=True, submitted=None if text == "None" else float(text))
        elif job not in memory.jobs:
            known = replace(known, leaving=Leaving(restart=int(text), clean=at))
        if known != Bystander(since=at):
            bystanders[job] = known
    return bystanders


def _groups(memory: Memory, notes: _Notes) -> dict[str, Group]:
    """Groups that are updated together have one serial, so that a try of one group's node may count in the other: it
    changes nothing there."""
    groups = {name: _group(group, notes) for name, group in memory.groups.items()}
    for key in [key for key in notes if key.startswith("rollout:")]:
        del notes[key]
    return groups


def _group(group: Group, notes: _Notes) -> Group:
    own = [key for key in notes if key.startswith(f"bringup:{group.name}:")]
    given_up = [GivenUp(token=token, recipe=made, at=notes.pop(key)) for key in own for made, token in [_ends_of(key)]]
    notes.pop(f"rolled:{group.name}", None)
    rollout = group.rollout
    if rollout is not None:
        serials = {rollout.wanted.serial, rollout.previous.serial}
        marks = tuple(f"rollout:{serial}:{rollout.state.value}:" for serial in serials)
        tried = {key.split(":", 3)[3] for key in notes if key.startswith(marks)}
        rollout = replace(rollout, counted=rollout.counted | tried) if tried else rollout
    if not given_up and rollout is group.rollout:
        return group
    return replace(group, given_up=(*group.given_up, *given_up), rollout=rollout)


def _ends_of(key: str) -> tuple[str, str]:
    _, _, made, token = key.split(":", 3)
    return made, token


def _ended(before: Mapping[str, float], notes: _Notes) -> Mapping[str, float]:
    own = [key for key in notes if key.startswith("ended:")]
    return {**before, **{key.removeprefix("ended:"): notes.pop(key) for key in own}}


def _strays(before: Mapping[InstanceId, Stray], notes: _Notes) -> Mapping[InstanceId, Stray]:
    """That a node bears the mark of a case that is over has such a note as well, which stays: it is a sentence's."""
    own = [key for key in notes if key.startswith(("orphan:", "late:")) and key.count(":") == 1]
    strays = dict(before)
    for key in own:
        what, _, id = key.partition(":")
        told: dict[str, Any] = {what: notes.pop(key)}
        strays[InstanceId(id)] = replace(strays.get(InstanceId(id), Stray()), **told)
    return strays


def _case(case: Case, notes: _Notes) -> Case:
    under = [key for key in notes if key.startswith(f"under:{case.id}:")] if case.is_open else []
    for key in under:
        del notes[key]
    marking = Marking(
        shown=notes.pop(f"shown:{case.id}", None),
        gone=notes.pop(f"unmarked:{case.id}", None),
        under=tuple(sorted(int(key.rpartition(":")[2]) for key in under)),
        on_disk=notes.pop(f"on-disk:{case.id}", None) is not None,
    )
    return case if marking == Marking() else replace(case, marking=marking)


def _slot(record: SlotRecord, notes: _Notes) -> SlotRecord:
    missing, over = notes.pop(f"missing:{record.instance}", None), notes.pop(f"over:{record.token}", None)
    is_saved = notes.pop(f"saved:{record.logical}", None) is not None
    if missing is None and over is None and not is_saved:
        return record
    return replace(record, missing=missing, over=over, saved=is_saved)


def _deep(run: DeepRun, notes: _Notes) -> DeepRun:
    free, job_over = notes.pop(f"deep-free:{run.token}", None), notes.pop(f"deep-over:{run.token}", None)
    return run if free is None and job_over is None else replace(run, free=free, job_over=job_over)


def _job(mem: JobMemory, notes: _Notes) -> JobMemory:
    """An older head noted the end of a run under the restart that Slurm showed: the run's own, or the next one's."""
    shown = [f"{mem.id}:{restart}" for restart in (mem.restarts, mem.restarts + 1)]
    began = [at for run in shown for kind in ("over", "completing") if (at := notes.pop(f"{kind}:{run}", None))]
    clean = [at for run in shown if (at := notes.pop(f"clean:{run}", None))]
    leaving = Leaving(restart=mem.restarts, since=min(began, default=None), clean=min(clean, default=None))
    mark = f"taken:{mem.id}:{mem.restarts}:"
    taken = {key.removeprefix(mark): notes.pop(key) for key in [*notes] if key.startswith(mark)} if mem.excised else {}
    taken_out = tuple(TakenOut(node=NodeName(node), at=at) for node, at in sorted(taken.items()))
    attempts = tuple(_attempt(attempt, notes) for attempt in mem.attempts)
    too_much = [restart for restart in (mem.restarts, mem.restarts + 1) if f"unexcludable:{mem.id}:{restart}" in notes]
    for restart in too_much:
        del notes[f"unexcludable:{mem.id}:{restart}"]
    if not (began or clean or taken_out or too_much or attempts != mem.attempts):
        return mem
    ended = leaving if began or clean else mem.leaving
    unexcludable = max(too_much, default=mem.unexcludable)
    return replace(
        mem, leaving=ended, taken_out=taken_out or mem.taken_out, attempts=attempts, unexcludable=unexcludable
    )


def _attempt(attempt: Attempt, notes: _Notes) -> Attempt:
    """The note is needed for the ask, too: the shim may wait still."""
    failed_at = notes.get(f"ask:{attempt.decided_for}")
    return replace(attempt, failed_at=failed_at) if attempt.failed_at is None and failed_at is not None else attempt
