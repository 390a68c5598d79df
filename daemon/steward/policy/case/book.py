"""The cases of a plan in the making: the part of memory that is about them, and what is found by node."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from steward.model.case import Case, Step, Trigger
from steward.model.ids import CaseId, NodeName
from steward.model.why import Why
from steward.policy.kept import Kept

_TIDY = (Step.SUSPECT, Step.CLOSED)
"""Nothing was done to the node (yet, or any more)."""
_NEW_MACHINE = (Step.VERIFY, Step.RETURN)
REPLACING = (Step.MEND, Step.LAUNCH, Step.PROVISION, Step.VERIFY, Step.RETURN)


class CaseBook(Kept[CaseId, Case]):
    """The cases by id. Every change goes through `keep`, `close` and `forget`."""

    __slots__ = ("_of", "_open", "replacing")

    def __init__(self, before: Mapping[CaseId, Case]) -> None:
        super().__init__(before)
        self._open = {case.node: case.id for case in self.values() if case.is_open}
        self._of: defaultdict[NodeName, dict[CaseId, None]] | None = None
        self.replacing = {case.id: case.node for case in self.values() if case.step in REPLACING}
        """Nodes of the cases that are at work on their machines."""

    @property
    def nodes_in_repair(self) -> Collection[NodeName]:
        """Nodes with an open case."""
        return self._open.keys()

    def open_of(self, node: NodeName) -> Case | None:
        """The node's open case (there is at most one)."""
        return self[self._open[node]] if node in self._open else None

    def in_work(self, node: NodeName) -> Case | None:
        """The node's open case when it is past suspicion."""
        return case if (case := self.open_of(node)) and case.step not in _TIDY else None

    def lost(self, node: NodeName) -> Case | None:
        """The node's open case when it was lost and no new machine is verified yet."""
        case = self.in_work(node)
        return case if case is not None and case.trigger is Trigger.LOST and case.step not in _NEW_MACHINE else None

    def expects_no_agent(self, node: NodeName) -> bool:
        """Whether the node is under repair and its machine was lost, is in a person's hands or is just being ended or
        mended."""
        case = self.in_work(node)
        if case is None or case.step in _NEW_MACHINE:
            return False
        return case.trigger is Trigger.LOST or case.step not in (Step.DRAIN, Step.RELEASE)

    def of(self, node: NodeName) -> list[Case]:
        """Every case of a node that is remembered, open ones and closed ones."""
        if self._of is None:
            self._of = defaultdict(dict)
            for case in self.values():
                self._of[case.node][case.id] = None
        return [self[id] for id in self._of[node]] if node in self._of else []

    def keep(self, case: Case) -> Case:
        """Remember the case as it is now."""
        self[case.id] = case
        self.replacing.pop(case.id, None)
        if case.step in REPLACING:
            self.replacing[case.id] = case.node
        if self._of is not None:
            self._of[case.node][case.id] = None
        if case.is_open:
            self._open[case.node] = case.id
        elif self._open.get(case.node) == case.id:
            del self._open[case.node]
        return case

    def close(self, case: Case, why: Why, now: float) -> Case:
        """Remember the case as closed."""
        return self.keep(replace(case, step=Step.CLOSED, entered=now, closed=now, why=why))

    def forget(self, case: Case) -> None:
        """Drop the case from memory."""
        self.pop(case.id, None)
        self.replacing.pop(case.id, None)
        if self._of is not None:
            self._of[case.node].pop(case.id, None)
        if self._open.get(case.node) == case.id:
            del self._open[case.node]
