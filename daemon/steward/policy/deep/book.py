"""The deep checks of a plan in the making: the part of memory that is about them, and what is found by node."""

from collections.abc import Collection, Mapping

from steward.model.deep import DeepRun
from steward.model.ids import NodeName
from steward.policy.kept import Kept


class DeepBook(Kept[str, DeepRun]):
    """The deep checks by id. Every change goes through `keep` and `forget`."""

    __slots__ = ("_holding", "_of_waiter")

    def __init__(self, before: Mapping[str, DeepRun]) -> None:
        super().__init__(before)
        self._of_waiter: dict[str, dict[str, DeepRun]] | None = None
        self._holding: dict[NodeName, dict[str, DeepRun]] | None = None

    def keep(self, run: DeepRun) -> DeepRun:
        """Remember the check as it is now."""
        before = self.get(run.id)
        if before is not run:
            self[run.id] = run
            self._changed(before, run)
        return run

    def forget(self, id: str) -> None:
        """Drop the check from memory."""
        self._changed(self.pop(id), None)

    def of(self, waiter: str) -> Collection[DeepRun]:
        """The checks that were made for this slot or repair."""
        if self._of_waiter is None:
            self._of_waiter = {}
            for run in self.values():
                self._of_waiter.setdefault(run.waiter, {})[run.id] = run
        return self._of_waiter.get(waiter, {}).values()

    @property
    def holding(self) -> Mapping[NodeName, Mapping[str, DeepRun]]:
        """Node -> the checks, by id, that have it, or asked for it, and are not over for it."""
        if self._holding is None:
            self._holding = {}
            for run in self.values():
                self._hold(run, self._holding)
        return self._holding

    def _changed(self, before: DeepRun | None, after: DeepRun | None) -> None:
        if before is None or after is None or before.waiter != after.waiter:
            self._of_waiter = None
        elif self._of_waiter is not None:
            self._of_waiter[after.waiter][after.id] = after
        if self._holding is None:
            return
        if before is not None:
            self._let_go(before, self._holding)
        if after is not None:
            self._hold(after, self._holding)

    @staticmethod
    def _let_go(run: DeepRun, holding: dict[NodeName, dict[str, DeepRun]]) -> None:
        for node in nodes_of(run) if run.has_nodes else ():
            del holding[node][run.id]
            if not holding[node]:
                del holding[node]

    @staticmethod
    def _hold(run: DeepRun, holding: dict[NodeName, dict[str, DeepRun]]) -> None:
        for node in nodes_of(run) if run.has_nodes else ():
            holding.setdefault(node, {})[run.id] = run


def nodes_of(run: DeepRun) -> frozenset[NodeName]:
    """The nodes of a check that it is not over for yet."""
    return run.nodes - run.results.keys()
