"""An answer tells a shim that its job was requeued or its bad nodes taken out: it must not go out when that failed."""

from typing import Any

from steward.model.action import Action, AnswerAsk
from steward.model.ask import Answer
from steward.model.ids import JobId, NodeName
from steward.model.outcome import STALE
from steward.workflows.effects import Batch, Breaks, Door, row_of

_TOO_SLOW_S = 5.0
_HUNG = {
    Door.SLURM: "the Slurm command before it did not return",
    Door.ACCOUNTING: "the change of limits before it did not return",
}


class Promises:
    """Which promises of this plan were kept so far. What is already as wished (`stale`) counts as kept."""

    def __init__(self) -> None:
        self._jobs: set[JobId] = set()
        self._nodes: set[NodeName] = set()
        self._hung: set[Door] = set()

    def refusal(self, action: Action) -> str:
        """Why `action` must not be tried now; empty when it may."""
        door = row_of(action).door
        if door in self._hung:
            return _HUNG[door]
        if isinstance(action, AnswerAsk) and action.answer is not Answer.STOP and self._is_broken(action):
            return "what the answer promised could not be done"
        return ""

    def _is_broken(self, answer: AnswerAsk) -> bool:
        return answer.job in self._jobs or bool(answer.exclude & self._nodes)

    def note(self, batch: Batch, outcome: str, took_s: float) -> None:
        if outcome in ("done", STALE):
            return
        for action in batch:
            self._note(action, took_s)

    def _note(self, action: Any, took_s: float) -> None:
        row = row_of(action)
        if row.breaks is Breaks.JOB:
            self._jobs.add(action.job)
        elif row.breaks is Breaks.NODE:
            self._nodes.add(action.node)
        if row.door in _HUNG and took_s > _TOO_SLOW_S:
            self._hung.add(row.door)
