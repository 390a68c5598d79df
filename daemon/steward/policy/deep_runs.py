"""The deep checks of a plan in the making: what is asked of all of them is worked out once between two changes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from steward.model.deep import DeepRun
from steward.model.ids import NodeName


class DeepRuns:
    """Every change of a deep check goes through `keep` and `forget`."""

    def __init__(self, runs: dict[str, DeepRun]) -> None:
        """`runs` are by id; they are changed here."""
        self._runs = runs
        self._of_waiter: Mapping[str, Sequence[DeepRun]] | None = None
        self._holding: Mapping[NodeName, Sequence[DeepRun]] | None = None

    def keep(self, run: DeepRun) -> DeepRun:
        before = self._runs.get(run.id)
        if before is not run:
            self._runs[run.id] = run
            self._changed(before, run)
        return run

    def forget(self, id: str) -> None:
        self._changed(self._runs.pop(id), None)

    def of(self, waiter: str) -> Sequence[DeepRun]:
        """Those that were made for this slot or repair."""
        if self._of_waiter is None:
            found: defaultdict[str, list[DeepRun]] = defaultdict(list)
            for run in self._runs.values():
                found[run.waiter].append(run)
            self._of_waiter = found
        return self._of_waiter.get(waiter, ())

    @property
    def holding(self) -> Mapping[NodeName, Sequence[DeepRun]]:
        """Node -> the checks that have it, or asked for it, and are not over for it."""
        if self._holding is None:
            found: defaultdict[NodeName, list[DeepRun]] = defaultdict(list)
            for run in self._runs.values():
                for node in nodes_of(run) if run.has_nodes else ():
                    found[node].append(run)
            self._holding = found
        return self._holding

    def _changed(self, before: DeepRun | None, after: DeepRun | None) -> None:
        self._of_waiter = None
        if any(run is not None and run.has_nodes for run in (before, after)):
            self._holding = None


def nodes_of(run: DeepRun) -> frozenset[NodeName]:
    """Those that it is not over for yet."""
    return run.nodes - run.results.keys()
