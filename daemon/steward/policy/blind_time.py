"""Keep time in which Steward could not act out of the deadlines of cases and slots."""

from dataclasses import replace

from steward.model.case import CaseStep
from steward.policy.draft import Draft
from steward.policy.groups.slot_table import TIMED
from steward.policy.state_machine import BLIND_S


def forgive_blind_time(draft: Draft) -> None:
    """Extend the deadlines of steps by the time in which Steward could not act (head down, Slurm unread, paused).

    Time in which repairs are only reported extends the deadlines of cases alone.
    """
    gap = draft.now - draft.looked
    if not draft.may_provision or not draft.looked or gap <= 0:
        return
    is_blind = gap > BLIND_S
    if is_blind or not draft.may_touch_nodes:
        # a held case has no deadline, and an admin's command counts only if it came after `entered`
        for case in [c for c in draft.cases.values() if c.is_open and c.step is not CaseStep.HELD]:
            draft.cases.keep(replace(case, entered=case.entered + gap))
        draft.looked = draft.now
    if is_blind:
        for slot in [s for s in draft.slots.values() if s.step in TIMED]:
            draft.slots.keep(replace(slot, entered=slot.entered + gap))


def note_look(draft: Draft) -> None:
    """Note, to within half of `BLIND_S`, when Steward could last act; note 0 while no case or slot has a deadline."""
    if not draft.may_provision:
        return
    is_busy = any(case.is_open and not case.waits_for_person for case in draft.cases.values())
    if not is_busy and not any(slot.step in TIMED for slot in draft.slots.values()):
        draft.looked = 0.0
    elif not draft.looked or draft.now - draft.looked > BLIND_S / 2:
        draft.looked = draft.now
