"""Orders of the API's callers, carried out or refused: one file for each kind of order."""

from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.order import (
    AddNodes,
    Approve,
    Carried,
    ChangeRun,
    ChangeTags,
    CheckDeep,
    ClusterOrder,
    CreateCluster,
    DeleteCluster,
    Order,
    OrderAnswer,
    StartHealthCheck,
    TouchNodes,
    UpdateCluster,
    UpdateSoftware,
)
from steward.model.quota_order import (
    CreateQuota,
    CreateScheduler,
    DeleteQuota,
    DeleteScheduler,
    QuotaOrder,
    UpdateQuota,
    UpdateScheduler,
)
from steward.policy.orders.add import add
from steward.policy.orders.cluster import change_tags, create, delete
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.person import approve, change_run, check_deep, start_health_check
from steward.policy.orders.quota import create_quota, delete_quota, update_quota
from steward.policy.orders.quota_document import apply_quotas
from steward.policy.orders.scheduler import create_scheduler, delete_scheduler, update_scheduler
from steward.policy.orders.touch import touch
from steward.policy.orders.update import update, update_software


def carry_out(order: Order, memory: Memory, seen: Observed, want: Desired) -> Carried:
    """Return the memory after the order, as of `seen.at`. Raises Refusal if the order cannot be carried out."""
    draft = OrderDraft(order.who, memory, seen, want)
    match order:
        case ChangeRun():
            return draft.result(change_run(order, draft))
        case Approve():
            return draft.result(approve(order, draft))
        case _:
            return draft.result(_answer(order, draft))


def _answer(order: ClusterOrder, draft: OrderDraft) -> OrderAnswer:
    match order:
        case CreateCluster():
            return create(order, draft)
        case UpdateCluster():
            return update(order, draft)
        case DeleteCluster():
            return delete(order, draft)
        case AddNodes():
            return add(order, draft)
        case TouchNodes():
            return touch(order, draft)
        case UpdateSoftware():
            return update_software(order, draft)
        case StartHealthCheck():
            return start_health_check(order, draft)
        case CheckDeep():
            return check_deep(order, draft)
        case ChangeTags():
            return change_tags(order, draft)
        case _:
            return change_quotas(order, draft)


def change_quotas(order: QuotaOrder, draft: OrderDraft) -> OrderAnswer:
    """Carry out an order about quotas. Raises Refusal: then nothing has changed."""
    match order:
        case CreateQuota():
            return create_quota(order, draft)
        case UpdateQuota():
            return update_quota(order, draft)
        case DeleteQuota():
            return delete_quota(order, draft)
        case CreateScheduler():
            return create_scheduler(order, draft)
        case UpdateScheduler():
            return update_scheduler(order, draft)
        case DeleteScheduler():
            return delete_scheduler(order, draft)
        case _:
            return apply_quotas(order, draft)
