"""The deadlines of an elastic run, and the limit for generations that begin without an order of the head."""

from collections import deque

PATIENCE_S = 3600.0
"""How long to wait for a save that is not urgent."""
GATHER_S = 90.0
"""How long the nodes of the next generation may take to stop their processes."""
START_S = 300.0
"""How long a generation may start before it counts as running without a report."""
LOST_S = 1.0
"""How long a lost agent may take to come back."""
WAITING_S = 60.0
"""How long a run may wait for nodes before the job fails."""
FIRST_S = 600.0
"""The same before the first generation."""
VERDICT_S = 8.0
"""How long failed processes wait for the verdict: the loss of a node, their likely cause, may be found meanwhile."""
RESTORE_S = 10.0
"""How long members may take to come back after a restart of the coordinator."""
FINISH_S = 300.0
"""How long other nodes may work on after the first one is done; torchrun waits for them as long."""
ALONE_S = 300.0
MOST_ALONE = 16
"""More generations than this without an order within `ALONE_S` are a loop, in a run of few nodes."""


class RestartLoopDetector:
    """A count of the recent generations that began without an order of the head.

    Their causes (a node that is lost or must leave) are rare. If there are many, each generation causes the next.
    """

    def __init__(self) -> None:
        self.begun: deque[float] = deque()

    def is_loop(self, now: float, nodes: int, *, is_ordered: bool) -> bool:
        """Count a generation that begins now, and return whether the run restarts in a loop."""
        # In a loop the job must fail and be resumed like any other, instead of restarting for ever.
        if is_ordered:
            self.begun.clear()
            return False
        self.begun.append(now)
        while self.begun[0] < now - ALONE_S:
            self.begun.popleft()
        return len(self.begun) > max(MOST_ALONE, 2 * nodes)
