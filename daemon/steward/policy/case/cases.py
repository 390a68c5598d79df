"""Move every open case as far as the picture allows."""

from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.events import Level
from steward.model.why import Why
from steward.policy.case.facts import QUESTIONS, noted
from steward.policy.case.marks import note_marks
from steward.policy.case.scene import CaseScene, note_failures, note_old_instance, note_shortage
from steward.policy.case.steps import entered, wish_for
from steward.policy.case.suspicion import fault_of
from steward.policy.case.table import CASE_TABLE, CaseFact
from steward.policy.draft import Draft
from steward.policy.facts.gone import why_gone
from steward.policy.guards.lemons import note_failure
from steward.policy.state_machine import StateMachine

BY_PERSON = frozenset({CaseFact.FREED, CaseFact.TAKEN, CaseFact.COMMANDED})


def move_cases(draft: Draft) -> None:
    """Move every open case by the facts, oldest first, and ask for the actions that its step needs."""
    if not draft.may_touch_nodes:
        note_marks(draft)
        return
    for case in sorted(draft.cases.values(), key=lambda c: (c.opened, c.id)):
        if case.is_open:
            _move(case, draft)


def _move(case: Case, draft: Draft) -> None:
    node = draft.seen.nodes.get(case.node)
    if node is None:
        _close_without_node(case, draft)
        return
    case = draft.cases.keep(note_shortage(note_old_instance(note_failures(case, draft), draft), draft))
    scene = CaseScene(case=case, node=node, view=draft.seen.agents.get(case.node), draft=draft)
    moved = _CASES.move(scene)
    if moved is not None:
        wish_for(moved)


def _enter(scene: CaseScene, fact: CaseFact, step: CaseStep) -> CaseScene | None:
    """Return the scene of the case in its new step; None if the case is closed."""
    case = _entered(scene, fact, step)
    return replace(scene, case=case) if case.is_open else None


def _entered(scene: CaseScene, fact: CaseFact, step: CaseStep) -> Case:
    draft, before = scene.draft, scene.case
    case = entered(before, fact, step, scene)
    if fact in BY_PERSON:
        case = replace(case, why=Why(rule="case.by_person", text=fact.value, evidence=(str(before.why),)))
    if before.step is CaseStep.SUSPECT and step is CaseStep.CLOSED:
        draft.cases.forget(case)
        draft.tell("node.cleared", f"{case.node}: {fact.value}", node=case.node, case=case.id)
        return case
    if before.step is CaseStep.SUSPECT:
        case = _confirm(case, scene)
    by = f" (spare {case.stand_in})" if case.stand_in else ""
    level = Level.WARNING if step is CaseStep.HELD else Level.INFO
    text = f"{case.node}: {before.step.value} -> {step.value}: {fact.value}{by}"
    draft.tell(f"case.{step.value}", text, level=level, node=case.node, case=case.id)
    return draft.cases.keep(case)


def _confirm(case: Case, scene: CaseScene) -> Case:
    note_failure(case, scene.draft)
    fault = fault_of(scene.node, scene.draft)
    why = fault.why if fault and fault.trigger is case.trigger else case.why
    word = why_gone(scene.node, scene.draft) if case.trigger is Trigger.LOST else ""
    if word and word not in why.evidence:
        why = replace(why, evidence=(*why.evidence, word))
    scene.draft.tell("case.opened", f"{case.node}: {why}", level=Level.WARNING, node=case.node, case=case.id)
    return replace(case, why=why, detected=scene.draft.now, gone=bool(word))


_CASES = StateMachine(
    table=CASE_TABLE, step_of=lambda scene: scene.case.step, questions=QUESTIONS, enter=_enter, noted=noted
)


def _close_without_node(case: Case, draft: Draft) -> None:
    why = Why(rule="case.no_node", text=f"Slurm does not know {case.node} any more", evidence=(str(case.why),))
    draft.cases.close(case, why, draft.now)
    draft.tell("case.closed", why.text, level=Level.WARNING, node=case.node, case=case.id)
