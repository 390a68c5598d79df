"""What callers of the API ask for, carried out or refused: one file an order."""

from steward.model.carried import Carried
from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.order import (
    Answer,
    ChangeTags,
    CreateCluster,
    DeleteCluster,
    Order,
    Refusal,
    RefusalKind,
    UpdateCluster,
)
from steward.policy.orders.create import create
from steward.policy.orders.delete import delete
from steward.policy.orders.desk import Desk
from steward.policy.orders.tags import change_tags
from steward.policy.orders.update import update


def carry_out(order: Order, memory: Memory, seen: Observed, want: Desired) -> Carried:
    """The memory after the order, as of `seen.at`. Raises Refusal when it cannot be carried out: nothing changed."""
    desk = Desk(order.who, memory, seen, want)
    return desk.carried(_answer(order, desk))


def _answer(order: Order, desk: Desk) -> Answer:
    match order:
        case CreateCluster():
            return create(order, desk)
        case UpdateCluster():
            return update(order, desk)
        case DeleteCluster():
            return delete(order, desk)
        case ChangeTags():
            return change_tags(order, desk)
        case _:
            raise Refusal(RefusalKind.VALIDATION, f"{type(order).__name__} is not known to this head.")
