"""Faults for which Slurm itself took a node out of service, and what is said about Slurm's other reasons."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from steward.model.case import Case, Trigger
from steward.model.gres import parse_gres
from steward.model.health import Advice
from steward.model.ids import JobId, NodeName
from steward.model.mark import first_token
from steward.model.node import Node, Size
from steward.model.resume import JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.verdict import Fault, admin_command, mode_of
from steward.policy.slurm_reasons import ACTING, LAUNCH_FAILED, ReasonRow, Response, slurms_own
from steward.policy.traits import Trait

SLURMD = "slurmd"
_RUNGS = {
    Response.CHECK: Advice.NONE,
    Response.LAUNCH: Advice.NONE,
    Response.RESTART_SLURMD: Advice.RESTART_SERVICE,
    Response.REBOOT: Advice.REBOOT,
    Response.COUNT: Advice.REBOOT,
}


def acting_row(node: Node, draft: Draft) -> ReasonRow | None:
    """Return the reason for which Slurm took the node out, if we can do something about it now; else None."""
    row = _row_in_force(node, draft)
    return row if row is not None and _can_act(row, node.name, draft) else None


def _row_in_force(node: Node, draft: Draft) -> ReasonRow | None:
    """Return the row of Slurm's own reason that we act on, now or when the node's agent is there; else None."""
    row = slurms_own(node, draft.want.slurm_user)
    if row is None or row.response not in ACTING or mode_of(row.check, draft) != "drain":
        return None
    return row


def _can_act(row: ReasonRow, node: NodeName, draft: Draft) -> bool:
    """Return whether the response to the reason is possible now."""
    response = row.response
    view, has_slot = draft.seen.agents.get(node), node in draft.slots.repairable
    if view is None or not view.connected or view.incarnation is None:
        # without its agent the node cannot be checked, and without a slot it cannot be rebooted
        return response in (Response.REVIVE, Response.REBOOT) and has_slot
    match response:
        case Response.REBOOT:
            return has_slot
        case Response.COUNT:
            served = draft.served.get(node)
            is_known = served is not None and served.instance == view.incarnation.instance
            return has_slot and is_known and not other_size(node, row.checks, draft)
        case _:
            return True


_COMPARED = {"memory": "memory_mb", "cpu.topology": "cpus", "slurm.gres": "gres"}
"""Each check that compares the machine with slurm.conf, and what it compares (a field of Size)."""


def other_size(name: NodeName, checks: Iterable[str], draft: Draft) -> str:
    """Return in words that slurm.conf gives the node more, of what these checks compare, than when its machine served.

    What such a machine lacks was never there: no reboot and no other machine brings it. Empty if it is not more.
    """
    node, view, served = draft.seen.nodes.get(name), draft.seen.agents.get(name), draft.served.get(name)
    if node is None or served is None or view is None or view.incarnation is None:
        return ""
    if served.instance != view.incarnation.instance:
        return ""
    fields = {_COMPARED[check] for check in checks if check in _COMPARED}
    if not any(_is_more(field, node.size, served.size) for field in fields):
        return ""
    return f"slurm.conf has {node.size} for it, and had {served.size} when it served: see whether that is right"


def _is_more(field: str, now: Size, then: Size) -> bool:
    if field != "gres":
        return bool(getattr(now, field) > getattr(then, field))
    # slurmctld shows less where slurmd registered with less
    return bool(_gres_counts(now.gres) - _gres_counts(then.gres))


def _gres_counts(gres: str) -> Counter[str]:
    """Return how many of each kind there are, whatever their types: slurm.conf may have left these to gres.conf."""
    found: Counter[str] = Counter()
    for each in parse_gres(gres):
        found[each.name] += each.amount
    return found


def is_hands_off(node: Node, draft: Draft) -> bool:
    """Return whether the node was taken out by a person or a tool, or by Slurm for a reason that we do not act on."""
    return node.is_foreign and _row_in_force(node, draft) is None


def reason_fault(node: Node, draft: Draft) -> Fault | None:
    """Return the fault for which Slurm took the node out; None if there is none that we act on."""
    row = acting_row(node, draft)
    if row is None or node.reason is None:
        return None
    text, rung = first_token(node.reason.text), _rung(row, node, draft)
    why = Why(rule="node.slurm_reason", text=f"Slurm took {node.name} out of service", evidence=(text,))
    return Fault(
        trigger=Trigger.DEGRADED,
        check=row.check,
        rung=rung,
        target=SLURMD if row.response is Response.RESTART_SLURMD else "",
        why=why,
        at=node.reason.at,
        # Slurm's reason stays in place of our mark, as an admin's command does; but a machine that is only DOWN would
        # serve as soon as its repair has begun, unproved: it is drained under our mark
        command=text if node.is_foreign or rung is Advice.NONE else "",
        is_event=True,
    )


TOLD_WITHIN_S = 3.0
"""Slurm drains the node and requeues its job within a second or two, and tells both times in whole seconds."""

# Launches that failed on a node which Slurm leaves in service.

MOST_HURT = 1
"""The node is at fault if jobs of more users than this could not start there, and started elsewhere. One user alone may
cause that by something that only this node lacks, such as an output folder."""
BEGAN_S = 15.0
"""A run that has lasted this long did start."""


def hurt_since_repair(node: NodeName, draft: Draft) -> tuple[JobId, ...]:
    """Return the jobs whose launch failed on the node since it was last repaired, in order."""
    returned = max((case.returned for case in draft.cases.of(node) if case.returned is not None), default=0.0)
    return tuple(JobId(id) for id, at in sorted(draft.nodes.of(node).failed_launches.items()) if at > returned)


def breaks_launches_of(node: NodeName, draft: Draft) -> tuple[JobId, ...]:
    """Return the jobs that could not start on the node since its last repair, and run elsewhere.

    Empty if a script has begun there since: then the cause is not in the node.
    """
    known = ((id, draft.jobs.get(id)) for id in hurt_since_repair(node, draft))
    hurt = tuple(id for id, mem in known if mem is not None and _runs_elsewhere(mem, node, draft))
    return () if hurt and _has_begun_a_script(node, max(draft.nodes.of(node).failed_launches.values()), draft) else hurt


def _has_begun_a_script(node: NodeName, since: float, draft: Draft) -> bool:
    """Return whether a job whose script is on the node has run for `BEGAN_S` after that time."""
    jobs = (draft.seen.jobs[id] for id in draft.overview.running_on.get(node, ()))
    started = (job.started for job in jobs if job.batch_host == node and job.started is not None)
    return any(since < at <= draft.now - BEGAN_S for at in started)


def _runs_elsewhere(mem: JobMemory, node: NodeName, draft: Draft) -> bool:
    """Return whether the job's run after this node was blamed has lasted for `BEGAN_S` on other nodes."""
    blamed = [attempt.restart for attempt in mem.attempts if node in attempt.culprits]
    job = draft.seen.jobs.get(mem.id)
    if not blamed or job is None or job.started is None or job.restarts <= blamed[-1] or node in job.nodes:
        return False
    began = job.started + BEGAN_S
    if job.is_active:
        draft.wake(began)
    # a job may be RUNNING for a second before its launch fails again
    return began <= (draft.now if job.is_active else job.ended or 0.0)


def breakers_of_launches(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes on which jobs of more than `MOST_HURT` users could not start that could start elsewhere."""
    hurt = (name for name, mem in draft.nodes.items() if len(mem.failed_launches) > MOST_HURT)
    return frozenset(name for name in hurt if count_owners(breaks_launches_of(name, draft), draft) > MOST_HURT)


def count_owners(jobs: tuple[JobId, ...], draft: Draft) -> int:
    return len({draft.jobs[job].uid for job in jobs})


def launch_fault(node: Node, draft: Draft) -> Fault | None:
    """Return the fault of a node on which Slurm could not start jobs, though it left the node in service; else None."""
    jobs = breaks_launches_of(node.name, draft)
    if count_owners(jobs, draft) <= MOST_HURT or mode_of(LAUNCH_FAILED, draft) != "drain":
        return None
    text = f"Slurm could not start {len(jobs)} jobs on {node.name}, which started elsewhere"
    why = Why(rule="node.launch_failed", text=text, evidence=tuple(f"job {draft.shown_id(id)}" for id in jobs))
    at = max(draft.nodes.of(node.name).failed_launches.values())
    return Fault(
        trigger=Trigger.DEGRADED, check=LAUNCH_FAILED, rung=Advice.NONE, target="", why=why, at=at, is_event=True
    )


def _rung(row: ReasonRow, node: Node, draft: Draft) -> Advice:
    """Return the first rung for a reason of Slurm's own."""
    if row.response is not Response.REVIVE:
        return _RUNGS[row.response]
    view = draft.seen.agents.get(node.name)
    return Advice.NONE if view is not None and view.connected else Advice.REPLACE


def is_light_response(row: ReasonRow) -> bool:
    """Return whether nodes with this reason are only checked."""
    return _RUNGS.get(row.response) is Advice.NONE


def with_reason(fault: Fault, node: Node, draft: Draft) -> Fault:
    """Return the fault with Slurm's reason, which stays in place during any repair of a node that Slurm took out."""
    if fault.command or not node.is_foreign or node.reason is None or _row_in_force(node, draft) is None:
        return fault
    return replace(fault, command=first_token(node.reason.text))


def still_has_slurms_reason(case: Case, node: Node, draft: Draft) -> bool:
    """Return whether the node still has Slurm's own reason with which this case was opened."""
    same = bool(case.command) and node.reason is not None and first_token(node.reason.text) == case.command
    return same and slurms_own(node, draft.want.slurm_user) is not None


def still_has_reason(case: Case, node: Node, draft: Draft) -> bool:
    """Return whether the node still has the reason in place of this case's mark: a command, or Slurm's own."""
    order = admin_command(node)
    return (order is not None and order.text == case.command) or still_has_slurms_reason(case, node, draft)


def out_by_reason(draft: Draft) -> Iterator[tuple[Node, ReasonRow]]:
    """Yield the nodes that Slurm itself took out of service for a reason that we act on."""
    for node in draft.overview.with_reason(Trait.SLURMS_WORDS):
        if not belongs_to_slot(node, draft) and (row := acting_row(node, draft)) is not None:
            yield node, row


def response_text(row: ReasonRow, node: Node, draft: Draft) -> str:
    """Return what is done about a reason of Slurm's own, in words."""
    if acting_row(node, draft) is not None or row.response in (Response.LEAVE, Response.WATCH):
        return row.response.value
    view = draft.seen.agents.get(node.name)
    is_there = view is not None and view.connected
    if _row_in_force(node, draft) is None or is_there or node.name not in draft.agents:
        return Response.TELL.value
    return f"{row.response.value}; the node's agent is awaited"
