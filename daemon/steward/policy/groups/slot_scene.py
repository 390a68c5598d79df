"""A slot with the picture around it, and the reason why a waiting slot gets no instance yet."""

from dataclasses import dataclass

from steward.model.capacity_policy import Pool
from steward.model.group import Group, Role
from steward.model.health import Incarnation
from steward.model.ids import CaseId, Key
from steward.model.instance import Instance
from steward.model.mark import HOLD, LEAVE, RENEW, Mark
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.slot import Purpose, SlotRecord, SlotStep
from steward.policy.draft import Draft
from steward.policy.groups.slot_table import deadline
from steward.policy.guards.bring_up import why_paused
from steward.policy.guards.deep_start import DeepStart, start_limit, start_of
from steward.policy.slot_of import pool_of

LET_BE_S = 30.0
"""How long the end of a slot waits to see the node DOWN in Slurm and its agent gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotScene:
    """A slot with the picture around it; `node` is None if Slurm, `view` if the head does not know the node."""

    record: SlotRecord
    group: Group
    draft: Draft

    @property
    def node(self) -> Node | None:
        return self.draft.seen.nodes.get(self.record.node)

    @property
    def view(self) -> AgentView | None:
        return self.draft.seen.agents.get(self.record.node)

    @property
    def pool(self) -> Pool | None:
        return pool_of(self.record.group, self.draft.want)

    @property
    def is_fixed(self) -> bool:
        return self.pool is not None and self.pool.fixed

    @property
    def is_compute(self) -> bool:
        return self.group.role is Role.COMPUTE

    @property
    def is_hosted(self) -> bool:
        """Whether the machine is the head's own, which is never made and never ended."""
        return self.group.role is Role.CONTROLLER

    @property
    def own(self) -> list[Instance]:
        """The slot's own instances that still exist: the one in its record, and those made for it or its repairs."""
        record = self.record
        made_for = (f"{record.logical}-", *(f"{id}-" for id in self.repairs))
        listed = self.draft.instances_of(record.node)
        return [i for i in listed if i.id == record.instance or i.token.startswith(made_for)]

    @property
    def repairs(self) -> list[CaseId]:
        """The node's cases since the slot exists; empty in steps that do not need them."""
        record = self.record
        if record.step not in (SlotStep.SERVING, SlotStep.DRAIN, SlotStep.BACKUP, SlotStep.END):
            return []
        return sorted(c.id for c in self.draft.cases.of(record.node) if c.opened >= record.created)

    @property
    def launched(self) -> Instance | None:
        """The instance that the present try made."""
        listed = self.draft.instances_of(self.record.node)
        return next((i for i in listed if i.token == self.record.token), None)

    @property
    def launch_key(self) -> Key:
        return Key(f"launch:{self.record.token}:{self.record.launched or 0.0:.3f}")

    @property
    def incarnation(self) -> Incarnation | None:
        """The machine in its present boot whose agent is connected from the slot's instance; None if there is none."""
        # an instance id that the provider does not list counts, too: the earlier machine's agent was gone by then
        view = self.view
        if view is None or not view.connected or view.incarnation is None:
            return None
        who = view.incarnation
        known = who.instance == self.record.instance or who.instance not in self.draft.seen.instances
        return who if known or self.is_fixed else None

    @property
    def is_ours(self) -> bool:
        """Whether the node has a mark of its cluster, other than that of an earlier slot's leaving."""
        mark = self.node.mark if self.node else None
        if mark is None or mark.id != self.mark.id:
            return False
        return self.record.is_leaving or not mark.tells_of_leaving

    @property
    def is_foreign(self) -> bool:
        node = self.node
        return node is not None and node.is_foreign

    @property
    def is_out(self) -> bool:
        """Whether Slurm starts no job there: the node was taken out of service, or is no node of Slurm."""
        node = self.node
        if not self.is_compute or node is None:
            return True
        return self.is_foreign or (self.is_ours and (node.is_drain or node.is_down))

    @property
    def mark(self) -> Mark:
        """The mark of our drain, the same for all nodes of a cluster, so that one command can drain many of them."""
        check, action = _MARKS[self.record.purpose]
        return Mark(check=check, action=action, id=self.record.logical.rpartition("-")[0])

    @property
    def start(self) -> DeepStart:
        """The standing of the deep check of the new machine; NONE for a machine that is no node of Slurm."""
        return start_of(self.record.node, self.record.token, self.draft) if self.is_compute else DeepStart.NONE

    @property
    def is_late(self) -> bool:
        limit = deadline(self.record.step, self.draft.want)
        if limit is not None and self.record.step is SlotStep.RETURN and self.start is not DeepStart.NONE:
            limit += start_limit(self.draft)
        at = None if limit is None else self.record.entered + limit
        self.draft.wake(at)
        return at is not None and self.draft.now >= at

    @property
    def is_agent_gone(self) -> bool:
        return self.view is None or not self.view.connected

    @property
    def may_come_back(self) -> bool:
        """Whether agents may still reconnect after the head's start."""
        due = self.draft.seen.agents_since + self.draft.want.repair.agents_grace_s
        self.draft.wake(due)
        return self.draft.now < due

    @property
    def is_in_service(self) -> bool:
        """Whether Slurm starts jobs on the slot's node."""
        return self.is_compute and self.node is not None and self.node.is_schedulable


_MARKS = {
    Purpose.STAY: HOLD,
    Purpose.LEAVE: LEAVE,
    Purpose.RENEW: RENEW,
}


def is_busy(scene: SlotScene) -> bool:
    """Return whether jobs run or clean up on the slot's node."""
    return scene.node is not None and scene.node.is_busy


def is_turn(scene: SlotScene) -> bool:
    return not why_not_yet(scene)


def why_not_yet(scene: SlotScene) -> str:
    """Return why the provider is not asked for this slot's instance now; empty if it is the slot's turn."""
    record, draft = scene.record, scene.draft
    if scene.is_fixed:
        return "capacity: its fixed machine does not run; switch it on"
    if paused := why_paused(record.group, draft):
        return paused
    if draft.now < record.next_try:
        draft.wake(record.next_try)
        return f"waits before the next try: {record.trouble}"
    if not draft.provider_is_fresh:
        return "waits for the provider: its machines cannot be listed now"
    if machine := _other_machine(scene):
        return f"waits: machine {machine} has its name and does not run; start it, or end it"
    if _is_name_taken_by_stranger(scene):
        return "waits: a machine that the provider does not list runs under its name; have it listed, or end it"
    if _waits_for_controller(scene):
        return "waits for the controller group"
    if draft.slots.launching >= draft.want.capacity.launches_at_once:
        return f"waits for its turn: {draft.slots.launching} launches are under way"
    return _waits_for_old_agent(scene)


def _other_machine(scene: SlotScene) -> str:
    """Return another instance with the slot's name, which Steward does not end; empty if there is none."""
    # Two machines must not have one name.
    return next((instance.id for instance in scene.draft.instances_of(scene.record.node)), "")


def _is_name_taken_by_stranger(scene: SlotScene) -> bool:
    """Return whether a machine that is not the slot's runs under its name: its agent is connected, or it has jobs."""
    # Such a machine is not ended, and no second one of its name is launched, however long it runs.
    if scene.pool is None:
        return False
    if scene.record.launches == 0 and (not scene.is_agent_gone or (scene.is_in_service and is_busy(scene))):
        return True
    return scene.is_in_service and (not scene.is_agent_gone or scene.may_come_back)


def _waits_for_controller(scene: SlotScene) -> bool:
    draft = scene.draft
    if scene.group.role is Role.CONTROLLER:
        return False
    controllers = [group.name for group in draft.groups.values() if group.role is Role.CONTROLLER]
    serving = (r.step is SlotStep.SERVING for name in controllers for r in draft.slots.members(name))
    return bool(controllers) and not any(serving)


def _waits_for_old_agent(scene: SlotScene) -> str:
    """Return that the slot waits for the previous machine's agent to go; empty if it does not wait."""
    # the old agent could be taken for the new machine's
    until = scene.record.entered + LET_BE_S
    if scene.is_agent_gone or scene.draft.now >= until:
        return ""
    scene.draft.wake(until)
    return "waits until the agent of the previous machine is gone"
