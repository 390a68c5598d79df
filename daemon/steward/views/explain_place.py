"""What is done for a resumed job's place, in lines for people."""

from steward.model.node_names import fold
from steward.model.resume import JobMemory
from steward.model.words import ago, until


def place_lines(mem: JobMemory, now: float) -> list[str]:
    """Nodes that are kept for it or were in this resume, and its turn in the queue."""
    lines = []
    kept, raised = mem.kept, mem.raised
    if kept is not None:
        nodes = fold(kept.nodes)
        if kept.freed is None:
            lines.append(f"{nodes}: kept for it since {ago(kept.since, now)}, {until(kept.until, now)} at the latest.")
        else:
            lines.append(f"{nodes}: kept for it until {ago(kept.freed, now)}; {kept.why}.")
    if mem.lent is not None:
        lines.append(f"Hot spares released for it {ago(mem.lent.at, now)}: {fold(mem.lent.nodes)}.")
    if raised is not None and not raised.restored:
        lines.append(f"First in the queue since {ago(raised.at, now)} (nice {raised.before} -> {raised.nice}).")
    return lines
