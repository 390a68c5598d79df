"""What must hold of every plan with deep checks in it."""

from dataclasses import dataclass

from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.policy.plan import plan


@dataclass(slots=True)
class DeepLaw:
    """Of every plan: quiet the second time, at most so many idle nodes at once, never a foreign or busy node."""

    want: Desired
    most: int

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        again = plan(seen, self.want, decided.memory, seen.at)
        assert again.actions == (), f"P2: not quiet: {[a.key for a in again.actions]}"
        if decided.actions:
            assert plan(seen, self.want, memory, seen.at) == decided, "P1"
        held = [n for run in decided.memory.deeps.values() if run.has_nodes for n in run.nodes - run.results.keys()]
        assert len(held) == len(set(held)), "a node in two deep checks at once"
        assert len(held) <= self.most, f"{len(held)} nodes at once"
