"""What must hold of every plan while groups are made, scaled, broken and rolled back."""

from collections import Counter
from dataclasses import dataclass

from steward.model.action import DownNode, DrainNode, LaunchInstance, ReturnNode, TerminateInstance
from steward.model.agent_action import Action
from steward.model.desired import Desired
from steward.model.group import Goal, GroupStatus
from steward.model.instance import InstanceState
from steward.model.memory import Memory
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan
from steward.model.slot import SlotRecord, SlotStep
from steward.policy.guards.bring_up import scope_of
from steward.policy.plan import plan
from tests.property.law import has_reason, is_harmless_when_blind, shuffled, touches_only_ours

CLUSTER = "abcdef012345"
CHANGES_MACHINES = (LaunchInstance, TerminateInstance)


@dataclass(slots=True)
class GroupLaw:
    """A watcher of plans: raises AssertionError at the first that breaks a property."""

    want: Desired

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        for action in decided.actions:
            self._every_action(action, seen, memory, decided)
        self._counts(seen, decided)
        self._one_machine_each(seen)
        self._rollbacks(memory, decided)
        self._quiet_and_deterministic(seen, memory, decided)

    def _every_action(self, action: Action, seen: Observed, memory: Memory, decided: Plan) -> None:
        has_reason(action)
        if seen.slurm is not Freshness.FRESH:
            is_harmless_when_blind(action)
        if seen.provider is not Freshness.FRESH or memory.paused:
            assert not isinstance(action, CHANGES_MACHINES), f"P6: {action.key} without a fresh list, or paused"
        if isinstance(action, DrainNode | DownNode | ReturnNode):
            touches_only_ours(action, seen.nodes[action.node])
        if isinstance(action, TerminateInstance):
            self._ends_its_own(action, seen, memory)
        if isinstance(action, LaunchInstance) and action.case is None:
            assert decided.memory.slots[action.slot.node].token == action.token, f"{action.key} is for no slot"
            self._is_not_paused(action, memory, decided)

    def _is_not_paused(self, action: LaunchInstance, memory: Memory, decided: Plan) -> None:
        before, scope = memory.slots.get(action.slot.node), scope_of(action.slot.group)
        is_paused = scope in memory.breakers and scope in decided.memory.breakers
        is_under_way = before is not None and before.step is SlotStep.LAUNCH
        assert is_under_way or not is_paused, f"{action.key} although {scope} is tripped"

    def _ends_its_own(self, action: TerminateInstance, seen: Observed, memory: Memory) -> None:
        token = seen.instances[action.instance].token
        of_repair = any(token.startswith(f"{case}-") for case in memory.cases)
        assert token.startswith(f"{CLUSTER}-") or of_repair, f"P5: {action.key} ends somebody else's {token}"

    def _counts(self, seen: Observed, decided: Plan) -> None:
        staying = Counter(s.group for s in decided.memory.slots.values() if not s.is_leaving)
        launching = sum(1 for s in decided.memory.slots.values() if s.step is SlotStep.LAUNCH)
        assert launching <= self.want.capacity.launches_at_once, f"P4: {launching} launches at once"
        for name, group in decided.memory.groups.items():
            target = 0 if group.status is GroupStatus.DELETING else group.goal.target
            if seen.slurm is Freshness.FRESH:
                assert staying[name] == target, f"P4: {staying[name]} slots of {name} stay, target {target}"

    def _one_machine_each(self, seen: Observed) -> None:
        alive = Counter(i.node for i in seen.instances.values() if i.state is not InstanceState.GONE)
        double = [node for node, many in alive.items() if many > 1]
        assert not double, f"P7: two machines bear the name {double}"

    def _rollbacks(self, memory: Memory, decided: Plan) -> None:
        for event in decided.events:
            if event.kind == "group.rollback":
                name = dict(event.data)["group"]
                before, after = memory.groups[name], decided.memory.groups[name]
                assert after.goal == (before.good or Goal(target=0)), f"{name} rolled back to {after.goal}"
                assert after.status is GroupStatus.IN_SERVICE
                kept = [s for s in decided.memory.slots.values() if s.group == name and not s.is_leaving]
                gone = [s for s in decided.memory.slots.values() if s.group == name and s.is_leaving]
                assert not any(_is_better(g, k) for g in gone for k in kept if g in _staying(memory)), "who rolled back"

    def _quiet_and_deterministic(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        again = plan(seen, self.want, decided.memory, seen.at)
        assert again.actions == (), f"P2: not quiet: {[a.key for a in again.actions]}"
        if decided.actions:
            assert plan(shuffled(seen), self.want, memory, seen.at) == decided, "P12: the order of input matters"


def _staying(memory: Memory) -> list[SlotRecord]:
    return [slot for slot in memory.slots.values() if not slot.is_leaving]


def _is_better(gone: SlotRecord, kept: SlotRecord) -> bool:
    return gone.has_served and not kept.has_served
