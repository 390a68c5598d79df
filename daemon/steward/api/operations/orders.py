"""The way from a handler to the cycle that carries its order out."""

from collections.abc import Callable

from steward.api.json11.errors import ApiError, Code
from steward.model.order import Answer, Order, Refusal

Give = Callable[[Order], Answer]


def carried(give: Give, order: Order) -> Answer:
    """What came of it. Raises ApiError where it is refused, Retryable where no cycle has taken it in time."""
    try:
        return give(order)
    except Refusal as refusal:
        raise ApiError(Code(refusal.kind.value), str(refusal)) from refusal
