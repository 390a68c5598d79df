"""Faults that Slurm itself told of by taking a node out of service, and what is only told about the others."""

from collections.abc import Iterator
from dataclasses import replace

from steward.model.case import Case, Trigger
from steward.model.events import Level
from steward.model.health import Advice
from steward.model.ids import JobId, NodeName
from steward.model.mark import first_token
from steward.model.node import Node
from steward.model.resume import JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.serving import is_between
from steward.policy.node.reasons import ACTING, LAUNCH_FAILED, ReasonRow, Response, slurms_own
from steward.policy.node.verdict import Fault, command, mode_of
from steward.policy.traits import Trait

SLURMD = "slurmd"
_RUNGS = {
    Response.CHECK: Advice.NONE,
    Response.LAUNCH: Advice.NONE,
    Response.RESTART_SLURMD: Advice.RESTART_SERVICE,
    Response.REBOOT: Advice.REBOOT,
    Response.COUNT: Advice.REBOOT,
}


def remember_served(draft: Draft) -> None:
    """Keep which machine Slurm had in full service: a count that is too low on it later is lost hardware."""
    nodes, agents = draft.ground.nodes, draft.ground.agents
    of = (nodes.keys_stamp, nodes.stamp(Trait.UNFIT), agents.told_stamp, draft.served.unchanged)
    if draft.ground.is_known("served", of):
        return
    unfit = nodes.having(Trait.UNFIT)
    for name, who in agents.told.items():
        if draft.served.get(name) != who.instance and name in draft.seen.nodes and name not in unfit:
            draft.served[name] = who.instance
    if len(draft.served) > len(draft.seen.nodes):
        draft.served.drop([name for name in draft.served if name not in draft.seen.nodes])
    if draft.served.unchanged is not None:
        draft.ground.note("served", of)


def acting_row(node: Node, draft: Draft) -> ReasonRow | None:
    """The reason for which Slurm itself took the node out, where we may do something about it: without its agent nobody
    can tell whether it is sound, and without a slot nobody can reboot it."""
    row = _row_in_force(node, draft)
    return row if row is not None and _can_act(row.response, node.name, draft) else None


def _row_in_force(node: Node, draft: Draft) -> ReasonRow | None:
    """Return the row of a reason of Slurm's own that something is done about, now or when its agent is there."""
    row = slurms_own(node, draft.want.slurm_user)
    if row is None or row.response not in ACTING or mode_of(row.check, draft) != "drain":
        return None
    return row


def _can_act(response: Response, node: NodeName, draft: Draft) -> bool:
    view, has_slot = draft.seen.agents.get(node), node in draft.slots.repairable
    if view is None or not view.connected or view.incarnation is None:
        return response in (Response.REVIVE, Response.REBOOT) and has_slot
    match response:
        case Response.REBOOT:
            return has_slot
        case Response.COUNT:
            return has_slot and draft.served.get(node) == view.incarnation.instance
        case _:
            return True


def is_hands_off(node: Node, draft: Draft) -> bool:
    """Taken out of service by somebody who is neither us nor Slurm for a reason that we know what to do about."""
    return node.is_foreign and _row_in_force(node, draft) is None


def reason_fault(node: Node, draft: Draft) -> Fault | None:
    """The fault that Slurm's own reason tells of. Its reason stays in place of our mark, as an admin's command does."""
    row = acting_row(node, draft)
    if row is None or node.reason is None:
        return None
    text = first_token(node.reason.text)
    why = Why(rule="node.slurm_reason", text=f"Slurm took {node.name} out of service", evidence=(text,))
    return Fault(
        trigger=Trigger.DEGRADED,
        check=row.check,
        rung=_rung(row, node, draft),
        target=SLURMD if row.response is Response.RESTART_SLURMD else "",
        why=why,
        at=node.reason.at,
        command=text,
        is_event=True,
    )


# Launches that failed on a node of which Slurm says nothing.

MOST_HURT = 1
"""Jobs of a second user that could not start on a node, and could elsewhere, are no chance; one user can bring it about
by what only one node lacks (the folder of his output)."""


def hurt_since_repair(node: NodeName, draft: Draft) -> tuple[JobId, ...]:
    """Return the jobs whose launch failed on the node since it was last repaired, in order."""
    returned = max((case.returned for case in draft.cases.of(node) if case.returned is not None), default=0.0)
    return tuple(JobId(id) for id, at in sorted(draft.nodes.of(node).hurt.items()) if at > returned)


def breaks_launches_of(node: NodeName, draft: Draft) -> tuple[JobId, ...]:
    """Return those of them that could start elsewhere: that they could not is not their own fault."""
    known = ((id, draft.jobs.get(id)) for id in hurt_since_repair(node, draft))
    return tuple(id for id, mem in known if mem is not None and _ran_elsewhere(mem, node))


def _ran_elsewhere(mem: JobMemory, node: NodeName) -> bool:
    return any(attempt.running is not None and node in attempt.culprits for attempt in mem.attempts)


def breakers_of_launches(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes on which jobs of more than `MOST_HURT` users could not start that could start elsewhere."""
    hurt = (name for name, mem in draft.nodes.items() if len(mem.hurt) > MOST_HURT)
    return frozenset(name for name in hurt if _users_of(breaks_launches_of(name, draft), draft) > MOST_HURT)


def _users_of(jobs: tuple[JobId, ...], draft: Draft) -> int:
    return len({draft.jobs[job].uid for job in jobs})


def tell_hurt(draft: Draft) -> None:
    """Say once of each node on which jobs of only one user could not start that nothing is done about it."""
    for name in [name for name, mem in draft.nodes.items() if len(mem.hurt) > MOST_HURT]:
        jobs = breaks_launches_of(name, draft)
        if len(jobs) > MOST_HURT and _users_of(jobs, draft) <= MOST_HURT:
            named = ", ".join(map(str, jobs[:8]))
            text = f"{name}: Slurm could not start jobs {named} there, which started elsewhere; all are of one user, so"
            text += f" nothing is done: see what only {name} lacks (folders of their output, their environment)"
            draft.tell("node.launches", text, once=f"launches:{name}:{jobs[0]}", level=Level.WARNING, node=name)


def launch_fault(node: Node, draft: Draft) -> Fault | None:
    """Return the fault of a node on which Slurm could not start jobs, though it left the node in service."""
    jobs = breaks_launches_of(node.name, draft)
    if _users_of(jobs, draft) <= MOST_HURT or mode_of(LAUNCH_FAILED, draft) != "drain":
        return None
    text = f"Slurm could not start {len(jobs)} jobs on {node.name}, which started elsewhere"
    why = Why(rule="node.launch_failed", text=text, evidence=tuple(f"job {id}" for id in jobs))
    at = max(draft.nodes.of(node.name).hurt.values())
    return Fault(
        trigger=Trigger.DEGRADED, check=LAUNCH_FAILED, rung=Advice.NONE, target="", why=why, at=at, is_event=True
    )


def _rung(row: ReasonRow, node: Node, draft: Draft) -> Advice:
    if row.response is not Response.REVIVE:
        return _RUNGS[row.response]
    view = draft.seen.agents.get(node.name)
    return Advice.NONE if view is not None and view.connected else Advice.REPLACE


def is_light_response(row: ReasonRow) -> bool:
    """Return whether its nodes are looked into, and nothing is done to them."""
    return _RUNGS.get(row.response) is Advice.NONE


def with_reason(fault: Fault, node: Node, draft: Draft) -> Fault:
    """Any repair of a node that Slurm took out of service leaves Slurm's reason in place."""
    if fault.command or not node.is_foreign or node.reason is None or _row_in_force(node, draft) is None:
        return fault
    return replace(fault, command=first_token(node.reason.text))


def keeps_reason(case: Case, node: Node, draft: Draft) -> bool:
    """Whether the reason on the node is still Slurm's own that this case was opened with."""
    same = bool(case.command) and node.reason is not None and first_token(node.reason.text) == case.command
    return same and slurms_own(node, draft.want.slurm_user) is not None


def bears_reason(case: Case, node: Node, draft: Draft) -> bool:
    """Whether the reason on the node is still the one that stands in place of this case's mark: an admin's command, or
    Slurm's own."""
    order = command(node)
    return (order is not None and order.text == case.command) or keeps_reason(case, node, draft)


def out_by_reason(draft: Draft) -> Iterator[tuple[Node, ReasonRow]]:
    """Nodes that Slurm itself took out of service for something that we act on."""
    for node in draft.overview.with_reason(Trait.SLURMS_WORDS):
        if not is_between(node, draft) and (row := acting_row(node, draft)) is not None:
            yield node, row


def tell_reasons(draft: Draft) -> None:
    """Say once of each reason of Slurm's own what it speaks of and what is done about it."""
    for node in draft.overview.with_reason(Trait.SLURMS_WORDS):
        if node.reason is None or (row := slurms_own(node, draft.want.slurm_user)) is None:
            continue
        if row.response in (Response.LEAVE, Response.WATCH) or is_between(node, draft):
            continue
        text, what = first_token(node.reason.text), done_about(row, node, draft)
        said = f"{node.name}: Slurm says {text!r} ({row.kind.value}): {what}"
        once = f"slurm:{node.name}:{row.name}:{node.reason.at:.0f}:{what}"
        draft.tell("node.slurm_reason", said, once=once, level=Level.WARNING, node=node.name)


def done_about(row: ReasonRow, node: Node, draft: Draft) -> str:
    """Return what is done about a reason of Slurm's own, in words."""
    if acting_row(node, draft) is not None:
        return row.response.value
    view = draft.seen.agents.get(node.name)
    is_there = view is not None and view.connected
    if _row_in_force(node, draft) is None or is_there or node.name not in draft.agents:
        return Response.TELL.value
    return f"{row.response.value}; the node's agent is awaited"
