"""Which of a cluster's heads leads, as one head knows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The head that leads, and where it is reached.

    A `leader` is named by its entry in `agent.head` (`head1:6861`), which is also its address for agents; empty while
    no head leads. `epoch` counts up each time that a head takes the lead. `since` is Unix seconds by the leader's
    clock. `http` and `users_http` are URLs for other hosts (`https://head1:6860`), empty where the leader does not
    serve them beyond its own host. `is_mine` is whether the head that says this leads, and may act now.
    """

    leader: str = ""
    epoch: int = 0
    since: float = 0.0
    http: str = ""
    users_http: str = ""
    is_mine: bool = False


ALONE = Leadership(is_mine=True)
"""The leadership of a head without a shared database, which has no peers."""
