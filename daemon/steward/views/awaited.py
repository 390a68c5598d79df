"""The sentence about what a node under repair or in a moving slot waits for, and what is missing for it."""

from enum import Enum

from steward.model.case import Case, CaseStep
from steward.model.ids import NodeName
from steward.model.setup import SetupState
from steward.model.slot import SlotRecord, SlotStep
from steward.model.text import UNREAD, time_left
from steward.policy.case.spares import needs_spare
from steward.policy.draft import Draft
from steward.policy.facts.by_person import commands_for_held_node
from steward.policy.facts.verdict import blocks_return
from steward.policy.guards.new_machine import was_checked

_OF_SLOTS: dict[SlotStep, str] = {
    SlotStep.WAITING: "its turn to be launched",
    SlotStep.LAUNCH: "the provider to make its machine",
    SlotStep.PROVISION: "its agent to connect",
    SlotStep.SETUP: "its lifecycle scripts to end",
    SlotStep.VERIFY: "its checks to pass and its slurmd to register",
    SlotStep.RETURN: "Slurm to start jobs on it",
    SlotStep.SERVING: "its jobs to be asked to leave",
    SlotStep.DRAIN: "its jobs to end",
    SlotStep.BACKUP: "the backup command to end",
    SlotStep.END: "the provider to end its machine",
}
_OF_CASES: dict[CaseStep, str] = {
    CaseStep.SUSPECT: "a second look, or the fault to go",
    CaseStep.DRAIN: "Slurm to show it out of service",
    CaseStep.RELEASE: "its jobs to end and its turn to come",
    CaseStep.MEND: "its agent to carry out the repair",
    CaseStep.LAUNCH: "the provider to reboot or replace its machine",
    CaseStep.PROVISION: "its agent to connect",
    CaseStep.VERIFY: "its checks to pass and its slurmd to register",
    CaseStep.RETURN: "Slurm to start jobs on it",
}
_CHECKED = (SlotStep.VERIFY, CaseStep.VERIFY)
_CONNECTED = (SlotStep.PROVISION, SlotStep.SETUP, CaseStep.PROVISION, *_CHECKED)


def of_slot(slot: SlotRecord, limit_s: float | None, draft: Draft) -> str:
    """Return the line about a slot that is on its way."""
    lacks = _lacks(slot.node, slot.step, slot.entered, draft)
    return _line(_OF_SLOTS[slot.step], lacks, slot.entered, limit_s, draft)


def of_case(case: Case, limit_s: float | None, draft: Draft) -> str:
    """Return the line about an open repair."""
    if case.step is CaseStep.HELD:
        return f"Waits for a person: {commands_for_held_node(case.node, draft)}."
    lacks = _lacks(case.stand_in or case.node, case.step, case.entered, draft)
    awaited = _OF_CASES[case.step]
    if case.step is CaseStep.LAUNCH and needs_spare(case, draft):
        awaited = "a spare to take its place"
    return _line(awaited, lacks, case.entered, limit_s, draft, case.stand_in)


def _line(
    awaited: str, lacks: str, entered: float, limit_s: float | None, draft: Draft, spare: NodeName | None = None
) -> str:
    waits = f"Spare {spare} waits" if spare else "Waits"
    # while Slurm cannot be read, no deadline runs
    limit_s = limit_s if draft.slurm_is_fresh else None
    by = f", at the latest {time_left(entered + limit_s, draft.now)}" if limit_s is not None else ""
    return f"{waits} for {awaited}{by}{f': {lacks}' if lacks else ''}."


def _lacks(name: NodeName, step: Enum, entered: float, draft: Draft) -> str:
    """Return what is missing before the step can end; empty if that is not known."""
    view, node = draft.seen.agents.get(name), draft.seen.nodes.get(name)
    if not draft.slurm_is_fresh:
        return UNREAD
    if step in _CONNECTED and (view is None or not view.connected):
        return f"the agent of {name} is not connected"
    if view is not None and view.setup is not None and view.setup.state is SetupState.RUNNING and view.setup.why:
        return f"{view.setup.step}: {view.setup.why}"
    if step not in _CHECKED or view is None:
        return ""
    if bad := next((finding for finding in view.findings if blocks_return(finding, draft)), None):
        return f"check {bad.check} fails: {bad.text}"
    if not was_checked(view, entered):
        return "its checks have not answered yet"
    if node is None or not node.responding:
        return f"slurmd of {name} has not registered"
    return f"Slurm refuses what slurmd of {name} registers: {node.reason or 'no reason'}" if node.is_refused else ""
