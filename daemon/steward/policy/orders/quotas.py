"""Orders about quotas, carried out or refused."""

from steward.model.order import Answer
from steward.model.quota_order import (
    CreateQuota,
    CreateScheduler,
    DeleteQuota,
    DeleteScheduler,
    QuotaOrder,
    UpdateQuota,
    UpdateScheduler,
)
from steward.policy.orders.desk import Desk
from steward.policy.orders.quota import create_quota, delete_quota, update_quota
from steward.policy.orders.quota_document import apply_quotas
from steward.policy.orders.scheduler import create_scheduler, delete_scheduler, update_scheduler


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
