"""A case with the picture around it, and the notes on machines and refused calls that are taken before it moves."""

from dataclasses import dataclass, replace

from steward.model.case import Case, CaseStep
from steward.model.health import Advice
from steward.model.ids import InstanceId, Key
from steward.model.instance import Instance
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.port_error import CAPACITY, will_pass
from steward.policy.case.spares import free_spare, loan_of, needs_spare, why_no_spare
from steward.policy.case.table import deadline
from steward.policy.draft import Draft
from steward.policy.facts.setup import NodeSetup, is_prepared, setup_of_case
from steward.policy.guards.approval import needs_approval
from steward.policy.guards.deep_start import DeepStart, launch_of, start_limit, start_of
from steward.policy.guards.ladder import is_light, time_limit
from steward.policy.slurm_reasons import breaks_launches


def waits_for_jobs(case: Case, node: Node) -> bool:
    """Return whether the repair waits for jobs on the node, as a light repair always does."""
    return node.is_busy and (is_light(case) or not case.trigger.ends_jobs)


def limit_s(case: Case, node: Node, draft: Draft) -> float | None:
    """Return how long the case may stay in its step; None for no limit.

    A light repair, the checks after it, and a reboot have the limits of their rung. RELEASE limits only the wait for
    jobs, not the wait for a turn or for a person's approval.
    """
    rules = draft.want.repair
    is_rungs = case.step in (CaseStep.MEND, CaseStep.VERIFY) and is_light(case)
    if is_rungs or (case.step is CaseStep.LAUNCH and case.rung is Advice.REBOOT):
        return time_limit(case.rung, rules)
    if case.step is CaseStep.RELEASE and (needs_approval(case, draft) or not waits_for_jobs(case, node)):
        return None
    return deadline(case.step, rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScene:
    """A case with the picture around it."""

    case: Case
    node: Node
    view: AgentView | None
    draft: Draft

    @property
    def server(self) -> Node:
        """Return the node that will serve: the case's own, or the spare in its place."""
        return self.draft.seen.nodes.get(self.case.stand_in or self.node.name, self.node)

    @property
    def server_view(self) -> AgentView | None:
        return self.draft.seen.agents.get(self.case.stand_in) if self.case.stand_in else self.view

    @property
    def is_reborn(self) -> bool:
        """Return whether the agent of the repaired machine is connected.

        That is the spare's agent; after a light repair the node's own; else an agent of another incarnation than the
        bad one.
        """
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
        """Return the live instance or the loan of this try; None if the provider lists none."""
        if needs_spare(self.case, self.draft):
            return loan_of(self.case, self.draft)
        found = [i for i in self.draft.overview.instances_with(self.case.token) if not i.state.is_dead]
        return min(found, key=lambda i: i.id) if found else None

    @property
    def setup(self) -> NodeSetup | None:
        """Return the setup that a new instance of an API group needs before its checks; None if it needs none."""
        return setup_of_case(self.case, self.draft)

    @property
    def is_prepared(self) -> bool:
        return self.setup is None or is_prepared(self.setup, self.view)

    @property
    def start(self) -> DeepStart:
        """Return the standing of the tests that the node must pass before it serves; NONE for a spare.

        The tests are a launch test, if jobs could not begin or end on the node, and the deep check of a new machine.
        """
        if self.case.stand_in:
            return DeepStart.NONE
        launch = self.launch
        if is_light(self.case) or launch not in (DeepStart.NONE, DeepStart.PASSED):
            return launch
        return start_of(self.case.node, self.case.token, self.draft)

    @property
    def launch(self) -> DeepStart:
        """Return the standing of the launch test; NONE if none is needed."""
        if not breaks_launches(self.case):
            return DeepStart.NONE
        return launch_of(self.case.node, self.case.launch_token, self.draft)

    @property
    def is_late(self) -> bool:
        limit = limit_s(self.case, self.node, self.draft)
        if limit is not None and self.case.step is CaseStep.VERIFY and self.setup is not None:
            limit += self.draft.want.capacity.setup_timeout_s
        if limit is not None and self.case.step is CaseStep.RETURN and self.start is not DeepStart.NONE:
            limit += start_limit(self.draft)
        self.draft.wake(None if limit is None else self.case.entered + limit)
        return limit is not None and self.draft.now >= self.case.entered + limit


def old_instance(case: Case, draft: Draft) -> InstanceId | None:
    """Return the instance with the fault: the one that the agent named, else the newest listed; None if unknown."""
    if case.old is not None and case.old.instance in draft.seen.instances:
        return case.old.instance
    listed = [i for i in _alive(case, draft) if not i.token.startswith(f"{case.id}-")]
    return max(listed, key=lambda i: (i.launched, i.id)).id if listed else None


def stale_instances(case: Case, draft: Draft) -> list[Instance]:
    """Return the instances that must be gone before a launch: the old one and those of earlier tries of this case."""
    ours = [i for i in _alive(case, draft) if i.token.startswith(f"{case.id}-") and i.token != case.token]
    old = [i for i in _alive(case, draft) if i.id == case.old_instance]
    return sorted((*ours, *old), key=lambda i: i.id)


def _alive(case: Case, draft: Draft) -> list[Instance]:
    """Return every instance of the node that can still be terminated, stopped ones too."""
    return draft.instances_of(case.node)


def note_old_instance(case: Case, draft: Draft) -> Case:
    """Return the case with its old instance noted, once the provider lists it."""
    # the list may not have shown the instance when the case was opened
    if case.step is not CaseStep.LAUNCH or case.old_instance is not None:
        return case
    return replace(case, old_instance=old_instance(case, draft))


def try_key(case: Case) -> Key:
    """Return the key of the launch or reboot that the present try asks for."""
    verb = "reboot" if case.rung is Advice.REBOOT else "launch"
    return Key(f"{verb}:{case.token}:{case.tries}")


def note_failures(case: Case, draft: Draft) -> Case:
    """Return the case; after a refused launch or reboot, with the refusal counted and the time of the next try."""
    if case.step is not CaseStep.LAUNCH:
        return case
    key = try_key(case)
    error = draft.seen.failures.get(key)
    return case if error is None or draft.asked_at(key) is None else _refused(case, error, draft)


def note_shortage(case: Case, draft: Draft) -> Case:
    """Return the case; if no spare is free, with the try counted as a lack of capacity and the time of the next try."""
    if case.step is not CaseStep.LAUNCH or not needs_spare(case, draft) or not draft.provider_is_fresh:
        return case
    has_one = loan_of(case, draft) is not None or free_spare(case, draft) is not None
    return case if has_one or draft.now < case.next_try else _refused(case, why_no_spare(case, draft), draft)


def _refused(case: Case, error: str, draft: Draft) -> Case:
    rules = draft.want.repair
    steps = rules.capacity_backoff_s if error.startswith(CAPACITY) else (rules.retry_s,)
    wait = steps[min(case.tries, len(steps) - 1)]
    draft.tell("case.refused", f"{case.node}: {error}; again in {wait:.0f} s", node=case.node, case=case.id)
    refusals = case.refusals + (0 if will_pass(error) else 1)
    return replace(case, tries=case.tries + 1, refusals=refusals, next_try=draft.now + wait)
