"""Prometheus: groups of the API, the steps of their slots, and what stands in the way of new nodes."""

from collections import Counter as Tally

from prometheus_client import CollectorRegistry, Counter, Gauge

from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.slot import Hitch
from steward.policy.groups.count import current_counts


class GroupMetrics:
    """Fed by Metrics; absent groups leave no series behind."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts = {
            word: Gauge(f"steward_group_{word}", f"{text}, by instance group.", ["group"], registry=registry)
            for word, text in (
                ("current", "Nodes in service"),
                ("target", "Nodes wanted"),
                ("minimum", "Nodes without which the partition stays closed"),
            )
        }
        self._slots = Gauge("steward_slots", "Slots of API groups by step.", ["group", "step"], registry=registry)
        self._failures = Counter(
            "steward_slot_failures",
            "Failed tries to bring a node up, by reason.",
            ["group", "hitch"],
            registry=registry,
        )

    def watch(self, before: Memory, now: Memory, seen: Observed) -> None:
        """A cycle ended."""
        self._note_counts(now, seen)
        self._note_slots(now)
        self._note_failures(before, now)

    def _note_counts(self, now: Memory, seen: Observed) -> None:
        current = current_counts(now, seen)
        for gauge in self._counts.values():
            gauge.clear()
        for name, group in now.groups.items():
            self._counts["current"].labels(name).set(current.get(name, 0))
            self._counts["target"].labels(name).set(group.goal.target)
            self._counts["minimum"].labels(name).set(group.goal.minimum)

    def _note_slots(self, now: Memory) -> None:
        self._slots.clear()
        for (group, step), count in Tally((slot.group, slot.step.value) for slot in now.slots.values()).items():
            self._slots.labels(group, step).set(count)

    def _note_failures(self, before: Memory, now: Memory) -> None:
        """A try more than before, with the reason why the last one failed."""
        for node, slot in now.slots.items():
            old = before.slots.get(node)
            if slot is old or slot.hitch is Hitch.NONE:
                continue
            tries = old.tries if old is not None and old.logical == slot.logical else 0
            if slot.tries > tries:
                self._failures.labels(slot.group, slot.hitch.value).inc(slot.tries - tries)
