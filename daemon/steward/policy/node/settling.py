"""A degraded node is drained only when its finding has stood for a while on the head's clock: the third node that tells
of the same fault makes an incident of it, and by then the first two should not have been drained."""

from steward.model.case import Trigger
from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.node.verdict import Fault

_NOTE = "settling:"


class Settling:
    """Of one look at all nodes. What was not asked for by its end does not stand any more: its time begins anew."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._stands: set[str] = set()
        self._waited_for = frozenset(
            node for ask in draft.seen.asks if (job := draft.seen.jobs.get(ask.job)) for node in job.nodes
        )

    def is_over(self, node: NodeName, fault: Fault) -> bool:
        """Whether this fault may be acted on. Fatal ones, events, and those of a node whose job asks why it failed need
        no time to settle."""
        settle_s = self._draft.want.repair.settle_degraded_s
        if settle_s <= 0 or not self._is_state(node, fault):
            return True
        key = f"{_NOTE}{node}:{fault.check}"
        self._stands.add(key)
        since = self._draft.first_seen(key)
        self._draft.wake(since + settle_s)
        return self._draft.now >= since + settle_s or node in self._waited_for

    def _is_state(self, node: NodeName, fault: Fault) -> bool:
        """Whether a check of the node's agent says so, and may say otherwise with its next look."""
        view = self._draft.seen.agents.get(node)
        if view is None or fault.trigger is not Trigger.DEGRADED or fault.is_event or fault.command:
            return False
        return any(one.check == fault.check for one in view.findings)

    def end(self) -> None:
        noted = self._draft.noted
        for key in [key for key in noted if key.startswith(_NOTE) and key not in self._stands]:
            del noted[key]
