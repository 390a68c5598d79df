"""Orders of the API's callers, carried out or refused: one file for each kind of order."""

from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.order import (
    AddNodes,
    Answer,
    Approve,
    Carried,
    ChangeRun,
    ChangeTags,
    CheckDeep,
    ClusterOrder,
    CreateCluster,
    DeleteCluster,
    Order,
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
from steward.policy.orders.desk import Desk
from steward.policy.orders.person import approve, change_run, check_deep, start_health_check
from steward.policy.orders.quota import create_quota, delete_quota, update_quota
from steward.policy.orders.quota_document import apply_quotas
from steward.policy.orders.scheduler import create_scheduler, delete_scheduler, update_scheduler
from steward.policy.orders.touch import touch
from steward.policy.orders.update import update, update_software


def carry_out(order: Order, memory: Memory, seen: Observed, want: Desired) -> Carried:
    """The memory after the order, as of `seen.at`. Raises Refusal when it cannot be carried out: nothing changed."""
    desk = Desk(order.who, memory, seen, want)
    match order:
        case ChangeRun():
            return desk.carried(change_run(order, desk))
        case Approve():
            return desk.carried(approve(order, desk))
        case _:
            return desk.carried(_answer(order, desk))


def _answer(order: ClusterOrder, desk: Desk) -> Answer:
    match order:
        case CreateCluster():
            return create(order, desk)
        case UpdateCluster():
            return update(order, desk)
        case DeleteCluster():
            return delete(order, desk)
        case AddNodes():
            return add(order, desk)
        case TouchNodes():
            return touch(order, desk)
        case UpdateSoftware():
            return update_software(order, desk)
        case StartHealthCheck():
            return start_health_check(order, desk)
        case CheckDeep():
            return check_deep(order, desk)
        case ChangeTags():
            return change_tags(order, desk)
        case _:
            return change_quotas(order, desk)


def change_quotas(order: QuotaOrder, desk: Desk) -> Answer:
    """Raises Refusal: nothing has changed."""
    match order:
        case CreateQuota():
            return create_quota(order, desk)
        case UpdateQuota():
            return update_quota(order, desk)
        case DeleteQuota():
            return delete_quota(order, desk)
        case CreateScheduler():
            return create_scheduler(order, desk)
        case UpdateScheduler():
            return update_scheduler(order, desk)
        case DeleteScheduler():
            return delete_scheduler(order, desk)
        case _:
            return apply_quotas(order, desk)
