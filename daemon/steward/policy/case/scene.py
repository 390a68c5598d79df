"""A case and what the picture shows around it."""

from dataclasses import dataclass

from steward.model.case import Case, Step, Trigger
from steward.model.health import Advice
from steward.model.instance import Instance
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.policy.case.spares import loan_of, needs_spare
from steward.policy.case.table import deadline
from steward.policy.deep.start import Start, start_limit, start_of
from steward.policy.draft import Draft
from steward.policy.groups.setup import Setup, is_prepared, setup_of_case
from steward.policy.node.approval import awaits_yes
from steward.policy.node.ladder import is_light, time_limit

HARD = (Trigger.LOST, Trigger.FATAL)
"""Triggers that take the node down at once; the others drain it and wait for its jobs."""


def waits_for_jobs(case: Case, node: Node) -> bool:
    """Whether the repair may not begin while jobs are on the node: a light one is for a living node, whatever took it
    out."""
    return node.is_busy and (is_light(case) or case.trigger not in HARD)


def limit_s(case: Case, node: Node, draft: Draft) -> float | None:
    """How long the case may stay in its step. A light repair, and the checks after it, have the time of their rung; so
    has a reboot. Jobs may run for so long on a node that is out; a turn, or a person's approval, is waited for without
    limit."""
    rules = draft.want.repair
    is_rungs = case.step in (Step.MEND, Step.VERIFY) and is_light(case)
    if is_rungs or (case.step is Step.LAUNCH and case.rung is Advice.REBOOT):
        return time_limit(case.rung, rules)
    if case.step is Step.RELEASE and (awaits_yes(case, draft) or not waits_for_jobs(case, node)):
        return None
    return deadline(case.step, rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A case and what the picture shows around it."""

    case: Case
    node: Node
    view: AgentView | None
    draft: Draft

    @property
    def server(self) -> Node:
        """The node that shall serve: its own, or the spare in its place."""
        return self.draft.seen.nodes.get(self.case.stand_in or self.node.name, self.node)

    @property
    def server_view(self) -> AgentView | None:
        return self.draft.seen.agents.get(self.case.stand_in) if self.case.stand_in else self.view

    @property
    def is_reborn(self) -> bool:
        """An agent is connected from another incarnation than the one that was found bad, or from the spare; after a
        light repair from the same one."""
        view = self.server_view
        if view is None or not view.connected or view.incarnation is None:
            return False
        if self.case.stand_in or is_light(self.case):
            return True
        seen, old = view.incarnation, self.case.old
        if self.case.rung is Advice.REBOOT:
            return seen != old
        if old is not None:
            return seen.instance != old.instance
        return self.case.new_instance is None or seen.instance == self.case.new_instance

    @property
    def instance(self) -> Instance | None:
        """The instance that was launched for this try, when the provider lists it as alive."""
        if needs_spare(self.case, self.draft):
            return loan_of(self.case, self.draft)
        found = [i for i in self.draft.overview.instances_with(self.case.token) if not i.state.is_dead]
        return min(found, key=lambda i: i.id) if found else None

    @property
    def setup(self) -> Setup | None:
        """The lifecycle scripts that a new instance of an API group needs before it is verified."""
        return setup_of_case(self.case, self.draft)

    @property
    def is_prepared(self) -> bool:
        return self.setup is None or is_prepared(self.setup, self.view)

    @property
    def start(self) -> Start:
        """How the deep check of its new machine stands; light rungs and spares need none."""
        if self.case.stand_in or is_light(self.case):
            return Start.NONE
        return start_of(self.case.node, self.case.token, self.draft)

    @property
    def is_late(self) -> bool:
        limit = limit_s(self.case, self.node, self.draft)
        if limit is not None and self.case.step is Step.VERIFY and self.setup is not None:
            limit += self.draft.want.capacity.setup_timeout_s
        if limit is not None and self.case.step is Step.RETURN and self.start is not Start.NONE:
            limit += start_limit(self.draft)
        self.draft.wake(None if limit is None else self.case.entered + limit)
        return limit is not None and self.draft.now >= self.case.entered + limit
