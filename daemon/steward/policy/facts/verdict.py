"""The verdict on one node: whether it is there, whether it is sound, and whether an admin wants it repaired."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from steward.model.case import Case, Trigger
from steward.model.dotted import lookup_dotted
from steward.model.health import Advice, Finding, Incarnation, Outcome, Scope, Severity
from steward.model.ids import NodeName
from steward.model.instance import Instance
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.repair_policy import WITNESS_FRESH_S
from steward.model.why import Why
from steward.model.witness import Witness
from steward.policy.draft import Draft
from steward.policy.slurm_reasons import COMMANDS, ordered
from steward.policy.traits import is_away_on_purpose

DIALS_S = 15.0
"""How long an agent counts as alive after the head refused it: it dials every 5 s, and may have to wait."""
FEW, SAMPLE = 2, 3
"""At most so many agents may be missing, and at least so many have come, for the others to show how long it takes."""
TIMES, LEAST_S = 3.0, 1.0
"""An agent is missed after this many times the time that the slowest of the others took, and this time at least."""


class Standing(Enum):
    """The state of a node now, by its agent and the other witnesses."""

    FINE = "fine"
    UNKNOWN = "unknown"
    """No agent ever connected, or it is expected to be away: no judgement."""
    LATE = "late"
    """A heartbeat is overdue."""
    SILENT = "silent"
    """The agent is gone; no second witness was asked yet, or not long enough ago."""
    LOST = "lost"
    """The agent is gone, and a second source says that the node is, too."""
    AGENT_ONLY = "agent only"
    """The agent is gone but slurmd answers, or the agent dials and is sent away: the node is sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The standing of a node and the reason; `since` is when the agent was lost, last heard, or should have come."""

    standing: Standing
    since: float | None = None
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An admin's order in a node's reason: the exact words and what they ask for."""

    text: str
    rung: Advice
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A reason to repair a node: the trigger, the failed check, and the first rung of the ladder."""

    trigger: Trigger
    check: str
    rung: Advice
    why: Why
    at: float
    """When the fault was first known (Unix s)."""
    command: str = ""
    target: str = ""
    """The target of a light rung: the unit, or the GPU."""
    hardware: str = ""
    """The piece of hardware that the finding is about; empty if none is known."""
    is_event: bool = False
    """Whether the fault is an event, which stays true of its incarnation until a newer event."""
    passed_at: float = 0.0
    """When the check last passed; 0: not known."""

    @property
    def is_of_reason(self) -> bool:
        """Return whether Slurm itself took the node out, and checks alone decide whether it may serve again."""
        return bool(self.command) and self.trigger is Trigger.DEGRADED and self.rung is Advice.NONE


_FINE = Verdict(standing=Standing.FINE, why=Why(rule="node.fine", text="the agent is connected"))
_UNKNOWN = Verdict(standing=Standing.UNKNOWN, why=Why(rule="node.unknown", text="no agent is expected here now"))
_NEVER_SEEN = Verdict(
    standing=Standing.UNKNOWN,
    why=Why(rule="node.unknown", text="no agent has come from this node yet: only Slurm says how it is"),
)


def standing(node: Node, draft: Draft) -> Verdict:
    """Return how the node stands, by its agent, the second witness, the provider and Slurm."""
    view = draft.seen.agents.get(node.name)
    if view is not None and view.connected:
        return _verdict_connected(view)
    if node.name in draft.slots:
        return _verdict_unconnected(node, view, draft)  # not kept: a later stage of the plan may change its slot
    if node.name not in draft.found.standings:
        draft.found.standings[node.name] = _verdict_unconnected(node, view, draft)
    verdict: Verdict = draft.found.standings[node.name]
    return verdict


def monitored_but_unheard(draft: Draft) -> Sequence[NodeName]:
    """Return the monitored nodes whose agent is not connected or not punctual, by name.

    A node is monitored if its agent was seen before, by this head or an earlier one. All others without an agent are
    UNKNOWN.
    """
    unheard, views, before = draft.overview.unheard, draft.ground.agents.keys_stamp, draft.agents.unchanged
    if before is None:
        return _find_monitored_nodes(draft)
    return draft.ground.once(_find_monitored_nodes, (unheard, views, before), draft)


def _find_monitored_nodes(draft: Draft) -> Sequence[NodeName]:
    """Return the monitored nodes whose agent is not connected or not punctual."""
    views = draft.seen.agents
    return [name for name in draft.overview.unheard if name in views or name in draft.agents]


def _verdict_unconnected(node: Node, view: AgentView | None, draft: Draft) -> Verdict:
    """Return the verdict on a node without a connected agent."""
    missed_at = missed_since(node, draft)
    if missed_at is None:
        return _NEVER_SEEN if view is None and node.name not in draft.agents else _UNKNOWN
    return _verdict_missing(node, view, missed_at, draft)


def _verdict_connected(view: AgentView) -> Verdict:
    """Return the verdict on a node with a connected agent."""
    if view.late:
        why = Why(rule="node.late", text="the agent's heartbeat is overdue")
        return Verdict(standing=Standing.LATE, since=view.last_heard, why=why)
    return _FINE


def missed_since(node: Node, draft: Draft) -> float | None:
    """Return since when the agent is missing; None while it is connected, not expected, or still has time to come."""
    if is_away_on_purpose(node) or not _is_known_and_gone(node.name, draft):
        return None
    due = _due_at(node.name, draft)
    if due is None:
        return draft.seen.agents[node.name].lost_at
    draft.wake(due)
    return due if draft.now >= due else None


def is_awaited(node: NodeName, draft: Draft) -> bool:
    """Return whether the agent was known before and still has time to come: the node's state is unknown."""
    due = _due_at(node, draft) if _is_known_and_gone(node, draft) else None
    return due is not None and draft.now < due


def _is_known_and_gone(node: NodeName, draft: Draft) -> bool:
    """Return whether the agent was known before and is not connected."""
    view = draft.seen.agents.get(node)
    if view is not None and (view.connected or view.lost_at is not None):
        return not view.connected
    return node in draft.agents


def _due_at(node: NodeName, draft: Draft) -> float | None:
    """Return by when the agent should come after the head's start or its node's return; None: it was lost later."""
    view = draft.seen.agents.get(node)
    lost_at, back = view.lost_at if view is not None else None, draft.nodes.of(node).back_at
    if back is not None and back > (draft.seen.agents_since if lost_at is None else lost_at):
        return back + draft.want.repair.agents_grace_s
    return _agents_due(draft) if lost_at is None else None


def _agents_due(draft: Draft) -> float:
    """Return by when the agents should have come after the head's start.

    That is `agents_grace_s`, or less where nearly all of them have come and so show how long it takes.
    """
    latest = _grace_ends(draft)
    if draft.now >= latest:
        return latest
    if draft.found.agents_due is None:
        took_s = _slowest_s(draft)
        due = latest if took_s is None else draft.seen.agents_since + max(LEAST_S, TIMES * took_s)
        draft.found.agents_due = min(due, latest)
    return draft.found.agents_due


def _grace_ends(draft: Draft) -> float:
    return draft.seen.agents_since + draft.want.repair.agents_grace_s


def _slowest_s(draft: Draft) -> float | None:
    """Return how long the slowest agent took to connect after the head's start; None if that shows nothing yet."""
    since, nodes = draft.seen.agents_since, draft.seen.nodes
    missing = [name for name in monitored_but_unheard(draft) if _is_missing(nodes[name], draft)]
    if len(missing) > FEW:
        return None
    took = [view.joined_at - since for view in draft.seen.agents.values() if view.joined_at is not None]
    return max(took) if len(took) >= SAMPLE else None


def _is_missing(node: Node, draft: Draft) -> bool:
    """Return whether the node's agent has not come since the head's start, and nothing explains that."""
    view = draft.seen.agents.get(node.name)
    has_come = view is not None and view.joined_at is not None
    return not (has_come or is_away_on_purpose(node) or draft.cases.expects_no_agent(node.name))


def _verdict_missing(node: Node, view: AgentView | None, lost_at: float, draft: Draft) -> Verdict:
    """Return the verdict on a node whose agent is missing."""
    facts = (f"agent lost {draft.now - lost_at:.1f} s ago: {_how_lost(node.name, view, lost_at, draft)}",)
    witness = view.witness if view else None
    if witness and witness.result is Witness.ALIVE and witness.at >= lost_at:
        why = Why(rule="node.agent_only", text="the agent is gone but slurmd answers", evidence=facts)
        return Verdict(standing=Standing.AGENT_ONLY, since=lost_at, why=why)
    if view and view.dialled_at >= lost_at and draft.now < view.dialled_at + DIALS_S:
        draft.wake(view.dialled_at + DIALS_S)
        why = Why(rule="node.agent_only", text="the agent is alive: it comes and is sent away", evidence=facts)
        return Verdict(standing=Standing.AGENT_ONLY, since=lost_at, why=why)
    second = _second_witness(node, draft)
    if second and draft.now >= lost_at + draft.want.repair.settle_s:
        why = Why(rule="node.lost", text="the agent is gone and a second source confirms it", evidence=(*facts, second))
        return Verdict(standing=Standing.LOST, since=lost_at, why=why)
    draft.wake(lost_at + draft.want.repair.settle_s)
    why = Why(rule="node.silent", text=_why_awaited(view, draft), evidence=facts)
    return Verdict(standing=Standing.SILENT, since=lost_at, why=why)


def _why_awaited(view: AgentView | None, draft: Draft) -> str:
    """Return why no second witness counts yet."""
    if view and _may_be_restarted(view, draft):
        return (
            "the agent was told to end and slurmd does not listen, as when both are restarted: Slurm's word is awaited"
        )
    if view and _may_be_full(view):
        return "the agent went away and slurmd's port gives no answer, as when it is full: Slurm's word is awaited"
    return "the agent is gone, a second source is awaited"


def _how_lost(node: NodeName, view: AgentView | None, lost_at: float, draft: Draft) -> str:
    """Return how the agent was lost, in words."""
    if view is not None and view.lost_at == lost_at:
        return view.lost_why or "connection ended"
    if draft.nodes.of(node).back_at is not None:
        return "it did not connect when its node was back"
    return "it did not connect after the head's start"


def _second_witness(node: Node, draft: Draft) -> str:
    """Return which second witness says that the node is gone; empty if none does."""
    # a look counts if it came after the agent was last heard
    view = draft.seen.agents.get(node.name)
    look = view.witness if view and is_fresh(view, draft) else None
    # an agent that was told to end while no head led could not say so: its slurmd may be off for a while, too
    may_come = _may_still_come(view, draft)
    is_bad = look is not None and (look.result is Witness.SILENT if may_come else look.result is not Witness.ALIVE)
    if view and look and is_bad and not _proves_nothing(view, draft):
        return f"slurmd's port at {node.slurmd}: {look.result.value}"
    instance = machine_of(node.name, view, draft)
    if instance and draft.provider_is_fresh and instance.state.is_dead:
        return f"provider: instance {instance.id} is {instance.state.value}"
    return "Slurm: the node does not respond" if not may_come and slurm_misses(node, view, draft) else ""


def _may_still_come(view: AgentView | None, draft: Draft) -> bool:
    """Return whether an agent that has not come since the head's start still has its grace."""
    if view is not None and view.lost_at is not None:
        return False
    draft.wake(_grace_ends(draft))
    return draft.now < _grace_ends(draft)


def slurm_misses(node: Node, view: AgentView | None, draft: Draft) -> bool:
    """Return whether Slurm says that the node is not there."""
    if node.is_down and (not node.responding or (node.reason and node.reason.tells_absence)):
        return True
    if node.responding or (view is not None and view.is_heard):  # any user can fill its slurmd's port
        return False
    if view is None:  # the slurmd of an agent that was told to end may be off, too
        return not has_left(node.name, draft)
    # ten seconds after a message to slurmd's port Slurm says "not responding": while that port proves nothing, or was
    # not looked at yet, wait for Slurm's own DOWN, which comes after SlurmdTimeout
    if _proves_nothing(view, draft):
        return False
    was_not_met = view.lost_at is None and not has_left(view.node, draft)
    return was_not_met or (view.fell_silent and not _missed_slurmd(view)) or is_fresh(view, draft)


def has_left(node: NodeName, draft: Draft) -> bool:
    """Return whether the node's agent was told to end, as it said to this head or to the one before."""
    view = draft.seen.agents.get(node)
    if view is not None and (view.leaves or view.incarnation is not None):
        return view.leaves
    return draft.nodes.of(node).leave_announced is not None


def went_with_host(view: AgentView, draft: Draft) -> bool:
    """Return whether the agent's last word, to this head or to the one before, was that its host shuts down."""
    told_before = view.incarnation is None and draft.nodes.of(view.node).shutdown_from is not None
    return not view.connected and not view.leaves and (view.host_ends or told_before)


def _proves_nothing(view: AgentView, draft: Draft) -> bool:
    """Return whether the answer of slurmd's port is no evidence against the node, whether we or Slurm asked."""
    return _may_be_restarted(view, draft) or _may_be_full(view)


def _may_be_restarted(view: AgentView, draft: Draft) -> bool:
    """Return whether the agent was told to end and slurmd's port refuses, which proves nothing."""
    # while a person restarts both services, by hand or for an upgrade, jobs run on
    return has_left(view.node, draft) and view.witness is not None and view.witness.result is Witness.REFUSED


def _may_be_full(view: AgentView) -> bool:
    """Return whether slurmd's port takes connections and answers none, without proving anything."""
    # any user can open more connections than a slurmd serves: an unanswered port counts only if the agent fell silent
    # by itself, and slurmd had answered the agent until then
    is_unanswered = view.witness is not None and view.witness.result is Witness.UNANSWERED
    return is_unanswered and view.lost_at is not None and (not view.fell_silent or _missed_slurmd(view))


def _missed_slurmd(view: AgentView) -> bool:
    """Return whether slurmd did not answer the agent on its node in the agent's last report."""
    return any(one.check == "slurmd" and one.outcome is Outcome.UNKNOWN for one in view.findings)


def machine_of(node: NodeName, view: AgentView | None, draft: Draft) -> Instance | None:
    """Return the node's machine as the provider lists it; None if it is not listed.

    It is the one that the agent named, to this head or to the one before, or the only one that can be behind a fixed
    slot.
    """
    told = (view.incarnation if view is not None else None) or draft.agents.get(node)
    if told is not None and told.instance in draft.seen.instances:
        return draft.seen.instances[told.instance]
    slot = draft.slots.repairable.get(node)
    if slot is None or not slot.fixed:
        return None
    return next(iter(draft.overview.instances_of(node)), None)


def is_fresh(view: AgentView, draft: Draft) -> bool:
    """Return whether the second witness looked since the agent was last heard, and recently enough to act on."""
    witness = view.witness
    return witness is not None and witness.at > view.last_heard and draft.now <= witness.at + WITNESS_FRESH_S


def incarnation_of(node: NodeName, draft: Draft) -> Incarnation | None:
    """Return the machine behind the node as its agent reported, now or before the head's start; None if unknown."""
    view = draft.seen.agents.get(node)
    return (view.incarnation if view else None) or draft.agents.get(node)


def mode_of(check: str, draft: Draft) -> str:
    """Return off, report or drain: the check's own mode, else its nearest family's, else drain."""
    return lookup_dotted(check, draft.want.modes) or "drain"


def may_act_on(finding: Finding, draft: Draft) -> bool:
    """Return whether a node may be repaired for the finding."""
    # a fault of a shared thing is no node's fault, and another machine would have it, too
    return finding.scope is Scope.NODE and mode_of(finding.check, draft) == "drain"


def worst_finding(view: AgentView | None, draft: Draft) -> Finding | None:
    """Return the finding that takes the node out, worst and oldest first; None if there is none."""
    found = view.findings if view else ()
    bad = [f for f in found if f.is_bad and f.severity.takes_out and may_act_on(f, draft)]
    return min(bad, key=lambda f: (-f.severity.rank, f.at, f.check, f.text), default=None)


def blocks_return(finding: Finding, draft: Draft) -> bool:
    """Return whether a node with this finding may not go back: it would be taken out again, or its state is unknown."""
    if not may_act_on(finding, draft):
        return False
    if finding.outcome is Outcome.UNKNOWN:
        return finding.severity is Severity.FATAL
    return finding.is_bad and finding.severity.takes_out


# The light rungs: the orders of a case to the node's agent, and the reported ends.


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order to a node's agent, by its token."""

    token: str


NOTHING = Order(token="")
"""The checks alone decide: no order comes before them."""


def order_of(case: Case) -> Order:
    """Return the order for the case's rung; an agent carries it out once a boot, however often it is repeated."""
    return NOTHING if case.rung is Advice.NONE else Order(token=f"{case.id}-{case.rung.value}")


def order_outcome(order: Order, view: AgentView | None) -> str | None:
    """Return how an order ended: empty if it was carried out, else why it was not; None: not known yet."""
    report = view.mend if view is not None and view.connected else None
    return report.error if report is not None and report.token == order.token else None


def admin_command(node: Node) -> Command | None:
    """Return the order that an admin gives in the node's reason (`policy/slurm_reasons.py`); None if there is none."""
    text = ordered(node)
    if not text or node.reason is None:
        return None
    return Command(text=text, rung=COMMANDS[text], at=node.reason.at)
