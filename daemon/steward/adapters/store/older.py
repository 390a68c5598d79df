"""Memory of an older Steward as today's: times that it kept as notes, under keys of text, move to their records."""

from dataclasses import replace
from types import MappingProxyType

from steward.model.case import Case, Marking
from steward.model.deep import DeepRun
from steward.model.memory import Memory
from steward.model.slot import SlotRecord

_Notes = dict[str, float]
"""Notes by their keys; the functions below take out what they move to a record."""


def adopted(memory: Memory) -> Memory:
    """The memory with what its notes say of its records moved to them."""
    notes = dict(memory.noted)
    cases = {id: _case(case, notes) for id, case in memory.cases.items()}
    slots = {node: _slot(record, notes) for node, record in memory.slots.items()}
    deeps = {id: _deep(run, notes) for id, run in memory.deeps.items()}
    if len(notes) == len(memory.noted):
        return memory
    return replace(
        memory,
        cases=MappingProxyType(cases),
        slots=MappingProxyType(slots),
        deeps=MappingProxyType(deeps),
        noted=MappingProxyType(notes),
    )


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
