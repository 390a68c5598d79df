"""A new machine's tests before jobs reach it. A repair and a slot of a group bring machines up by tables of
their own; what they ask for, and what counts as an answer, is the same and stands here."""

from steward.model.action import CheckNow
from steward.model.ids import Key, NodeName
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.why import Why
from steward.policy.deep.start import Start
from steward.policy.draft import Draft
from steward.policy.node.verdict import blocks_return

LAUNCH_AGAIN_S = 60.0
"""A launch or reboot that left neither an error nor a trace is asked for again, with the same token."""
_CHECK_EVERY_S = 2.0


def ask_checks(node: NodeName, key: Key, why: Why, draft: Draft) -> None:
    """Have the node's agent run its checks now, again and again until they passed."""
    budget_s = draft.want.resume.check_budget_s
    draft.wish(CheckNow(key=key, why=why, nodes=frozenset({node}), budget_s=budget_s), _CHECK_EVERY_S)


def was_checked(view: AgentView | None, since: float) -> bool:
    """Whether the checks that were asked for at `since` were answered."""
    return view is not None and view.checked_at > since


def has_passed(view: AgentView | None, since: float, draft: Draft) -> bool:
    """Whether all checks were answered, and none found what keeps a machine out of service."""
    return was_checked(view, since) and view is not None and not any(blocks_return(f, draft) for f in view.findings)


def may_take_jobs(start: Start) -> bool:
    """Whether the machine passed its deep check, or needs none."""
    return start in (Start.NONE, Start.PASSED)


def is_in_service(node: Node) -> bool:
    """Whether Slurm starts jobs on the node, and no mark of ours is on it."""
    return node.is_schedulable and node.mark is None
