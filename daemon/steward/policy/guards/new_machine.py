"""The tests of a new machine before jobs reach it.

Cases and slots bring up machines by different tables, and test them in the same way.
"""

from steward.model.action import CheckNow
from steward.model.agent_action import SetUpNode
from steward.model.ids import Key, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.resume_policy import CHECK_BUDGET_S
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.setup import NodeSetup, provisioning_parameters, report_of, resource_config
from steward.policy.facts.verdict import blocks_return
from steward.policy.guards.deep_start import DeepStart
from steward.policy.slot_of import features_of

LAUNCH_AGAIN_S = 60.0
"""A launch or reboot that left neither an error nor a trace is requested again, with the same token."""
_CHECK_EVERY_S = 2.0


def may_be_half_made(machine: Instance | None, key: Key, draft: Draft) -> bool:
    """Return whether the head may have been killed in the middle of this machine's launch."""
    # a provider that makes a machine in several steps may have stopped between two steps. A request whose outcome
    # is unknown counts as never made, and has no time in `asked`.
    return machine is not None and machine.state is InstanceState.PENDING and draft.asked_at(key) is None


def ask_checks(node: NodeName, key: Key, why: Why, draft: Draft) -> None:
    """Have the node's agent run its checks now; repeated until they have passed."""
    draft.wish(CheckNow(key=key, why=why, nodes=frozenset({node}), budget_s=CHECK_BUDGET_S), _CHECK_EVERY_S)


def was_checked(view: AgentView | None, since: float) -> bool:
    """Return whether the agent has answered a request for checks that was sent after `since`."""
    return view is not None and view.checked_at > since


def has_passed(view: AgentView | None, since: float, draft: Draft) -> bool:
    """Return whether all checks were answered and no finding keeps the machine out of service."""
    return was_checked(view, since) and view is not None and not any(blocks_return(f, draft) for f in view.findings)


def may_take_jobs(start: DeepStart) -> bool:
    """Return whether the machine passed its deep check, or needs none."""
    return start in (DeepStart.NONE, DeepStart.PASSED)


def is_in_service(node: Node) -> bool:
    """Return whether Slurm starts jobs on the node, and the node does not bear our mark."""
    return node.is_schedulable and node.mark is None


def ask_setup(setup: NodeSetup, why: Why, draft: Draft) -> None:
    """Order the run, unless the agent already reports on it."""
    if report_of(setup, draft.seen.agents.get(setup.node)) is not None:
        return
    action = SetUpNode(
        key=Key(f"setup:{setup.token}"),
        why=why,
        node=setup.node,
        token=setup.token,
        lifecycle=setup.group.lifecycle,
        timeout_s=draft.want.capacity.setup_timeout_s,
        resource_config=resource_config(setup.node, draft),
        provisioning=provisioning_parameters(draft),
        features=features_of(setup.group),
    )
    draft.wish(action, AGAIN_S)


AGAIN_S = 30.0
"""How soon an order on which the agent does not report is repeated; the agent runs each token once per boot."""
