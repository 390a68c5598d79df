"""End what is left of a lost run on its sound nodes, so that the requeued job can start there at once.

After a node died, the slurmstepds of the other nodes report the end of their tasks to the job's srun up to six times.
Each report waits for a timeout: in all 21 s if srun's host is dead, 70 s if the host is frozen. Until then the nodes
stay COMPLETING, and the requeued job cannot start (docs/decisions/0013).
"""

from collections.abc import Iterable
from dataclasses import replace

from steward.model.agent_action import LetGo
from steward.model.case import Case
from steward.model.events import Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.resume import JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.guards.run_end import cleans_up_since, end_of, is_looked_into
from steward.policy.state_machine import BLIND_S


def forgive_blind_time(ids: Iterable[JobId], draft: Draft) -> None:
    """Extend the time to look into ended runs by the time without a fresh picture."""
    # the head was away, Slurm did not answer, or the clock was set forward
    gap = draft.now - draft.head.looked_at_ends if draft.head.looked_at_ends is not None else 0.0
    for id in ids if gap > BLIND_S else ():
        mem = draft.jobs[id]
        end = end_of(mem)
        if is_looked_into(mem) and end.over is not None:
            done, asked = (at + gap if at is not None else None for at in (end.done, end.asked))
            draft.jobs[id] = replace(mem, leaving=replace(end, over=end.over + gap, done=done, asked=asked))


def note_look(ids: Iterable[JobId], draft: Draft) -> None:
    """Remember the approximate time of the last look into ended runs; forget it if there are none."""
    at = draft.head.looked_at_ends
    if not any(is_looked_into(draft.jobs[id]) for id in ids):
        draft.head = replace(draft.head, looked_at_ends=None) if at is not None else draft.head
    elif at is None or draft.now - at > BLIND_S / 2:
        draft.head = replace(draft.head, looked_at_ends=draft.now)


LINGERS_S = 0.3
"""Healthy nodes have cleaned up within 0.1 s of a kill."""
AGAIN_S = 1.0
GIVE_UP_S = 90.0
"""By then Slurm's own tries are over: something else still holds the node."""
LOST_BEFORE_S = 60.0
"""A node that was lost longer than this before the run's end does not delay the clean-up."""


def let_go(draft: Draft) -> None:
    """End the remains of each opted-in job's run on sound nodes, after a lost node was taken out of service."""
    for id in jobs_needing_attention(draft):
        job = draft.seen.jobs.get(id)
        if job is not None and job.is_completing:
            _end_remains(job, draft.jobs[id], draft)
            _tell_slow(job, draft)


def _end_remains(job: Job, mem: JobMemory, draft: Draft) -> None:
    """End the remains of the run on the nodes that wait for the lost one."""
    over = cleans_up_since(job, draft)
    cases = _forced_repairs(mem, over, draft)
    nodes = frozenset(node for node in mem.nodes - {case.node for case in cases} if _lingers(node, draft))
    if not cases or not nodes or draft.now >= over + GIVE_UP_S:
        return
    if draft.now < over + LINGERS_S:
        draft.wake(over + LINGERS_S)
        return
    # an agent logs the order's text and is sent no evidence: the text names the lost nodes
    lost = ", ".join(f"{case.node} (case {case.id})" for case in cases)
    text = f"sound nodes of the run still clean up, because Slurm waits there for {lost}"
    why = Why(rule="job.let_go", text=text, evidence=tuple(f"{case.node}: {case.why.text}" for case in cases))
    key = Key(f"letgo:{job.id}:{mem.restarts}")
    order = LetGo(key=key, why=why, job=job.id, uid=job.user_id, nodes=nodes, restart=mem.restarts, before=over)
    if draft.wish(order, AGAIN_S):
        text = f"job {job.shown_id}: the rest of its lost run is ended on {fold(nodes)}"
        draft.tell("job.let_go", f"{text}: {why}", once=f"letgo:{job.id}:{mem.restarts}", job=job.id)


SLOW_S, STUCK_S = 10.0, 300.0
"""An Epilog or a process that ends takes seconds. Slurm itself drains a node for a step that it cannot kill after
UnkillableStepTimeout (60 s by default), and waits for an Epilog without a limit."""


def _tell_slow(job: Job, draft: Draft) -> None:
    """Say once that Slurm waits for nodes of a run that is over; after minutes, say how to end the waiting."""
    since = cleans_up_since(job, draft)
    for at, level in ((SLOW_S, Level.INFO), (STUCK_S, Level.WARNING)):
        if draft.now < since + at:
            draft.wake(since + at)
        elif text := slow_nodes(job, draft):
            once = f"slow:{job.id}:{draft.jobs[job.id].restarts}:{level.value}"
            draft.tell("job.cleans_up", f"job {job.shown_id}: {text}", once=once, level=level, job=job.id)


def slow_nodes(job: Job, draft: Draft) -> str:
    """Return which nodes Slurm waits for before the job's last run is over, and why; empty if it does not wait."""
    mem, since = draft.jobs[job.id], end_of(draft.jobs[job.id]).since
    if not job.is_completing or since is None or draft.now < since + SLOW_S:
        return ""
    known = [draft.seen.nodes[name] for name in sorted(mem.nodes | job.nodes) if name in draft.seen.nodes]
    slow = [node for node in known if "COMPLETING" in node.flags]
    if not slow:
        return ""
    gone = fold({node.name for node in known if node.is_down or not node.responding})
    whose = "; ".join(_why_slow(node, gone, draft) for node in slow[:_NAMED])
    text = f"for {draft.now - since:.0f} s Slurm waits for {fold({node.name for node in slow})} to clean up ({whose})"
    if draft.now < since + STUCK_S:
        return f"{text}; the job can start again after that"
    return f"{text}; `scontrol update nodename={slow[0].name} state=down reason=stuck` ends the waiting"


_NAMED = 3


def _why_slow(node: Node, gone: str, draft: Draft) -> str:
    """Return why the node has not cleaned up yet; `gone` are the lost nodes of its job."""
    view = draft.seen.agents.get(node.name)
    stuck = next((f for f in (view.findings if view else ()) if f.is_bad and f.check == "os.dstate"), None)
    if stuck is not None:
        return f"{node.name}: a process that cannot be killed: {stuck.text}"
    if not node.responding:
        return f"{node.name}: it does not respond"
    if gone:
        # slurmctld asks nodes through one another, and waits for a dead one on the way
        return f"{node.name}: Slurm waits there for {gone}, or its Prolog or Epilog runs, or a process does not end"
    return f"{node.name}: its Prolog or Epilog runs, or a process of the job does not end"


def _forced_repairs(mem: JobMemory, over: float, draft: Draft) -> list[Case]:
    """Return the repairs that took a node of this run down by force, shortly before its end or since."""
    since = max(over - LOST_BEFORE_S, mem.started or 0.0)
    cases = [c for node in mem.nodes for c in draft.cases.of(node) if c.trigger.ends_jobs]
    return sorted((c for c in cases if c.marked is not None and c.marked >= since), key=lambda c: (c.node, c.id))


def _lingers(name: NodeName, draft: Draft) -> bool:
    """Return whether Slurm waits for the node to clean up, and its agent is connected."""
    node, view = draft.seen.nodes.get(name), draft.seen.agents.get(name)
    return node is not None and "COMPLETING" in node.flags and view is not None and view.connected
