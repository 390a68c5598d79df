"""How long a run waits for what, and how often it begins a generation by itself."""

from collections import deque

PATIENCE_S = 3600.0
"""A save that nothing presses is waited for, for so long."""
GATHER_S = 90.0
START_S = 300.0
LOST_S = 1.0
WAITING_S = 60.0
FIRST_S = 600.0
VERDICT_S = 8.0
RESTORE_S = 10.0
FINISH_S = 300.0
"""As torchrun waits for other nodes when its own processes are done."""
ALONE_S = 300.0
MOST_ALONE = 16


class Alone:
    """Generations that began without an order, lately. Each has a cause of its own (a node that is lost or has to
    leave), and there are few of those: where there are many, one generation brings about the next."""

    def __init__(self) -> None:
        self.begun: deque[float] = deque()

    def is_loop(self, now: float, nodes: int, *, is_ordered: bool) -> bool:
        """One more begins now. The job fails then, and is resumed like any other, instead of beginning for ever."""
        if is_ordered:
            self.begun.clear()
            return False
        self.begun.append(now)
        while self.begun[0] < now - ALONE_S:
            self.begun.popleft()
        return len(self.begun) > max(MOST_ALONE, 2 * nodes)
