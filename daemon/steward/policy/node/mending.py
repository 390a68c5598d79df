"""The light rungs as a case asks for them, and how the node's agent says that they ended."""

from dataclasses import dataclass

from steward.model.action import MendNode
from steward.model.case import Case
from steward.model.health import Advice
from steward.model.ids import Key
from steward.model.observed import AgentView
from steward.model.why import Why
from steward.policy.draft import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    token: str


NOTHING = Order(token="")
"""The checks alone decide: there is nothing to carry out before them."""


def order_of(case: Case) -> Order:
    """One a rung and case: carried out once a boot, however often it is asked for."""
    return NOTHING if case.rung is Advice.NONE else Order(token=f"{case.id}-{case.rung.value}")


def outcome(order: Order, view: AgentView | None) -> str | None:
    """None: not known yet; empty: carried out; else why it was not."""
    report = view.mend if view is not None and view.connected else None
    return report.error if report is not None and report.token == order.token else None


def ask_mend(case: Case, draft: Draft) -> None:
    """Have the node's agent carry out the rung; asked again until it tells how it ended."""
    view, order = draft.seen.agents.get(case.node), order_of(case)
    if order is NOTHING or view is None or not view.connected or outcome(order, view) is not None:
        return
    why = Why(rule=f"case.{case.rung.value}", text=_what(case), evidence=(str(case.why),))
    action = MendNode(
        key=Key(f"mend:{order.token}"), why=why, node=case.node, rung=case.rung, target=case.target, token=order.token
    )
    draft.wish(action, draft.want.repair.retry_s)


def _what(case: Case) -> str:
    did = "restart of" if case.rung is Advice.RESTART_SERVICE else "reset of GPU"
    return f"{did} {case.target} on {case.node}"
